from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from services.scheduler.store import claim_due_feeds
from services.scheduler.tick import Tick
from services.scheduler.ticker import Ticker
from shared.errors import BrokerUnavailable
from shared.messages import FetchFeed
from shared.postgres import Database
from shared.topology import build_topology
from tests.fakes.memory_broker import MemoryBroker

TOPOLOGY = build_topology(fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url, size=10).open() as opened:
        yield opened


def add(database_url: str, count: int, **columns: object) -> None:
    names = ["url", "politeness_group", *columns]
    with psycopg.connect(database_url) as connection, connection.cursor() as cursor:
        (start,) = connection.execute("SELECT count(*) FROM feeds").fetchone() or (0,)
        cursor.executemany(
            f"INSERT INTO feeds ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})".encode(),
            [(f"http://h{n}.example/", f"h{n}.example", *columns.values()) for n in range(start, start + count)],
        )


async def claim(database: Database, limit: int = 100, seconds: float = 60.0) -> list[FetchFeed]:
    async with database.transaction() as connection:
        return await claim_due_feeds(connection, limit=limit, claim_seconds=seconds)


async def test_only_what_is_due_is_claimed(database: Database, database_url: str) -> None:
    now = datetime.now(UTC)
    add(database_url, 1, next_fetch_at=now - timedelta(seconds=1))
    add(database_url, 1, next_fetch_at=now + timedelta(hours=1))
    add(database_url, 1, enabled=False)
    add(database_url, 1, claim_expires_at=now + timedelta(hours=1))
    add(database_url, 1, claim_expires_at=now - timedelta(seconds=1))
    assert sorted(job.url for job in await claim(database)) == ["http://h0.example/", "http://h4.example/"]


async def test_a_feed_that_makes_no_job_is_disabled_with_the_reason_and_stops_nobody(
    database: Database, database_url: str
) -> None:
    add(database_url, 1, source_type="carrier pigeon")
    add(database_url, 1, source_config='{"headers": {"x": ["y"]}}')
    add(database_url, 1, source_config='["no", "object"]')
    add(database_url, 1)
    jobs = await claim(database)
    assert sorted(job.url for job in jobs) == ["http://h1.example/", "http://h3.example/"]
    async with database.transaction() as connection:
        found = await connection.execute("SELECT disabled_reason AS why FROM feeds WHERE NOT enabled ORDER BY id")
        pigeon, config = [row["why"] for row in await found.fetchall()]
    assert "carrier pigeon" in pigeon
    assert "source_config" in config


async def test_priority_goes_first_then_the_longest_overdue(database: Database, database_url: str) -> None:
    now = datetime.now(UTC)
    for priority, minutes in ((0, 5), (0, 9), (3, 1)):
        add(database_url, 1, priority=priority, next_fetch_at=now - timedelta(minutes=minutes))
    urls = [(await claim(database, limit=1))[0].url for _ in range(3)]
    assert urls == ["http://h2.example/", "http://h1.example/", "http://h0.example/"]


async def test_the_job_carries_all_that_the_fetcher_needs(database: Database, database_url: str) -> None:
    add(database_url, 1, etag='"e"', last_modified="lm", validators_url="http://v/", body_hash="h")
    (job,) = await claim(database, seconds=60)
    assert (job.etag, job.last_modified, job.validators_url, job.body_hash) == ('"e"', "lm", "http://v/", "h")
    assert job.group == "h0.example"
    assert 58 < (job.not_after - datetime.now(UTC)).total_seconds() <= 60


@pytest.mark.parametrize("workers", [2, 8])
async def test_schedulers_side_by_side_get_every_feed_exactly_once(
    database: Database, database_url: str, workers: int
) -> None:
    add(database_url, 400)

    async def work() -> list[int]:
        mine: list[int] = []
        while jobs := await claim(database, limit=17):
            mine += [job.feed_id for job in jobs]
        return mine

    claimed = [id_ for mine in await asyncio.gather(*(work() for _ in range(workers))) for id_ in mine]
    assert len(claimed) == len(set(claimed)) == 400


async def test_a_tick_publishes_what_it_claims(database: Database, database_url: str) -> None:
    add(database_url, 5)
    broker = MemoryBroker()
    tick = Tick(database, TOPOLOGY, batch=3, claim_seconds=60, high_water=100)
    async with broker.connect(TOPOLOGY) as session:
        assert [await tick.run(session) for _ in range(3)] == [3, 2, 0]
    jobs = [FetchFeed.decode(p.body, p.content_encoding) for p in broker.publications("fetcher")]
    assert sorted(job.url for job in jobs) == [f"http://h{n}.example/" for n in range(5)]


async def test_publishing_pauses_above_the_high_water_mark(database: Database, database_url: str) -> None:
    add(database_url, 10)
    broker = MemoryBroker()
    tick = Tick(database, TOPOLOGY, batch=100, claim_seconds=60, high_water=4)
    async with broker.connect(TOPOLOGY) as session:
        assert [await tick.run(session) for _ in range(2)] == [4, 0]
    assert len(await claim(database)) == 6


async def test_a_claim_whose_job_could_not_be_published_is_given_back(database: Database, database_url: str) -> None:
    add(database_url, 3)
    broker = MemoryBroker()
    broker.queues.clear()
    tick = Tick(database, TOPOLOGY, batch=100, claim_seconds=60, high_water=100)
    async with broker.connect(TOPOLOGY) as session:
        broker.refusing.add("fetcher")
        with pytest.raises(BrokerUnavailable):
            await tick.run(session)
    assert len(await claim(database)) == 3


async def test_the_ticker_survives_a_lost_session_and_stops_when_told(database: Database, database_url: str) -> None:
    add(database_url, 2)
    broker = MemoryBroker()
    tick = Tick(database, TOPOLOGY, batch=1, claim_seconds=60, high_water=100)
    ticker, stop = Ticker(broker, TOPOLOGY, tick, full=1, seconds=0.01), asyncio.Event()
    running = asyncio.create_task(ticker.run(stop))
    async with asyncio.timeout(10):
        while "fetcher" not in broker.queues or len(broker.bodies("fetcher")) < 2:
            await asyncio.sleep(0.01)
        assert ticker.check() is None
        broker.drop_connections()
        add(database_url, 1)
        while len(broker.bodies("fetcher")) < 3:
            await asyncio.sleep(0.01)
        stop.set()
        await running
    assert ticker.check() is not None


async def test_a_scheduler_killed_between_claim_and_publish_loses_nothing(
    database: Database, database_url: str
) -> None:
    add(database_url, 1)
    (lost,) = await claim(database, seconds=0.05)
    async with asyncio.timeout(5):
        while not (again := await claim(database)):
            await asyncio.sleep(0.01)
    assert (again[0].feed_id, again[0].claim_id == lost.claim_id) == (lost.feed_id, False)
