"""The state of the pipeline while the demo runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from local.farm import Farm
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.shards import is_front
from shared.broker.topology import Topology
from shared.errors import Unavailable
from shared.waiting import pause

LOOK_SECONDS = 0.25


@dataclass(frozen=True)
class Snapshot:
    """The pipeline at one moment. `queues` has the number of ready messages by queue."""

    elapsed: float = 0.0
    wave: int = 0
    queues: Mapping[str, int] = field(default_factory=dict)
    fetches: int = 0
    articles: int = 0
    expected: int = 0
    complete: bool = False
    """All articles published so far are in the table, and every feed has its final outcome."""


@asynccontextmanager
async def watching_queues(broker: RabbitMQ, topology: Topology) -> AsyncIterator[Mapping[str, int]]:
    """Yield the number of ready messages by queue, kept up to date during the block even if the broker restarts."""
    depths = {queue.name: 0 for queue in topology.queues if not is_front(queue.name)}  # the demo fires nothing
    done = asyncio.Event()

    async def watch() -> None:
        while not done.is_set():
            with contextlib.suppress(Unavailable):
                async with broker.connect(None) as session:
                    while not done.is_set():
                        for name in depths:
                            depths[name] = await session.count_ready(name) or 0
                        await pause(LOOK_SECONDS, done)
            await pause(4 * LOOK_SECONDS, done)

    watching = asyncio.create_task(watch())
    try:
        yield depths
    finally:
        done.set()  # not cancelled: the AMQP library may mistake the cancellation for its own
        await asyncio.wait({watching})


async def take_snapshot(depths: Mapping[str, int], database_url: str, farm: Farm, elapsed: float) -> Snapshot:
    """Return the present state. Raises psycopg.OperationalError while the database is away."""
    expected = set(farm.expected_articles().items())
    seen = await asyncio.to_thread(_look, database_url)
    return Snapshot(
        elapsed=elapsed,
        wave=farm.wave,
        queues=dict(depths),
        fetches=seen["attempts"],
        articles=len(seen["articles"]),
        expected=len(expected),
        complete=expected <= seen["articles"] and seen["unvisited"] == 0 and seen["gone_pending"] == 0,
    )


def _look(database_url: str) -> dict[str, Any]:
    with psycopg.connect(database_url) as connection:
        return {
            "attempts": _one(connection, "SELECT count(*) FROM feed_fetch_log"),
            "articles": {(url, title) for url, title in connection.execute("SELECT url, title FROM pending_articles")},
            "unvisited": _one(
                connection,
                "SELECT count(*) FROM feeds WHERE NOT EXISTS (SELECT 1 FROM feed_fetch_log WHERE feed_id = feeds.id)",
            ),
            "gone_pending": _one(connection, "SELECT count(*) FROM feeds WHERE last_outcome = 'gone' AND enabled"),
        }


def _one(connection: psycopg.Connection, query: str) -> int:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])
