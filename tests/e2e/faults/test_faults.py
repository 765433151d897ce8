"""Whatever dies when: nothing lost, nothing twice."""

from __future__ import annotations

import asyncio

import pytest

from local.demo.demo import SHARDS
from local.farm import FeedFormat, FeedKind, FeedSpec
from local.farm.catalogue import loopback_host
from local.servers import Servers
from tests.e2e.pipeline import Pipeline, running_pipeline

pytestmark = pytest.mark.e2e


def growing_specs(feeds: int, hosts: int = 12) -> list[FeedSpec]:
    formats = list(FeedFormat)
    return [
        FeedSpec(
            name=f"feed-{n}",
            host=loopback_host(n % hosts),
            path=f"/{n}",
            kind=FeedKind.GROWING,
            format=formats[n % len(formats)],
            items=10,
            items_per_wave=5,
            delay_seconds=0.1,
        )
        for n in range(feeds)
    ]


async def finish(pipeline: Pipeline) -> None:
    """Let everything settle, then publish once more: the pipeline must be whole again, not just have got by."""
    await pipeline.until_complete()
    pipeline.farm.publish()
    await pipeline.until_complete()


async def test_a_fetcher_and_a_writer_that_are_killed_lose_nothing(amqp_url: str, database_url: str) -> None:
    async with running_pipeline(amqp_url, database_url, growing_specs(60)) as pipeline:
        for name, share in (("fetcher", 0.1), ("writer", 0.3), ("fetcher", 0.5), ("scheduler", 0.6)):
            await pipeline.until_started(share)
            killed = pipeline.supervisor.pid(name)
            assert killed is not None
            pipeline.supervisor.kill(name)
            await pipeline.until_replaced(name, killed)
        await finish(pipeline)


async def test_a_broker_that_is_killed_and_one_that_is_restarted_lose_nothing(
    amqp_url: str, database_url: str, servers: Servers
) -> None:
    async with running_pipeline(amqp_url, database_url, growing_specs(60)) as pipeline:
        await pipeline.until_started(0.2)
        servers.rabbitmq.kill()
        await asyncio.to_thread(servers.rabbitmq.start)
        await pipeline.until_complete()
        pipeline.farm.publish()
        await asyncio.to_thread(servers.rabbitmq.stop)
        await asyncio.to_thread(servers.rabbitmq.start)
        await finish(pipeline)


async def test_a_database_that_is_killed_and_one_that_is_restarted_lose_nothing(
    amqp_url: str, database_url: str, servers: Servers
) -> None:
    async with running_pipeline(amqp_url, database_url, growing_specs(60)) as pipeline:
        await pipeline.until_started(0.2)
        servers.postgres.kill()
        await asyncio.sleep(1)  # long enough for every service to notice
        await asyncio.to_thread(servers.postgres.start)
        await pipeline.until_complete()
        pipeline.farm.publish()
        await asyncio.to_thread(servers.postgres.stop)
        await asyncio.to_thread(servers.postgres.start)
        await finish(pipeline)


async def test_two_of_each_work_side_by_side(amqp_url: str, database_url: str) -> None:
    async with running_pipeline(amqp_url, database_url, growing_specs(60), fetchers=2, writers=2) as pipeline:
        await finish(pipeline)


async def test_a_poisoned_queue_stops_nobody(amqp_url: str, database_url: str) -> None:
    from shared.broker.port import Publication
    from shared.broker.rabbitmq import RabbitMQ
    from shared.settings import BrokerSettings

    broker = RabbitMQ(amqp_url, name="poisoner", max_message_bytes=1000)
    topology = BrokerSettings(
        fast_delay_seconds=1.0, retry_delay_seconds=2.0, message_retry_seconds=1.0, fetcher_shards=SHARDS
    ).topology()
    async with broker.connect(topology) as session:
        for queue in ("fetcher.00", "writer"):
            await session.publish(Publication(queue, b"\xff not JSON", "", "nonsense"))
        async with running_pipeline(amqp_url, database_url, growing_specs(12)) as pipeline:
            await pipeline.until_complete()
            assert await session.count_ready("fetcher.dead") == 1
            assert await session.count_ready("writer.dead") == 1
