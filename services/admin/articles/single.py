"""One article: all that is known of it."""

from __future__ import annotations

from typing import Any, LiteralString

from services.admin.articles.pending import STATE_OF_ROW
from services.admin.errors import NotFound
from services.admin.ids import KEY_CHARACTERS, PREFIX_CHARACTERS, the_one
from shared.database.postgres import Connection


async def read_article(connection: Connection, key: str) -> dict[str, Any]:
    """Return all columns of an article, pending or dead, with its `state`. `key` is its md5, or its beginning.

    Raises:
        NotFound: there is none.
        Conflict: the beginning fits several.
    """
    md5 = await _find_key(connection, key)
    query: LiteralString = f"SELECT {STATE_OF_ROW}, pending_articles.* FROM pending_articles WHERE md5 = %s"  # noqa: S608
    row = await (await connection.execute(query, [md5])).fetchone()
    if row is None:
        row = await (
            await connection.execute("SELECT 'dead' AS state, * FROM dead_articles WHERE md5 = %s", [md5])
        ).fetchone()
    if row is None:
        raise NotFound(
            f"there is no article {key[:100]}, pending or dead: it was acknowledged, or never came"
            f" (give its MD5, or at least {PREFIX_CHARACTERS} characters of the beginning)"
        )
    return row


async def _find_key(connection: Connection, key: str) -> str:
    if not PREFIX_CHARACTERS <= len(key) < KEY_CHARACTERS or not key.isalnum() or not key.isascii():
        return key
    cursor = await connection.execute(
        """
        (SELECT md5 FROM pending_articles WHERE md5 >= %(key)s AND md5 < %(key)s || 'g' ORDER BY md5 LIMIT 3)
        UNION
        (SELECT md5 FROM dead_articles WHERE md5 >= %(key)s AND md5 < %(key)s || 'g' ORDER BY md5 LIMIT 3)
        ORDER BY md5 LIMIT 3
        """,
        {"key": key.lower()},
    )
    return the_one(key, [row["md5"] for row in await cursor.fetchall()]) or key
