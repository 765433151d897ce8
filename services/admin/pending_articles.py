"""Articles that wait for a consumer, and dead ones: reads them, and does by hand what consumers do. Keys are md5s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from services.admin.registry import Connection
from shared.errors import ConfigurationError

KEY_CHARACTERS = 32

PREFIX_CHARACTERS = 4
"""The fewest characters of an id's beginning: a typing error must not select an article."""

_COUNTS = """
SELECT count(*) AS pending,
    count(*) FILTER (WHERE claimed_until IS NULL OR claimed_until <= now()) AS claimable,
    count(*) FILTER (WHERE claimed_until > now() AND lease_id IS NOT NULL) AS claimed,
    count(*) FILTER (WHERE claimed_until > now() AND lease_id IS NULL) AS waiting_for_retry,
    count(*) FILTER (WHERE claimed_until <= now() AND lease_id IS NOT NULL) AS lease_expired,
    (SELECT count(*) FROM dead_articles) AS dead,
    extract(epoch FROM now() - min(created_at))::float8 AS oldest_seconds
FROM pending_articles
"""

_STATE: LiteralString = """
CASE WHEN claimed_until IS NULL THEN 'new'
    WHEN lease_id IS NOT NULL AND claimed_until > now() THEN 'claimed'
    WHEN lease_id IS NOT NULL THEN 'lease expired'
    WHEN claimed_until > now() THEN 'waiting for retry'
    ELSE 'back'
END AS state
"""

_MATCHES: LiteralString = """
(%(feed)s::bigint IS NULL OR feed_id = %(feed)s)
AND (%(text)s::text IS NULL OR strpos(lower(title || ' ' || url), lower(%(text)s)) > 0)
"""

_PART: LiteralString = f"""
(SELECT md5, feed_id, title, url, {_STATE}, retry_count, expiries, revision, created_at, claimed_until, last_error
 FROM pending_articles WHERE {{which}} AND {_MATCHES} ORDER BY {{order}} LIMIT %(limit)s)
"""  # noqa: S608 - our own text

# In the order in which they are, or will be, given out. Each part by its index: a sort of all would take a while.
_LIST: LiteralString = f"""
SELECT * FROM (
    {_PART.format(which="claimed_until <= now()", order="claimed_until, created_at, md5")}
    UNION ALL {_PART.format(which="claimed_until IS NULL", order="created_at, md5")}
    UNION ALL {_PART.format(which="claimed_until > now()", order="claimed_until, created_at, md5")}
) AS in_order LIMIT %(limit)s
"""  # noqa: S608 - our own text

_DEAD: LiteralString = f"""
SELECT md5, feed_id, title, url, retry_count, expiries, revision, created_at, failed_at, error
FROM dead_articles WHERE {_MATCHES} ORDER BY failed_at DESC, md5 LIMIT %(limit)s
"""  # noqa: S608 - our own text


def count_articles(connection: Connection) -> dict[str, Any]:
    """Return how many articles there are, by what they wait for, and the age of the oldest in seconds."""
    row = connection.execute(_COUNTS).fetchone()
    assert row is not None
    return row


def list_pending(connection: Connection, limit: int, feed_id: int | None, text: str | None) -> list[dict[str, Any]]:
    """Return pending articles in the order in which they are given out, of this feed and with this text."""
    return connection.execute(_LIST, {"limit": limit, "feed": feed_id, "text": text}).fetchall()


def list_dead(connection: Connection, limit: int, feed_id: int | None, text: str | None) -> list[dict[str, Any]]:
    """Return dead articles, the latest first, of this feed and with this text in title or URL."""
    return connection.execute(_DEAD, {"limit": limit, "feed": feed_id, "text": text}).fetchall()


def read_article(connection: Connection, md5: str) -> dict[str, Any] | None:
    """Return all columns of an article, pending or dead, with its `state`; None if there is none."""
    query: LiteralString = f"SELECT {_STATE}, pending_articles.* FROM pending_articles WHERE md5 = %s"  # noqa: S608
    row = connection.execute(query, [md5]).fetchone()
    return row or connection.execute("SELECT 'dead' AS state, * FROM dead_articles WHERE md5 = %s", [md5]).fetchone()


def find_keys(connection: Connection, given: Sequence[str], *, pending: bool = True, dead: bool = False) -> list[str]:
    """Return whole keys for the keys, or beginnings of keys, that are given. One that fits none is returned as it is.

    Raises:
        ConfigurationError: a beginning fits several.
    """
    return [_find_key(connection, key, pending=pending, dead=dead) for key in given]


def _find_key(connection: Connection, key: str, *, pending: bool, dead: bool) -> str:
    if not PREFIX_CHARACTERS <= len(key) < KEY_CHARACTERS or not key.isalnum():
        return key
    rows = connection.execute(
        """
        (SELECT md5 FROM pending_articles WHERE %(pending)s AND md5 LIKE %(like)s ORDER BY md5 LIMIT 3)
        UNION
        (SELECT md5 FROM dead_articles WHERE %(dead)s AND md5 LIKE %(like)s ORDER BY md5 LIMIT 3)
        ORDER BY md5 LIMIT 3
        """,
        {"pending": pending, "dead": dead, "like": f"{key.lower()}%"},
    ).fetchall()
    return the_one(key, [row["md5"] for row in rows]) or key


def the_one(prefix: str, found: Sequence[str]) -> str | None:
    """Return the only one of the ids that were found for a prefix; None if there is none.

    Raises:
        ConfigurationError: there are several.
    """
    if len(found) > 1:
        names = ", ".join(found[:2])
        raise ConfigurationError(
            f"{prefix!r} is ambiguous, give more of it: it begins {names}{', …' * (len(found) > 2)}"
        )
    return found[0] if found else None


def acknowledge(connection: Connection, md5s: Sequence[str]) -> int:
    """Drop pending articles as if a consumer had acknowledged the text that they have now; return how many."""
    query = (
        "SELECT ack_articles(array_agg(md5), array_agg(content_hash)) AS n FROM pending_articles WHERE md5 = ANY(%s)"
    )
    return _count(connection, query, [list(md5s)])


def release(connection: Connection, md5s: Sequence[str]) -> int:
    """Take claimed articles away from their consumer; return how many. They are given out again at once."""
    return _count(connection, "SELECT release_articles(%s) AS n", [list(md5s)])


def dead_letter(connection: Connection, md5s: Sequence[str], reason: str) -> int:
    """Move pending articles to the dead ones, with the reason; return how many."""
    return _count(connection, "SELECT bury_articles(%s, %s) AS n", [list(md5s), reason])


def revive(connection: Connection, md5s: Sequence[str] | None) -> int:
    """Make dead articles (None: all) pending again, with nothing counted against them; return how many."""
    if md5s is None:
        return _count(connection, "SELECT revive_articles(array_agg(md5)) AS n FROM dead_articles", [])
    return _count(connection, "SELECT revive_articles(%s) AS n", [list(md5s)])


def _count(connection: Connection, query: LiteralString, values: list[Any]) -> int:
    row = connection.execute(query, values).fetchone()
    assert row is not None
    return int(row["n"] or 0)
