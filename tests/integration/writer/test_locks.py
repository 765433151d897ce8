"""Locked rows: no deadlock, no endless wait, and only the messages that need these rows wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from services.admin.registry import NewFeed, add_feed, connect
from services.writer import pending
from services.writer.article import Article
from services.writer.handler import WriteArticles
from services.writer.schedule.feed_state import Rules
from services.writer.store import Policy
from shared.broker.consumer import Batching, Consumer
from shared.broker.port import Outgoing
from shared.broker.topology import build_topology
from shared.database.postgres import Database
from shared.errors import Blocked, DatabaseUnavailable
from shared.wire.results import FeedFetched
from tests.factories import NOW, make_entry, make_result
from tests.fakes.memory_broker import MemoryBroker
from tests.integration.waiting import BLOCKED, until_blocked
from tests.integration.writer.writing import rows, write

TOPOLOGY = build_topology(fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=1)
RETRY, DEAD = TOPOLOGY.writer.message_retry, TOPOLOGY.writer.dead


@pytest.fixture
def feeds(database_url: str) -> list[int]:
    with connect(database_url) as connection:
        return [add_feed(connection, NewFeed(f"http://f{n}.example/feed"))[0] for n in range(6)]


def writing(database: Database) -> WriteArticles:
    return WriteArticles(database, rules=Rules(), proxy_hosts=frozenset(), now=lambda: NOW, policy=Policy())


def results(feeds: Sequence[int]) -> list[FeedFetched]:
    return [make_result(feed_id=id_, entries=(make_entry(id_),)) for id_ in feeds]


def hold(connection: psycopg.Connection, feed: int) -> None:
    connection.execute("SELECT FROM feeds WHERE id = %s FOR UPDATE", [feed])


async def test_a_batch_with_a_feed_that_is_held_is_blocked_soon_and_the_others_are_not(
    database_url: str, feeds: list[int]
) -> None:
    async with Database(database_url, size=2, statement_seconds=0.5).open() as database:
        handle = writing(database)
        with psycopg.connect(database_url) as holder:
            hold(holder, feeds[3])
            for held in (results(feeds), results(feeds)[3:4]):
                with pytest.raises(Blocked, match="lock timeout"):
                    await handle(held)
            await handle(results(feeds[:3]))
        await handle(results(feeds[3:4]))


async def test_the_wait_for_another_writers_new_article_is_bounded(database_url: str, feeds: list[int]) -> None:
    async with Database(database_url, size=1, statement_seconds=0.5).open() as database:
        with psycopg.connect(database_url) as slow:
            slow.execute(
                "INSERT INTO feed_items (md5, feed_id, content_hash, url, first_seen_at, last_seen_at)"
                " VALUES (%s, %s, '', '', now(), now())",
                [make_entry(feeds[0]).md5, feeds[1]],
            )
            with pytest.raises(Blocked):
                await writing(database)(results(feeds[:1]))


ARTICLES = "SELECT feed_id FROM pending_articles ORDER BY 1"


async def test_only_the_blocked_message_of_a_queue_waits_and_it_is_not_dead_lettered(
    database_url: str, feeds: list[int]
) -> None:
    broker, stop = MemoryBroker(), asyncio.Event()
    async with broker.connect(TOPOLOGY) as session:
        for result in results(feeds):
            await session.publish(Outgoing(result, FeedFetched.KIND).to_publication())
    async with Database(database_url, size=3, statement_seconds=0.4).open() as database:
        consumer = Consumer(
            broker,
            TOPOLOGY,
            TOPOLOGY.writer,
            FeedFetched,
            writing(database),
            prefetch=10,
            failures=0,
            batching=Batching(size=10, linger_seconds=0.05, concurrency=1),
        )
        with psycopg.connect(database_url) as holder:
            hold(holder, feeds[3])
            running = asyncio.create_task(consumer.run(stop))
            async with asyncio.timeout(30):
                # The parts of a halved batch are settled one after another: the blocked one need not be the last.
                while not broker.bodies(RETRY) or len(await rows(database, ARTICLES)) < len(feeds) - 1:
                    await asyncio.sleep(0.02)
            assert [row["feed_id"] for row in await rows(database, ARTICLES)] == [*feeds[:3], *feeds[4:]]
        broker.queues["writer"].ready.append(broker.queues[RETRY].ready.popleft())
        broker.dispatch()
        async with asyncio.timeout(30):
            while len(await rows(database, "SELECT FROM pending_articles")) < len(feeds):
                await asyncio.sleep(0.02)
        stop.set()
        await running
    assert broker.bodies(RETRY) == broker.bodies(DEAD) == broker.bodies("writer") == []


async def test_a_transaction_that_stands_still_loses_its_locks(database_url: str, feeds: list[int]) -> None:
    """As that of a process that is frozen, or whose machine vanished."""
    async with Database(database_url, size=2, statement_seconds=1.0).open() as database:
        with pytest.raises(DatabaseUnavailable, match="idle-in-transaction"):  # noqa: PT012
            async with database.transaction() as frozen:
                await frozen.execute("SELECT FROM feeds FOR UPDATE")
                began = time.monotonic()
                while time.monotonic() - began < 60:
                    try:
                        await writing(database)(results(feeds))
                        break
                    except Blocked:
                        continue
                assert time.monotonic() - began < 30
                await frozen.execute("SELECT 1")
        assert len(await rows(database, "SELECT FROM pending_articles")) == len(feeds)


async def test_the_bounds_hold_for_one_transaction_on_either_side(database_url: str) -> None:
    names = [
        *("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"),
        *("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"),
    ]
    query = "SELECT " + ", ".join(f"current_setting('{name}') AS {name}" for name in names)
    async with Database(database_url, size=1, statement_seconds=20).open() as database:
        (row,) = await rows(database, query)
        (pid,) = await rows(database, "SELECT pg_backend_pid() AS pid")
        async with database._pool.connection() as connection:  # outside of a transaction of ours
            after = await (await connection.execute(query.encode())).fetchone()
            same = await (await connection.execute("SELECT pg_backend_pid() AS pid")).fetchone()
    assert list(row.values()) == ["20s", "3s", "20s", "30", "10", "3", "30000"]
    assert after is not None
    assert [*after.values()][:3] == ["0", "0", "0"]
    assert after["tcp_user_timeout"] != row["tcp_user_timeout"]
    assert same == pid


async def test_commands_release_their_locks_too(database_url: str) -> None:
    with connect(database_url) as connection:
        row = connection.execute("SELECT current_setting('idle_in_transaction_session_timeout') AS idle").fetchone()
    assert row == {"idle": "1min"}


async def test_a_change_that_is_pending_again_and_a_revival_take_their_locks_in_one_order(
    database: Database, feeds: list[int]
) -> None:
    entry = make_entry(1)
    await write(database, make_result(feed_id=feeds[0], entries=(entry,)))
    await rows(database, "SELECT bury_articles(ARRAY(SELECT md5 FROM pending_articles), 'no')")
    article = Article(entry.md5, feeds[0], entry, 0, 0, 0, revision=1)
    async with database.transaction() as writer:
        await pending.insert_pending(writer, [article], NOW)
        revival = asyncio.create_task(rows(database, f"SELECT revive_articles('{{{entry.md5}}}') AS n"))
        await until_blocked(database)
        await pending.forget_dead(writer, [entry.md5])  # each waited for the other here
    assert await revival == [{"n": 0}]
    assert await rows(database, "SELECT revision FROM pending_articles") == [{"revision": 1}]


async def test_a_change_is_pending_again_though_its_old_text_is_acknowledged_while_it_is_written(
    database: Database, feeds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, insert, acks = Policy(requeue_updates=True), pending.insert_pending, list[asyncio.Task[Any]]()

    async def insert_while_a_consumer_acknowledges(*arguments: Any, **options: Any) -> None:
        acks.append(asyncio.create_task(rows(database, "SELECT ack_articles(ARRAY(SELECT md5 FROM feed_items))")))
        async with asyncio.timeout(20):
            while not acks[0].done() and not await rows(database, BLOCKED):
                await asyncio.sleep(0.02)
        await insert(*arguments, **options)

    await write(database, make_result(feed_id=feeds[0], entries=(make_entry(1),)), policy=policy)
    await rows(database, "SELECT md5 FROM claim_pending_articles(1)")
    monkeypatch.setattr(pending, "insert_pending", insert_while_a_consumer_acknowledges)
    changed = make_entry(1, body="new", content_hash=f"{1:064x}")
    await write(database, make_result(feed_id=feeds[0], entries=(changed,)), policy=policy)
    await acks[0]
    assert await rows(database, "SELECT body, revision FROM pending_articles") == [{"body": "new", "revision": 1}]


async def test_a_text_that_dies_while_its_elder_is_revived_is_kept(database: Database, feeds: list[int]) -> None:
    await write(database, make_result(feed_id=feeds[0], entries=(make_entry(1, body="old"),)))
    await rows(database, "SELECT bury_articles(ARRAY(SELECT md5 FROM pending_articles), 'once')")
    await rows(
        database,
        "INSERT INTO pending_articles (md5, feed_id, entry_id, url, title, body, content_quality, content_hash,"
        " created_at) SELECT md5, feed_id, entry_id, url, title, 'new', content_quality, 'new', now()"
        " FROM dead_articles RETURNING 1",
    )
    async with database.transaction() as consumer:
        await consumer.execute("SELECT bury_articles(ARRAY(SELECT md5 FROM pending_articles), 'twice')")
        revival = asyncio.create_task(
            rows(database, "SELECT revive_articles(ARRAY(SELECT md5 FROM dead_articles)) AS n")
        )
        await until_blocked(database)
    assert await revival == [{"n": 0}]
    assert await rows(database, "SELECT body FROM dead_articles") == [{"body": "new"}]


async def test_changes_revivals_and_failures_at_once_neither_deadlock_nor_lose(
    database: Database, database_url: str, feeds: list[int]
) -> None:
    numbers = range(40)
    policy = Policy(requeue_updates=True)

    def documents(text: int) -> list[FeedFetched]:
        entries = [make_entry(n, body=f"{n} {text}", content_hash=f"{text:064x}") for n in numbers]
        return [make_result(feed_id=feeds[n % 2], entries=tuple(entries[n::4])) for n in range(4)]

    async def change() -> None:
        for text in range(1, 9):
            await write(database, *documents(text), policy=policy, later=timedelta(days=2 * text))

    async def call(query: str) -> None:
        for _ in range(25):
            await rows(database, query)

    await write(database, *documents(0), policy=policy)
    await asyncio.gather(
        change(),
        call("SELECT revive_articles(ARRAY(SELECT md5 FROM dead_articles ORDER BY md5 DESC)) AS n"),
        call("SELECT revive_articles(ARRAY(SELECT md5 FROM dead_articles ORDER BY md5)) AS n"),
        call("SELECT fail_articles(ARRAY(SELECT md5 FROM claim_pending_articles(15)), 'no', max_failures => 1)"),
        call("SELECT bury_articles(ARRAY(SELECT md5 FROM pending_articles ORDER BY random() LIMIT 9), 'no') AS n"),
    )
    found = await rows(database, "SELECT md5 FROM pending_articles UNION SELECT md5 FROM dead_articles")
    assert len(found) == len(numbers)
