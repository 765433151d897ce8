"""What the demo sees while it runs, and how it counts at the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from local.farm import Farm, FeedKind
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import Topology
from shared.errors import Unavailable
from shared.waiting import pause

LOOK_SECONDS = 0.25


@dataclass(frozen=True)
class Snapshot:
    """The pipeline at one moment; `queues` are ready messages by queue."""

    elapsed: float = 0.0
    wave: int = 0
    queues: Mapping[str, int] = field(default_factory=dict)
    fetches: int = 0
    articles: int = 0
    expected: int = 0
    complete: bool = False
    """All that was published so far is in the table, and every feed has come to its outcome."""


@asynccontextmanager
async def watching_queues(broker: RabbitMQ, topology: Topology) -> AsyncIterator[Mapping[str, int]]:
    """Yield the ready messages by queue, kept up to date for the length of the block, whatever the broker does."""
    depths = {queue.name: 0 for queue in topology.queues}
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
        done.set()  # told rather than cancelled: the AMQP library may take a cancellation for its own
        await asyncio.wait({watching})


async def take_snapshot(depths: Mapping[str, int], database_url: str, farm: Farm, elapsed: float) -> Snapshot:
    """Look at the tables. Raises psycopg.OperationalError while the database is away."""
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


@dataclass(frozen=True)
class KindCount:
    """The feeds of one kind."""

    kind: str
    feeds: int
    expected: int
    delivered: int
    attempts: int
    outcomes: dict[str, int]


@dataclass(frozen=True)
class Count:
    """The end of a demo: what was to be delivered against what is in `pending_articles`."""

    expected: int
    delivered: int
    lost: int
    duplicated: int
    unexpected: int
    feeds: int
    hosts: int
    attempts: int
    elapsed_seconds: float
    kinds: list[KindCount]

    @property
    def perfect(self) -> bool:
        """Whether every expected article is there exactly once, and nothing else."""
        return self.lost == self.duplicated == self.unexpected == 0 and self.delivered == self.expected


_ARTICLES = "SELECT url, title FROM pending_articles WHERE feed_id = ANY(%s)"
_ATTEMPTS = """
SELECT feed_id, outcome, count(*), coalesce(sum(items_new), 0)::integer
FROM feed_fetch_log WHERE feed_id = ANY(%s) GROUP BY 1, 2
"""


def count(farm: Farm, ids: Mapping[str, int], database_url: str, *, elapsed: float) -> Count:
    """Compare the farm's ledger with the table, article by article (URL and title)."""
    with psycopg.connect(database_url) as connection:
        # One look at both tables: what is written in between would seem to have come twice.
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        feeds = [list(ids.values())]
        rows = Counter(connection.execute(_ARTICLES, feeds).fetchall())
        outcomes: dict[int, Counter[str]] = {id_: Counter() for id_ in ids.values()}
        brought = 0
        for id_, outcome, number, new in connection.execute(_ATTEMPTS, feeds).fetchall():
            outcomes[id_][outcome] = number
            brought += new
    expected = set(farm.expected_articles().items())
    urls = Counter(url for url, _ in rows)
    return Count(
        expected=len(expected),
        delivered=len(expected & rows.keys()),
        lost=len(expected - rows.keys()),
        # Two rows of one URL; and articles that came in twice, which the table's primary key would hide.
        duplicated=sum(number - 1 for number in urls.values()) + max(brought - len(rows), 0),
        unexpected=len(rows.keys() - expected),
        feeds=len(farm.specs),
        hosts=len(farm.hosts),
        attempts=sum(counter.total() for counter in outcomes.values()),
        elapsed_seconds=round(elapsed, 1),
        kinds=[_count_kind(farm, kind, ids, rows, outcomes) for kind in FeedKind],
    )


def _count_kind(
    farm: Farm,
    kind: FeedKind,
    ids: Mapping[str, int],
    rows: Mapping[tuple[str, str], int],
    outcomes: Mapping[int, Counter[str]],
) -> KindCount:
    specs = [spec for spec in farm.specs if spec.kind is kind]
    expected = {article for spec in specs for article in farm.expected_of(spec).items()}
    total: Counter[str] = sum((outcomes[ids[spec.name]] for spec in specs), Counter())
    return KindCount(
        kind=kind.value,
        feeds=len(specs),
        expected=len(expected),
        delivered=len(expected & rows.keys()),
        attempts=total.total(),
        outcomes=dict(total.most_common()),
    )
