"""Names of feeds, for lists of articles."""

from __future__ import annotations

from collections.abc import Iterable

from shared.database.postgres import Connection
from shared.observability.secrets import mask_credentials


async def name_feeds(connection: Connection, ids: Iterable[int]) -> dict[int, str]:
    """Return how people know these feeds: name, title or URL. One that was removed has none."""
    cursor = await connection.execute(
        "SELECT id, coalesce(nullif(name, ''), nullif(title, ''), url) AS name FROM feeds WHERE id = ANY(%s)",
        [sorted(set(ids))],
    )
    return {row["id"]: mask_credentials(row["name"]) for row in await cursor.fetchall()}
