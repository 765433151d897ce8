"""The writer's SQL for the ledger `feed_items`: one small row for each article ever seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter

from services.writer.article import Article, Column, arrays, chunks, insert_statement
from services.writer.articles.identity import Document
from services.writer.articles.rows import MAX_UPDATES, Ledger, Row
from shared.database.postgres import Connection

LAST_SEEN_EVERY = "1 day"
"""`last_seen_at` is refreshed at most this often per article: most polls repeat what is known."""


def _title_md5(article: Article) -> str | None:
    return None if article.entry.md5 == article.name else article.entry.md5


COLUMNS = (
    Column("md5", "text", attrgetter("name")),
    Column("feed_id", "bigint", attrgetter("feed_id")),
    Column("content_hash", "text", attrgetter("entry.content_hash"), follows_text=True),
    Column("url", "text", attrgetter("entry.url")),
    Column("canonical", "uuid", attrgetter("canonical")),
    Column("duplicate_of", "text", attrgetter("duplicate_of")),
    Column("duplicate_kind", "text", attrgetter("duplicate_kind")),
    Column("duplicate_score", "real", attrgetter("duplicate_score")),
    Column("entry_key", "uuid", attrgetter("key")),
    Column("title_md5", "text", _title_md5, follows_text=True),
)
"""The columns of `feed_items` that an article brings, beside `first_seen_at` and `last_seen_at`."""

_IDENTITY = """
SELECT md5 AS name, feed_id, coalesce(title_md5, md5) AS title_md5, content_hash,
    replace(entry_key::text, '-', '') AS key
"""
_ROWS = f"""
{_IDENTITY}, updates, first_seen_at = last_seen_at AS is_brief,
    last_seen_at < %(now)s - %(every)s::interval AS is_due
FROM
"""
_READ = f"""
{_ROWS} feed_items WHERE md5 = ANY(%(titles)b::text[])
UNION {_ROWS} feed_items WHERE title_md5 = ANY(%(titles)b::text[])
UNION {_ROWS} unnest(%(feeds)b::bigint[], %(keys)b::text[]::uuid[]) AS wanted (feed_id, entry_key)
    JOIN feed_items USING (feed_id, entry_key)
"""

_TEXT = tuple(column for column in COLUMNS if column.follows_text or column.name == "md5")

_INSERT = (
    insert_statement("feed_items", COLUMNS, set_to_now=["first_seen_at", "last_seen_at"])
    + " ON CONFLICT (md5) DO NOTHING RETURNING md5"
)


async def read_ledger(connection: Connection, documents: Iterable[Document], now: datetime) -> Ledger:
    """Return every row that may be the article of an entry: by key, or by link and title (present or first ones).

    The feeds are locked, and nobody else writes their keys: what is read holds until the commit.
    """
    titles: dict[str, None] = {}
    keys: dict[tuple[int, str], None] = {}
    for document in documents:
        titles.update((entry.md5, None) for entry in document.entries)
        keys.update(((document.feed_id, key), None) for key in document.keys if key)
    if not titles:
        return Ledger()
    cursor = await connection.execute(
        _READ.encode(),
        {
            "titles": list(titles),
            "feeds": [feed_id for feed_id, _ in keys],
            "keys": [key for _, key in keys],
            "now": now,
            "every": LAST_SEEN_EVERY,
        },
    )
    return Ledger(Row(**row) for row in await cursor.fetchall())


async def read_named(connection: Connection, names: Iterable[str]) -> dict[str, tuple[Row, str]]:
    """Return the articles of these names, each with its link; of their rows what tells which article an entry is."""
    cursor = await connection.execute(
        f"{_IDENTITY}, url FROM feed_items WHERE md5 = ANY(%b::text[])".encode(), [list(names)]
    )
    found: dict[str, tuple[Row, str]] = {}
    for row in await cursor.fetchall():
        url = row.pop("url")
        found[row["name"]] = Row(**row), url
    return found


async def find_originals(connection: Connection, articles: Sequence[Article]) -> None:
    """Set `duplicate_of` to the first article with the same canonical URL: the ledger's, else one of `articles`.

    If the first one is a near-duplicate, its original is taken.
    """
    canonical = {article.canonical for article in articles if article.canonical}
    if not canonical:
        return
    cursor = await connection.execute(
        """
        SELECT DISTINCT ON (canonical) replace(canonical::text, '-', '') AS key, coalesce(duplicate_of, md5) AS md5
        FROM feed_items WHERE canonical = ANY(%b::text[]::uuid[]) ORDER BY canonical, first_seen_at, md5
        """,
        [list(canonical)],
    )
    first: dict[str, str] = {row["key"]: row["md5"] for row in await cursor.fetchall()}
    for article in articles:
        if article.canonical and (original := first.setdefault(article.canonical, article.name)) != article.name:
            article.duplicate_of, article.duplicate_kind = original, "address"


async def insert_items(connection: Connection, articles: Sequence[Article], now: datetime) -> set[str]:
    """Insert rows for unknown articles, given by name; return those that no other writer has inserted meanwhile."""
    inserted: set[str] = set()
    for some in chunks(articles):
        cursor = await connection.execute(_INSERT.encode(), {"now": now, **arrays(COLUMNS, some)})
        inserted |= {row["md5"] for row in await cursor.fetchall()}
    return inserted


async def note_seen(connection: Connection, names: Sequence[str], keys: Mapping[str, str], now: datetime) -> set[str]:
    """Lock the rows of known articles that have to be written, in order; return the names of those that are there.

    Args:
        connection: in the writer's transaction.
        names: of the articles.
        keys: new keys of some of them.
        now: when they were seen.
    """
    if not names:
        return set()
    cursor = await connection.execute(
        "SELECT md5 FROM feed_items WHERE md5 = ANY(%b::text[]) ORDER BY md5 FOR UPDATE", [names]
    )
    locked = [row["md5"] for row in await cursor.fetchall()]
    if locked:
        await connection.execute(
            """
            UPDATE feed_items SET last_seen_at = %(now)s, entry_key = coalesce(seen.key, entry_key)
            FROM unnest(%(names)b::text[], %(keys)b::text[]::uuid[]) AS seen (md5, key) WHERE feed_items.md5 = seen.md5
            """,
            {"now": now, "names": locked, "keys": [keys.get(name) for name in locked]},
        )
    return set(locked)


async def update_items(connection: Connection, articles: Sequence[Article]) -> list[Article]:
    """Give locked rows their new text and title; return the articles that could still change, with their revision."""
    if not articles:
        return []
    cursor = await connection.execute(
        """
        UPDATE feed_items SET content_hash = article.content_hash, title_md5 = article.title_md5, updates = updates + 1
        FROM unnest(%(md5)b::text[], %(content_hash)b::text[], %(title_md5)b::text[])
            AS article (md5, content_hash, title_md5)
        WHERE feed_items.md5 = article.md5 AND updates < %(most)s
        RETURNING feed_items.md5, updates, duplicate_of, duplicate_kind, duplicate_score
        """,
        {"most": MAX_UPDATES, **arrays(_TEXT, articles)},
    )
    changed = {row["md5"]: row for row in await cursor.fetchall()}
    for article in articles:
        if row := changed.get(article.name):
            article.revision, article.duplicate_of = row["updates"], row["duplicate_of"]
            article.duplicate_kind = row["duplicate_kind"] or ("address" if article.duplicate_of else None)
            article.duplicate_score = row["duplicate_score"]
    return [article for article in articles if article.name in changed]
