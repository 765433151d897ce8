"""A consumer whose prefetch limit changes, and one that is stopped while it works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from shared.broker.consumer import Consumer
from shared.broker.port import Outgoing
from shared.broker.prefetch import PrefetchLimit
from shared.broker.topology import build_topology, fetch_routing_key
from shared.errors import NackAndRequeue
from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched
from tests.factories import make_job, make_result
from tests.fakes.memory_broker import MemoryBroker
from tests.fakes.virtual_time import run_virtually
from tests.unit.shared.test_consumer import until

TOPOLOGY = build_topology(fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=1)
Handle = Callable[[Sequence[FetchFeed]], Awaitable[Sequence[Outgoing]]]


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


async def put(broker: MemoryBroker, *jobs: FetchFeed) -> None:
    async with broker.connect(TOPOLOGY) as session:
        for job in jobs:
            await session.publish(Outgoing(job, fetch_routing_key(job.group, 1)).to_publication())


@asynccontextmanager
async def consuming(
    broker: MemoryBroker, prefetch_limit: PrefetchLimit, handler: Handle, drain_seconds: float = 5.0
) -> AsyncIterator[None]:
    stop = asyncio.Event()
    consumer = Consumer(
        broker,
        TOPOLOGY,
        TOPOLOGY.fetcher,
        FetchFeed,
        handler,
        prefetch=prefetch_limit,
        failures=0,
        drain_seconds=drain_seconds,
    )
    running = asyncio.create_task(consumer.run(stop))
    try:
        yield
    finally:
        stop.set()
        await running


async def test_at_a_prefetch_limit_of_zero_requeued_messages_stay_in_their_queue(
    broker: MemoryBroker,
) -> None:
    prefetch_limit, calls = PrefetchLimit(10), list[int]()

    async def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        calls.append(batch[0].feed_id)
        if len(calls) > 3:
            return []
        prefetch_limit.set("test", 0)
        await prefetch_limit.next_applied()
        raise NackAndRequeue("the limit is zero")

    await put(broker, *(make_job(feed_id=n) for n in range(3)))
    async with consuming(broker, prefetch_limit, handler):
        await until(lambda: len(broker.bodies("fetcher.00")) == 3)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(calls) == 3, "delivered again at a limit of zero"
        prefetch_limit.set("test", 2)
        await until(lambda: len(calls) == 6)
    assert broker.bodies("fetcher.00") == []
    assert sorted(calls) == [0, 0, 1, 1, 2, 2]


async def test_a_prefetch_limit_of_zero_stops_no_front_queue_but_a_lost_shard_does(broker: MemoryBroker) -> None:
    prefetch_limit, calls = PrefetchLimit(10), list[int]()
    prefetch_limit.set("test", 0)

    async def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        calls.append(batch[0].feed_id)
        return []

    async def fire(feed_id: int) -> None:
        async with broker.connect(TOPOLOGY) as session:
            await session.publish(Outgoing.into("fetcher.00.front", make_job(feed_id=feed_id)).to_publication())

    await put(broker, make_job(feed_id=1))
    await fire(2)
    async with consuming(broker, prefetch_limit, handler):
        await until(lambda: calls == [2])
        prefetch_limit.read_from(())
        await prefetch_limit.next_applied()
        await fire(3)
        for _ in range(50):
            await asyncio.sleep(0)
        assert calls == [2]
        prefetch_limit.read_from(TOPOLOGY.fetcher.queues)
        await until(lambda: calls == [2, 3])
    assert len(broker.bodies("fetcher.00")) == 1


async def ignore(batch: Sequence[FetchFeed]) -> list[Outgoing]:
    return []


async def test_a_prefetch_limit_of_zero_does_not_keep_the_consumer_from_stopping(broker: MemoryBroker) -> None:
    prefetch_limit = PrefetchLimit(10)
    prefetch_limit.set("test", 0)
    await put(broker, make_job())
    async with consuming(broker, prefetch_limit, ignore):
        for _ in range(50):
            await asyncio.sleep(0)
    assert len(broker.bodies("fetcher.00")) == 1


@pytest.mark.parametrize("turns", range(0, 60, 3))
async def test_a_stop_while_the_prefetch_changes_cuts_no_call_off_and_loses_no_work(turns: int) -> None:
    """Nothing is handled twice, although the broker ends the session of a call that is cut off."""
    broker, prefetch_limit, begun = MemoryBroker(fragile=True, turns=2), PrefetchLimit(240), list[int]()
    topology = build_topology(
        fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=12
    )
    may_end, stop = asyncio.Event(), asyncio.Event()

    async def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        begun.append(batch[0].feed_id)
        await may_end.wait()
        return [Outgoing(make_result(feed_id=batch[0].feed_id), FeedFetched.KIND)]

    async with broker.connect(topology) as session:
        for n in range(20):
            job = make_job(feed_id=n, group=f"host{n}.example")
            await session.publish(Outgoing(job, fetch_routing_key(job.group, 12)).to_publication())
    consumer = Consumer(broker, topology, topology.fetcher, FetchFeed, handler, prefetch=prefetch_limit, failures=0)
    running = asyncio.create_task(consumer.run(stop))
    await until(lambda: len(begun) == 20)
    prefetch_limit.set("test", 120)
    for _ in range(turns):
        await asyncio.sleep(0)
    stop.set()
    for _ in range(10):
        await asyncio.sleep(0)
    may_end.set()
    await asyncio.wait_for(running, 30)
    results = [FeedFetched.decode(p.body, p.content_encoding).feed_id for p in broker.publications("writer")]
    assert sorted(results) == list(range(20))
    assert not any(broker.bodies(queue) for queue in topology.fetcher.queues), "delivered again"


def test_a_prefetch_limit_of_zero_outlives_a_lost_session(broker: MemoryBroker) -> None:
    prefetch_limit, calls = PrefetchLimit(10), list[int]()

    async def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        calls.append(batch[0].feed_id)
        return []

    async def main() -> None:
        prefetch_limit.set("test", 0)
        async with consuming(broker, prefetch_limit, handler):
            await put(broker, make_job())
            broker.drop_connections()
            await asyncio.sleep(60.0)  # far beyond the pause before connecting anew
            assert calls == []
            prefetch_limit.set("test", 10)
            await until(lambda: calls == [1])

    run_virtually(main())


@pytest.mark.parametrize(("drain_seconds", "results"), [(299.0, 0), (301.0, 1)])
def test_on_stop_messages_that_were_begun_have_the_services_drain_time(drain_seconds: float, results: int) -> None:
    broker = MemoryBroker()

    async def slow(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        await asyncio.sleep(300.0)
        return [Outgoing(make_result(), FeedFetched.KIND)]

    async def main() -> None:
        await put(broker, make_job())
        async with consuming(broker, PrefetchLimit(1), slow, drain_seconds):
            await asyncio.sleep(0.001)

    run_virtually(main())
    assert (len(broker.bodies("writer")), len(broker.bodies("fetcher.00"))) == (results, 1 - results)
