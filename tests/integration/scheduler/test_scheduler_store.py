from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from services.batch.service import Claims
from services.scheduler.store import CLAIM_LOCK, FULL_EVERY_SECONDS, claim_due_feeds, must_read_all, release_claims
from services.scheduler.tick import IN_FLIGHT, Tick, Ticker
from shared.broker.topology import build_topology
from shared.clock import ServerClock
from shared.database.postgres import Database
from shared.errors import BrokerUnavailable, Unconfirmed
from shared.wire.jobs import FetchFeed
from tests.fakes.memory_broker import MemoryBroker

TOPOLOGY = build_topology(fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=1)


def add(database_url: str, count: int, **columns: object) -> None:
    names = ["url", "politeness_group", *columns]
    with psycopg.connect(database_url) as connection, connection.cursor() as cursor:
        (start,) = connection.execute("SELECT count(*) FROM feeds").fetchone() or (0,)
        cursor.executemany(
            f"INSERT INTO feeds ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})".encode(),
            [(f"http://h{n}.example/", f"h{n}.example", *columns.values()) for n in range(start, start + count)],
        )


async def claim(
    database: Database, limit: int = 100, seconds: float = 60.0, per_group: int | None = None
) -> list[FetchFeed]:
    async with database.transaction() as connection:
        claimed = await claim_due_feeds(connection, limit=limit, claim_seconds=seconds, per_group=per_group)
    return claimed.jobs


