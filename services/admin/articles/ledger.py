"""The ledger of all articles that ever came: lists it by feed, and looks articles up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from services.admin.articles.pending import find_feed
from shared.database.postgres import Connection

_LEDGER_COLUMNS: LiteralString = "md5, feed_id, url, first_seen_at, last_seen_at, updates, duplicate_of"

# Articles that were known by the id of their entry, by an index; then others, as far as the feed lists them at present.
_LEDGER_OF_FEED: LiteralString = f"""
SELECT * FROM (
    (SELECT {_LEDGER_COLUMNS}, entry_key::text AS entry_key FROM feed_items
     WHERE feed_id = %(feed)s AND entry_key IS NOT NULL AND NOT %(is_last)s
        AND (%(entry_key)s::uuid IS NULL OR (entry_key, md5) > (%(entry_key)s, %(after)s))
     ORDER BY entry_key, md5 LIMIT %(limit)s)
    UNION ALL
    (SELECT {_LEDGER_COLUMNS}, '' FROM feed_items
     WHERE md5 IN (
            SELECT encode(substr(names, 1 + 16 * place, 16), 'hex')
            FROM feed_listings, generate_series(0, octet_length(names) / 16 - 1) AS place
            WHERE feed_listings.feed_id = %(feed)s
        )
        AND feed_id = %(feed)s AND entry_key IS NULL AND (NOT %(is_last)s OR md5 > %(after)s)
     ORDER BY md5 LIMIT %(limit)s)
) AS in_order LIMIT %(limit)s
"""  # noqa: S608 - our own text

_LEDGER_OF_KEYS: LiteralString = f"SELECT {_LEDGER_COLUMNS} FROM feed_items WHERE md5 = ANY(%s) ORDER BY md5"  # noqa: S608


async def list_ledger(
    connection: Connection, feed: str, limit: int, after: tuple[str, str] | None = None, *, exact: bool = False
) -> list[dict[str, Any]]:
    """Return the articles that a feed ever brought, in the order of the digests of their entries' ids.

    Of articles whose entry has no id there are those that the feed lists at present.

    Args:
        connection: to the database.
        feed: its id or URL.
        limit: so many at most.
        after: `entry_key` ("": none) and `md5` of the row before.
        exact: as `find_feed`.

    Raises:
        NotFound: there is no feed of that URL.
    """
    entry_key, md5 = after or (None, None)
    place = {"entry_key": entry_key or None, "is_last": entry_key == "", "after": md5}
    values = {"feed": await find_feed(connection, feed, exact=exact), "limit": limit, **place}
    return await (await connection.execute(_LEDGER_OF_FEED, values, prepare=False)).fetchall()


async def list_arrivals(connection: Connection, limit: int) -> list[dict[str, Any]]:
    """Return the latest fetches that brought articles: `feed_id`, `started_at`, and how many, `items_new`."""
    cursor = await connection.execute(
        "SELECT feed_id, started_at, items_new FROM feed_fetch_log WHERE items_new > 0"
        " ORDER BY started_at DESC LIMIT %s",
        [limit],
    )
    return await cursor.fetchall()


async def read_ledger(connection: Connection, md5s: Sequence[str]) -> list[dict[str, Any]]:
    """Return the ledger's rows of these articles, pending or done long ago; none of those that never came."""
    return await (await connection.execute(_LEDGER_OF_KEYS, [list(md5s)])).fetchall()
