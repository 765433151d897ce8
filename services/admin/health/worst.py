"""Which hosts have the most feeds that fail."""

from __future__ import annotations

from dataclasses import dataclass

from services.admin.feeds.states import FAILING
from services.admin.health.hosts import IN_TROUBLE
from services.admin.health.looks import Look, bound
from shared.database.postgres import Database

KEEP_SECONDS = 30.0
PATIENCE_SECONDS = 5.0

MOST_HOSTS = 5

_WORST = f"""
SELECT politeness_group AS host, count(*) AS failing, mode() WITHIN GROUP (ORDER BY last_outcome) AS outcome
FROM feeds WHERE {IN_TROUBLE} AND {FAILING}
GROUP BY politeness_group ORDER BY failing DESC, politeness_group LIMIT {MOST_HOSTS}
"""  # noqa: S608 - our own text


@dataclass(frozen=True)
class WorstHost:
    """A host with feeds that fail."""

    host: str
    failing: int
    """Feeds."""
    outcome: str | None
    """The last outcome of most of them."""


def watch_worst(database: Database) -> Look[list[WorstHost]]:
    """Return what finds the hosts with the most feeds that fail, the worst first, once for all that ask."""

    async def find() -> list[WorstHost]:
        async with database.transaction() as connection:
            await bound(connection, PATIENCE_SECONDS)
            cursor = await connection.execute(_WORST.encode())
            return [WorstHost(**row) for row in await cursor.fetchall()]

    return Look(find, what="PostgreSQL", keep_seconds=KEEP_SECONDS, patience_seconds=PATIENCE_SECONDS)