def add_crowd(database_url: str, group: str, count: int, *, due_minutes: int, priority: int = 0) -> None:
    """Add feeds of one host that have been due for so long and up to a minute less."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            """
            INSERT INTO feeds (url, politeness_group, priority, next_fetch_at)
            SELECT format('http://%%s/%%s', %(group)s::text, n), %(group)s, %(priority)s,
                now() - make_interval(mins => %(minutes)s) + n * interval '1 minute' / %(count)s
            FROM generate_series(1, %(count)s) AS n
            """,
            {"group": group, "priority": priority, "minutes": due_minutes, "count": count},
        )


def groups(jobs: list[FetchFeed]) -> Counter[str]:
    return Counter(job.group for job in jobs)


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
    assert sorted(job.url for job in jobs) == ["http://h0.example/", "http://h1.example/", "http://h3.example/"]
    assert {job.source_type for job in jobs} == {"carrier pigeon", "feed"}, "only the fetcher knows source types"
    async with database.transaction() as connection:
        found = await connection.execute("SELECT disabled_reason AS why FROM feeds WHERE NOT enabled ORDER BY id")
        (config,) = [row["why"] for row in await found.fetchall()]
    assert "source_config" in config


@pytest.mark.parametrize(
    "absurd",
    [
        *("next_fetch_at = '-infinity'", "next_fetch_at = 'infinity'", "next_fetch_at = '0044-03-15 BC'"),
        *("claim_expires_at = 'infinity'", "interval_seconds = 'NaN'", "interval_seconds = 'Infinity'"),
        *("shortest_seconds = 1e9", "longest_seconds = 'NaN'"),
    ],
)
async def test_what_no_service_can_count_with_is_refused_by_the_table(
    database: Database, database_url: str, absurd: str
) -> None:
    add(database_url, 1)
    with pytest.raises(psycopg.errors.CheckViolation), psycopg.connect(database_url) as connection:
        connection.execute(f"UPDATE feeds SET {absurd}".encode())
    assert len(await claim(database)) == 1


async def test_priority_goes_first_then_the_longest_overdue(database: Database, database_url: str) -> None:
    now = datetime.now(UTC)
    for priority, minutes in ((0, 5), (0, 9), (3, 1)):
        add(database_url, 1, priority=priority, next_fetch_at=now - timedelta(minutes=minutes))
    urls = [(await claim(database, limit=1))[0].url for _ in range(3)]
    assert urls == ["http://h2.example/", "http://h1.example/", "http://h0.example/"]


async def test_hosts_take_turns_and_a_crowd_keeps_nobody_waiting(database: Database, database_url: str) -> None:
    add_crowd(database_url, "crowd.example", 14_000, due_minutes=90)
    add_crowd(database_url, "mob.example", 6_000, due_minutes=60)
    add_crowd(database_url, "pair.example", 2, due_minutes=2)
    add(database_url, 100, next_fetch_at=datetime.now(UTC) - timedelta(seconds=1))
    jobs = await claim(database, limit=500)
    assert len(jobs) == 500
    found = groups(jobs)
    assert (found["crowd.example"], found["mob.example"], found["pair.example"]) == (199, 199, 2)
    assert [job.group for job in jobs[:3]] == ["crowd.example", "mob.example", "pair.example"]
    assert len({job.group for job in jobs[:103]}) == 103  # everybody's first before anybody's second


async def test_those_who_stand_between_a_crowd_are_counted_once(database: Database, database_url: str) -> None:
    add_crowd(database_url, "crowd.example", 2_700, due_minutes=9)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE feeds SET politeness_group = format('h%s.example', id) WHERE id % 10 = 0")
    jobs = await claim(database, limit=900)
    assert len({job.feed_id for job in jobs}) == len(jobs) == 900
    assert len(groups(jobs)) == 271


async def test_hosts_whose_share_is_nearly_used_up_keep_nobody_waiting(database: Database, database_url: str) -> None:
    for n in range(8):
        add_crowd(database_url, f"full{n}.example", 700, due_minutes=90)
    with psycopg.connect(database_url) as connection:
        connection.execute(
            """
            UPDATE feeds SET issued_at = now(), claim_id = gen_random_uuid(), claim_expires_at = now() + '1 hour'
            WHERE id IN (
                SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY politeness_group) AS nth FROM feeds) AS f
                WHERE nth <= 399
            )
            """
        )
    add(database_url, 600, next_fetch_at=datetime.now(UTC) - timedelta(seconds=1))
    jobs = await claim(database, limit=500, per_group=400)
    assert len(jobs) == 500
    assert {group: jobs for group, jobs in groups(jobs).items() if group.startswith("full")} == {}


async def test_many_crowds_one_behind_the_other_are_looked_through_once(database: Database, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:  # as a list that was sorted by host is added
        connection.execute(
            """
            INSERT INTO feeds (url, politeness_group, next_fetch_at)
            SELECT format('http://h%s.example/%s', n / 300, n), format('h%s.example', n / 300), now() - '1 h'::interval
            FROM generate_series(1, 90000) AS n
            """
        )
    async with asyncio.timeout(30):
        jobs = await claim(database, limit=500, per_group=400)
    assert len(jobs) == 500
    assert max(groups(jobs).values()) <= 6


async def test_each_group_goes_on_from_where_its_jobs_under_way_are(database: Database, database_url: str) -> None:
    add_crowd(database_url, "crowd.example", 50, due_minutes=5)
    assert len(await claim(database, limit=10)) == 10
    add_crowd(database_url, "late.example", 50, due_minutes=2)
    assert groups(await claim(database, limit=10)) == {"late.example": 10}
    assert groups(await claim(database, limit=10)) == {"late.example": 5, "crowd.example": 5}


async def test_a_crowd_of_low_priority_waits_for_one_of_high(database: Database, database_url: str) -> None:
    add_crowd(database_url, "low.example", 2_000, due_minutes=90)
    add_crowd(database_url, "high.example", 1_200, due_minutes=2, priority=5)
    add_crowd(database_url, "highest.example", 10, due_minutes=2, priority=9)
    jobs = await claim(database, limit=1_300)
    assert groups(jobs) == {"highest.example": 10, "high.example": 1_200, "low.example": 90}
    assert [job.group for job in jobs] == ["highest.example"] * 10 + ["high.example"] * 1_200 + ["low.example"] * 90


async def test_a_group_has_so_many_jobs_under_way_and_those_in_retry_are_not_among_them(
    database: Database, database_url: str
) -> None:
    add_crowd(database_url, "crowd.example", 20, due_minutes=5)
    add_crowd(database_url, "crowd.example:8080", 3, due_minutes=5, priority=1)
    first = await claim(database, per_group=4)
    assert groups(first) == {"crowd.example": 4, "crowd.example:8080": 3}
    assert await claim(database, per_group=4) == []
    async with database.transaction() as connection:  # as the writer does when it hears of a first attempt
        await connection.execute("UPDATE feeds SET issued_at = NULL WHERE id = %s", [first[-1].feed_id])
    assert groups(await claim(database, per_group=4)) == {"crowd.example": 1}


async def test_what_a_writer_holds_is_passed_over_and_waited_for_by_nobody(
    database: Database, database_url: str
) -> None:
    add(database_url, 3)
    async with database.transaction() as writer:
        cursor = await writer.execute("SELECT id FROM feeds ORDER BY id LIMIT 1 FOR NO KEY UPDATE")
        (held,) = await cursor.fetchall()
        async with asyncio.timeout(30):
            jobs = await claim(database)
    assert len(jobs) == 2
    assert [job.feed_id for job in await claim(database)] == [held["id"]]


async def test_an_expired_claim_is_counted(database: Database, database_url: str) -> None:
    add(database_url, 2)
    await claim(database, limit=1)
    async with database.transaction() as connection:
        await connection.execute(
            "UPDATE feeds SET claim_expires_at = now() - interval '1 s' WHERE claim_id IS NOT NULL"
        )
        claimed = await claim_due_feeds(connection, limit=10, claim_seconds=60)
    assert (claimed.feeds, claimed.expired, len(claimed.jobs)) == (2, 1, 2)


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


@pytest.mark.parametrize(
    ("outcome", "probed_hours_ago", "lies", "drawn", "is_probe"),
    [
        ("not_modified", None, False, 0.009, True),
        ("not_modified", None, False, 0.011, False),
        ("not_modified", 23, False, 0.0, False),
        ("not_modified", 25, False, 0.0, True),
        ("not_modified", 25, True, 0.99, True),
        ("not_modified", 23, True, 0.0, False),
        ("fetched", None, True, 0.0, False),
        ("throttled", 25, True, 0.0, False),
        (None, None, False, 0.0, False),
    ],
)
async def test_one_poll_in_a_hundred_after_a_304_looks_whether_it_was_true(
    database: Database,
    database_url: str,
    outcome: str | None,
    probed_hours_ago: int | None,
    lies: bool,
    drawn: float,
    is_probe: bool,
) -> None:
    now = datetime.now(UTC)
    probed_at = now - timedelta(hours=probed_hours_ago) if probed_hours_ago else None
    add(database_url, 1, last_outcome=outcome, probed_at=probed_at, lying_since=now if lies else None)
    async with database.transaction() as connection:
        claimed = await claim_due_feeds(connection, limit=1, claim_seconds=60, chance=lambda: drawn)
    assert [job.probe for job in claimed.jobs] == [is_probe]


@pytest.mark.parametrize("workers", [2, 8])
async def test_schedulers_side_by_side_each_get_as_many_as_they_asked_for(
    database: Database, database_url: str, workers: int
) -> None:
    add_crowd(database_url, "crowd.example", 300, due_minutes=5)
    add(database_url, 50 * workers)
    claims = await asyncio.gather(*(claim(database, limit=50) for _ in range(workers)))
    assert [len(jobs) for jobs in claims] == [50] * workers
    assert len({job.feed_id for jobs in claims for job in jobs}) == 50 * workers


async def test_a_scheduler_that_stands_still_in_its_claim_is_thrown_out(database: Database, database_url: str) -> None:
    async with database.transaction() as connection:
        await claim_due_feeds(connection, limit=1, claim_seconds=60)
        cursor = await connection.execute(
            "SELECT current_setting('idle_in_transaction_session_timeout') AS mine, "
            "current_setting('lock_timeout') AS other"
        )
        assert await cursor.fetchone() == {"mine": "10s", "other": "5s"}
        other = await psycopg.AsyncConnection.connect(database_url)
        async with other:
            lock = await other.execute("SELECT pg_try_advisory_xact_lock(%s)", [CLAIM_LOCK])
            assert await lock.fetchone() == (False,)
    async with database.transaction() as connection:  # and nothing of this stays with the connection
        cursor = await connection.execute("SELECT current_setting('idle_in_transaction_session_timeout') AS mine")
        assert await cursor.fetchone() == {"mine": "0"}


async def test_a_tick_publishes_what_it_claims(database: Database, database_url: str) -> None:
    add(database_url, 5)
    broker = MemoryBroker()
    tick = Tick(database, TOPOLOGY, batch=3, claim_seconds=60, high_water=100)
    async with broker.connect(TOPOLOGY) as session:
        assert [await tick.run(session) for _ in range(3)] == [3, 2, 0]
    jobs = [FetchFeed.decode(p.body, p.content_encoding) for p in broker.publications("fetcher.00")]
    assert sorted(job.url for job in jobs) == [f"http://h{n}.example/" for n in range(5)]


async def test_jobs_go_to_the_shards_of_their_hosts_and_the_backlog_is_that_of_all_shards(
    database: Database, database_url: str
) -> None:
    add(database_url, 30)
    topology = build_topology(
        fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=12
    )
    broker = MemoryBroker()
    tick = Tick(database, topology, batch=20, claim_seconds=60, high_water=25)
    async with broker.connect(topology) as session:
        assert [await tick.run(session) for _ in range(3)] == [20, 5, 0]
    found = 0
    for queue in topology.fetcher.queues:
        for publication in broker.publications(queue):
            job = FetchFeed.decode(publication.body, publication.content_encoding)
            assert topology.fetcher.queue_of(job.group) == queue
            found += 1
    assert found == 25


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
        broker.refusing.add("fetcher.00")
        with pytest.raises(BrokerUnavailable):
            await tick.run(session)
    assert len(await claim(database)) == 3


async def test_jobs_without_a_confirm_keep_their_claims_and_are_published_once(
    database: Database, database_url: str
) -> None:
    """A memory alarm that lasts for many ticks."""
    add(database_url, 150)
    broker = MemoryBroker(confirm_seconds=0.02)
    tick = Tick(database, TOPOLOGY, batch=120, claim_seconds=60, high_water=1000)
    async with broker.connect(TOPOLOGY) as session:
        broker.taking.clear()
        for _ in range(5):
            with pytest.raises(Unconfirmed):
                await tick.run(session)
        assert len(await claim(database)) == 50, "20 were never sent, and 30 never claimed; nothing else is free"
        broker.taking.set()
        assert await tick.run(session) == 0
        jobs = [FetchFeed.decode(p.body, p.content_encoding) for p in broker.publications("fetcher.00")]
        assert len({job.feed_id for job in jobs}) == len(jobs) == IN_FLIGHT


async def test_jobs_in_doubt_when_their_session_ends_leave_their_claims_to_run_out(
    database: Database, database_url: str
) -> None:
    add(database_url, 2)
    broker = MemoryBroker(confirm_seconds=0.02)
    tick = Tick(database, TOPOLOGY, batch=100, claim_seconds=60, high_water=1000)
    async with broker.connect(TOPOLOGY) as session:
        broker.taking.clear()
        with pytest.raises(Unconfirmed):
            await tick.run(session)
    broker.taking.set()
    async with broker.connect(TOPOLOGY) as session:
        assert await tick.run(session) == 0
    assert not await claim(database)
    assert len(broker.bodies("fetcher.00")) == 2, "the broker read them after all"


async def test_the_ticker_keeps_its_session_while_jobs_wait_for_their_confirm(
    database: Database, database_url: str
) -> None:
    add(database_url, 3)
    broker = MemoryBroker(confirm_seconds=0.02)
    tick = Tick(database, TOPOLOGY, batch=100, claim_seconds=60, high_water=1000)
    ticker, stop = Ticker(broker, TOPOLOGY, tick, full=100, seconds=0.01), asyncio.Event()
    broker.taking.clear()
    running = asyncio.create_task(ticker.run(stop))
    await asyncio.sleep(0.3)
    broker.taking.set()
    async with asyncio.timeout(30):
        while len(broker.bodies("fetcher.00")) < 3:
            await asyncio.sleep(0.01)
        add(database_url, 1)
        while len(broker.bodies("fetcher.00")) < 4:
            await asyncio.sleep(0.01)
    stop.set()
    await running
    jobs = [FetchFeed.decode(p.body, p.content_encoding) for p in broker.publications("fetcher.00")]
    assert len({job.claim_id for job in jobs}) == len(jobs) == 4


async def test_giving_back_takes_the_way_of_the_ids_and_only_what_is_still_its_own(
    database: Database, database_url: str
) -> None:
    add(database_url, 3)
    jobs = await claim(database)
    with psycopg.connect(database_url) as connection:  # the row of the first feed now stands behind the others'
        connection.execute("UPDATE feeds SET name = 'moved' WHERE id = %s", [min(job.feed_id for job in jobs)])
        connection.execute(
            "UPDATE feeds SET claim_id = gen_random_uuid() WHERE id = %s", [max(job.feed_id for job in jobs)]
        )
    first, second, _ = sorted(job.feed_id for job in jobs)
    async with database.transaction() as writer:
        await writer.execute("SELECT FROM feeds WHERE id = %s FOR NO KEY UPDATE", [first])

        async def give_back() -> None:
            async with database.transaction() as connection:
                await release_claims(connection, jobs)

        releasing = asyncio.create_task(give_back())
        async with asyncio.timeout(30):
            waiting = b"SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            while not (await writer.execute(waiting)).rowcount:
                await asyncio.sleep(0.01)
        # It holds no other row: two that lock in different orders would wait for each other.
        await writer.execute("SELECT FROM feeds WHERE id = %s FOR NO KEY UPDATE NOWAIT", [second])
    await releasing
    assert sorted(job.feed_id for job in await claim(database)) == [first, second]


async def test_the_ticker_survives_a_lost_session_and_stops_when_told(database: Database, database_url: str) -> None:
    add(database_url, 2)
    broker = MemoryBroker()
    tick = Tick(database, TOPOLOGY, batch=1, claim_seconds=60, high_water=100)
    ticker, stop = Ticker(broker, TOPOLOGY, tick, full=1, seconds=0.01), asyncio.Event()
    running = asyncio.create_task(ticker.run(stop))
    async with asyncio.timeout(30):
        while "fetcher.00" not in broker.queues or len(broker.bodies("fetcher.00")) < 2:
            await asyncio.sleep(0.01)
        assert ticker.check() is None
        broker.drop_connections()
        add(database_url, 1)
        while len(broker.bodies("fetcher.00")) < 3:
            await asyncio.sleep(0.01)
        stop.set()
        await running
    assert ticker.check() is not None


async def test_a_scheduler_killed_between_claim_and_publish_loses_nothing(
    database: Database, database_url: str
) -> None:
    add(database_url, 1)
    (lost,) = await claim(database, seconds=0.05)
    async with asyncio.timeout(30):
        while not (again := await claim(database)):
            await asyncio.sleep(0.01)
    assert (again[0].feed_id, again[0].claim_id == lost.claim_id) == (lost.feed_id, False)


async def test_a_run_from_cron_goes_by_the_databases_clock(database: Database, database_url: str) -> None:
    add(database_url, 1)
    clock = ServerClock(wall=lambda: datetime.now(UTC) + timedelta(hours=2))
    jobs, _ = await Claims(database, clock, batch=10, seconds=60).take(10)
    assert len(jobs) == 1
    assert clock.now() < jobs[0].not_after
    assert clock.offset_seconds() == pytest.approx(7200, abs=30)


def listing(database_url: str, digests: bytes, full_at: str, **columns: object) -> None:
    """Add a feed with a listing."""
    add(database_url, 1, **columns)
    with psycopg.connect(database_url) as connection:
        connection.execute(
            f"INSERT INTO feed_listings SELECT max(id), %s, %s, %s, {full_at} FROM feeds".encode(),
            [digests, bytes(2 * len(digests) - 16), bytes(len(digests) - 8)],
        )


async def test_a_job_knows_what_its_feed_listed(database: Database, database_url: str) -> None:
    digests = bytes(range(8 * 3))
    listing(database_url, digests, "now()")
    listing(database_url, digests, "now() - interval '25 hours'")
    listing(database_url, digests, "NULL")
    add(database_url, 1)
    known = {job.url: job.known for job in await claim(database)}
    assert known.pop("http://h0.example/") == digests
    assert set(known.values()) == {b""}
    assert len(known) == 3


async def test_a_probe_reads_everything(database: Database, database_url: str) -> None:
    listing(database_url, bytes(24), "now()", last_outcome="not_modified", lying_since=datetime.now(UTC))
    (job,) = await claim(database)
    assert (job.probe, job.known) == (True, b"")


def test_each_feed_is_read_in_full_once_a_day_and_many_feeds_at_all_times() -> None:
    start, hour = datetime(2026, 11, 22, 12, tzinfo=UTC), timedelta(hours=1)
    day = timedelta(seconds=FULL_EVERY_SECONDS)
    feeds = range(1, 2401)
    assert not any(must_read_all(id_, start, start) for id_ in feeds)
    assert all(must_read_all(id_, start, start + day) for id_ in feeds)
    due = Counter(next(n for n in range(1, 25) if must_read_all(id_, start, start + n * hour)) for id_ in feeds)
    assert set(due) == set(range(1, 25))
    assert max(due.values()) < 1.1 * min(due.values())


async def test_the_claim_looks_up_the_listings_of_the_feeds_that_it_gives_only(
    database: Database, database_url: str
) -> None:
    for _ in range(20):
        listing(database_url, bytes(24), "now()")
    async with database.transaction() as connection:
        await connection.execute("ANALYZE feeds, feed_listings")
        await claim_due_feeds(connection, limit=3, claim_seconds=60.0)
        looked = await connection.execute(
            "SELECT seq_scan, idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'feed_listings'"
        )
        assert await looked.fetchall() == [{"seq_scan": 0, "idx_scan": 3}]
