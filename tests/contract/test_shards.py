"""What the shards need of a broker: locks that end with their session, heartbeats, delays that lead back."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from shared.broker.port import Broker, Delivery, Outgoing, Publication, Session
from shared.broker.shards import front_of, is_front
from shared.broker.topology import FETCHERS, Queue, build_topology, fetch_routing_key
from shared.errors import BrokerUnavailable, Unroutable
from shared.wire.jobs import FetchFeed
from tests.contract.test_broker_conformance import until
from tests.factories import make_job

SHARDS = 12
TOPOLOGY = build_topology(
    fast_delay_seconds=0.3, retry_delay_seconds=0.5, message_retry_seconds=0.4, fetcher_shards=SHARDS
)


async def until_locked(session: Session, name: str) -> None:
    """Wait for a lock whose session has just ended; the broker notices a moment later."""
    async with asyncio.timeout(30):
        while not await session.lock(name):
            await asyncio.sleep(0.02)


async def test_a_lock_is_had_by_one_session_at_a_time(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as one, broker.connect(TOPOLOGY) as other:
        assert await one.lock("fetcher.07.owner")
        assert not await other.lock("fetcher.07.owner")
        assert not await other.lock("fetcher.07.owner")
        assert await other.lock("fetcher.08.owner"), "a refusal must not harm the next call"
        assert await one.lock("fetcher.07.owner"), "the session that has a lock may take it again"
        await one.unlock("fetcher.07.owner")
        assert await other.lock("fetcher.07.owner")
        assert not await one.lock("fetcher.07.owner")
        assert not one.lost.is_set()
        assert not other.lost.is_set()


async def test_a_lock_ends_with_its_session(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as other:
        async with broker.connect(TOPOLOGY) as one:
            assert await one.lock("fetcher.07.owner")
        await until_locked(other, "fetcher.07.owner")
        with pytest.raises(BrokerUnavailable):
            await one.lock("fetcher.07.owner")


async def test_all_listeners_get_a_fanout_publication(broker: Broker) -> None:
    heard: list[tuple[str, bytes]] = []
    async with broker.connect(TOPOLOGY) as one, broker.connect(TOPOLOGY) as other:
        await one.listen(FETCHERS, lambda body: heard.append(("one", body)), name="fetcher.alive.one")
        await one.publish(Publication("", b"alone", FETCHERS, "fetcher.heartbeat"))
        await other.listen(FETCHERS, lambda body: heard.append(("other", body)), name="fetcher.alive.other")
        await other.publish(Publication("", b"both", FETCHERS, "fetcher.heartbeat"))
        await until(lambda: len(heard) == 3)
        assert sorted(heard) == [("one", b"alone"), ("one", b"both"), ("other", b"both")]


async def test_a_publication_that_is_not_mandatory_may_have_no_listener(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await session.publish(Publication("", b"anybody?", FETCHERS, "fetcher.heartbeat", mandatory=False))
        assert not session.lost.is_set()
        with pytest.raises(Unroutable):
            await session.publish(Publication("", b"anybody?", FETCHERS, "fetcher.heartbeat"))


async def test_several_queues_are_consumed_side_by_side_each_with_its_own_prefetch(broker: Broker) -> None:
    got: list[Delivery] = []
    async with broker.connect(TOPOLOGY) as session:
        for queue in ("fetcher.03", "fetcher.04"):
            for _ in range(5):
                await session.publish(Outgoing.into(queue, make_job()).to_publication())
        await session.consume("fetcher.03", prefetch=2, deliver=got.append)
        await session.consume("fetcher.04", prefetch=3, deliver=got.append)
        await until(lambda: len(got) == 5)
        assert sorted(delivery.queue for delivery in got) == ["fetcher.03"] * 2 + ["fetcher.04"] * 3
        await session.stop_consuming("fetcher.03")
        for delivery in tuple(got):
            await session.ack(delivery)
        await until(lambda: len(got) == 7)
        await asyncio.sleep(0.05)
        assert [delivery.queue for delivery in got[5:]] == ["fetcher.04"] * 2


@pytest.mark.parametrize("delay", [TOPOLOGY.fetcher.fast_delay, TOPOLOGY.fetcher.retry])
async def test_each_job_comes_back_from_a_delay_queue_to_its_own_shard(ticking: Broker, delay: str) -> None:
    got: list[Delivery] = []
    stage = TOPOLOGY.fetcher
    jobs = [make_job(feed_id=n, group=f"host{n}.example") for n in range(60)]
    async with ticking.connect(TOPOLOGY) as session:
        for queue in stage.queues:
            await session.consume(queue, prefetch=100, deliver=got.append)
        for job in jobs:
            await session.publish(Outgoing.after(delay, job, then=stage.queue_of(job.group)).to_publication())
        await until(lambda: len(got) == len(jobs))
        found = {FetchFeed.decode(d.body, d.content_encoding).feed_id: d.queue for d in got}
        assert found == {job.feed_id: stage.queue_of(job.group) for job in jobs}
        assert len(set(found.values())) == SHARDS


async def test_a_front_queue_leads_to_its_shard_what_nobody_reads(ticking: Broker) -> None:
    """Fetchers of earlier versions read no front queues."""
    short = tuple(
        replace(queue, arguments={**queue.arguments, "x-message-ttl": 200}) if is_front(queue.name) else queue
        for queue in TOPOLOGY.queues
    )
    assert sum(is_front(queue.name) for queue in short) == SHARDS
    got: list[Delivery] = []
    async with ticking.connect(replace(TOPOLOGY, queues=short)) as session:
        for queue in TOPOLOGY.fetcher.queues:
            await session.consume(queue, prefetch=100, deliver=got.append)
            await session.publish(Outgoing.into(front_of(queue), make_job()).to_publication())
        await until(lambda: len(got) == SHARDS)
        assert {delivery.queue for delivery in got} == set(TOPOLOGY.fetcher.queues)


async def test_the_writers_delay_leads_back_to_its_queue(ticking: Broker) -> None:
    got: list[Delivery] = []
    async with ticking.connect(TOPOLOGY) as session:
        await session.consume("writer", prefetch=1, deliver=got.append)
        await session.publish(Outgoing.after(TOPOLOGY.writer.retry, make_job(), then="writer").to_publication())
        await until(lambda: len(got) == 1)


async def test_the_queue_of_earlier_versions_gets_none_of_what_is_published_now(broker: Broker) -> None:
    old = replace(TOPOLOGY, queues=(Queue("fetcher", ("feed.fetch.v1.#",), arguments={"x-queue-type": "quorum"}),))
    async with broker.connect(old):
        pass
    got: list[Delivery] = []
    async with broker.connect(TOPOLOGY) as session:
        job = make_job()
        await session.publish(Outgoing(job, fetch_routing_key(job.group, SHARDS)).to_publication())
        await session.consume(TOPOLOGY.fetcher.queue_of(job.group), prefetch=1, deliver=got.append)
        await until(lambda: len(got) == 1)
        assert await session.count_ready("fetcher") == 0


async def test_what_the_scheduler_publishes_arrives_where_the_fetchers_look_for_it(broker: Broker) -> None:
    groups = [f"host{n}.example" for n in range(40)]
    got: list[Delivery] = []
    async with broker.connect(TOPOLOGY) as session:
        for group in groups:
            job = make_job(group=group)
            await session.publish(Outgoing(job, fetch_routing_key(group, SHARDS)).to_publication())
        for queue in TOPOLOGY.fetcher.queues:
            await session.consume(queue, prefetch=100, deliver=got.append)
        await until(lambda: len(got) == len(groups))
        for delivery in got:
            assert delivery.queue == TOPOLOGY.fetcher.queue_of(
                FetchFeed.decode(delivery.body, delivery.content_encoding).group
            )
