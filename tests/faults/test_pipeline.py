"""Whatever dies when: nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from local.demo.demo import SHARDS
from local.servers import Servers
from shared.broker.port import Publication
from shared.broker.rabbitmq import RabbitMQ
from shared.settings import BrokerSettings
from tests.conftest import own_database, own_vhost
from tests.e2e.pipeline import Pipeline, growing_specs, running_pipeline

pytestmark = pytest.mark.e2e

Fault = Callable[[Pipeline, Servers], Awaitable[None]]


def killing(service: str) -> Fault:
    async def kill(pipeline: Pipeline, _: Servers) -> None:
        killed = pipeline.supervisor.pid(service)
        assert killed is not None
        pipeline.supervisor.kill(service)
        await pipeline.until_replaced(service, killed)

    return kill


async def kill_broker(_: Pipeline, servers: Servers) -> None:
    servers.rabbitmq.kill()
    await asyncio.to_thread(servers.rabbitmq.start)


async def restart_broker(_: Pipeline, servers: Servers) -> None:
    await asyncio.to_thread(servers.rabbitmq.stop)
    await asyncio.to_thread(servers.rabbitmq.start)


async def kill_database(_: Pipeline, servers: Servers) -> None:
    servers.postgres.kill()
    await asyncio.sleep(1)  # long enough for every service to notice
    await asyncio.to_thread(servers.postgres.start)


async def restart_database(_: Pipeline, servers: Servers) -> None:
    await asyncio.to_thread(servers.postgres.stop)
    await asyncio.to_thread(servers.postgres.start)


FAULTS: dict[str, Fault] = {
    "fetcher killed": killing("fetcher"),
    "a second fetcher killed": killing("fetcher-2"),
    "enricher killed": killing("enricher"),
    "writer killed": killing("writer"),
    "scheduler killed": killing("scheduler"),
    "broker killed": kill_broker,
    "broker restarted": restart_broker,
    "database killed": kill_database,
    "database restarted": restart_database,
}


@pytest.fixture(scope="module")
async def pipeline(servers: Servers) -> AsyncIterator[Pipeline]:
    with own_vhost(servers) as amqp_url, own_database(servers) as database_url:
        async with running_pipeline(
            amqp_url,
            database_url,
            growing_specs(48),
            fetchers=2,
            writers=2,
            enrichers=1,
            FEEDMILL_ENRICHER="true",
            FEEDMILL_ENRICH="language",
        ) as running:
            await running.until_complete()
            yield running


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_in_the_middle_loses_nothing_and_repeats_nothing(
    pipeline: Pipeline, servers: Servers, fault: str
) -> None:
    there = len(pipeline.farm.expected_articles())
    pipeline.farm.publish()
    await pipeline.until_started(0.2, since=there)
    await FAULTS[fault](pipeline, servers)
    pipeline.farm.publish()  # the pipeline is whole again, not just done with what it had
    await pipeline.until_complete()
    assert pipeline.unlabelled() == 0


async def test_a_poisoned_queue_stops_nobody(amqp_url: str, database_url: str) -> None:
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
