"""Articles of one story: the one that came first, and its duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from shared.database.postgres import Connection

MOST_DUPLICATES = 10
MOST_CHARACTERS = 4000
"""Of each text."""

# The first one, then its duplicates by the index feed_items_story.
_STORY: LiteralString = """
WITH versions AS (
    SELECT * FROM (SELECT * FROM feed_items WHERE md5 = %(first)s) AS first
    UNION ALL
    (SELECT * FROM feed_items WHERE duplicate_of = %(first)s ORDER BY first_seen_at, md5 LIMIT %(most)s)
)
SELECT versions.md5, versions.feed_id, versions.url, versions.first_seen_at,
    CASE WHEN versions.duplicate_of IS NOT NULL THEN coalesce(versions.duplicate_kind, 'address') END AS kind,
    versions.duplicate_score AS score,
    CASE WHEN pending.md5 IS NOT NULL THEN 'pending' WHEN dead.md5 IS NOT NULL THEN 'dead' ELSE 'done' END AS state,
    coalesce(pending.title, dead.title) AS title,
    left(coalesce(pending.body, dead.body), %(characters)s) AS text
FROM versions
LEFT JOIN pending_articles AS pending ON pending.md5 = versions.md5
LEFT JOIN dead_articles AS dead ON dead.md5 = versions.md5
ORDER BY versions.duplicate_of IS NOT NULL, versions.first_seen_at, versions.md5
"""


@dataclass(frozen=True)
class Version:
    """One article of a story."""

    md5: str
    feed_id: int
    url: str
    first_seen_at: datetime
    kind: str | None
    """What tells that it is a duplicate: `address`, `title` or `text`; None: it is the first."""
    score: float | None
    """How much of the shorter text is in the first one, from 0 to 1; None: by address, or it is the first."""
    state: str
    """`pending`, `dead`, or `done`: acknowledged."""
    title: str | None
    """None: it is done."""
    text: str | None
    """The first `MOST_CHARACTERS`."""


async def read_story(connection: Connection, md5: str, duplicate_of: str | None) -> list[Version]:
    """Return the articles of a story, the first one first, with `MOST_DUPLICATES` duplicates at most.

    The first one is missing if the ledger has forgotten it. Empty: the article is the only one.

    Args:
        connection: to the database.
        md5: of one of them.
        duplicate_of: as that one says.
    """
    values = {"first": duplicate_of or md5, "most": MOST_DUPLICATES, "characters": MOST_CHARACTERS}
    cursor = await connection.execute(_STORY, values)
    versions = [Version(**row) for row in await cursor.fetchall()]
    return versions if any(version.kind for version in versions) else []
