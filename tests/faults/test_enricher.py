"""Articles can do without the enricher: it is away, dies of one of them, or is slower than the fetchers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from local.addresses import Addresses
from local.demo.demo import SETTINGS, SHARDS
from local.settings import child_environment
from shared.broker.port import Outgoing
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import Topology
from shared.settings import BrokerSettings
from shared.wire.results import FeedFetched
from tests.contract.test_broker_conformance import until_ready
from tests.e2e.pipeline import growing_specs, running_pipeline
from tests.factories import make_entry, make_result
from tests.faults.deadly_enricher import DEADLY

pytestmark = pytest.mark.e2e

DECLARED: dict[str, Any] = {"FEEDMILL_ENRICHER": "true", "FEEDMILL_DECLARE_TOPOLOGY": "false"}
"""Services use the queues as the test has declared them."""


def topology_of(*, seconds: float = 600.0, deliveries: int = 10) -> Topology:
    """Return the topology with another patience for enrichers."""
    settings = BrokerSettings(
        fast_delay_seconds=1.0,
        retry_delay_seconds=2.0,
        message_retry_seconds=1.0,
        fetcher_shards=SHARDS,
        enricher=True,
        declare_topology=True,
    )
    topology = settings.topology()
    limits = {"x-message-ttl": round(seconds * 1000), "x-delivery-limit": deliveries}
    queues = (
        replace(queue, arguments={**queue.arguments, **limits}) if queue.name == "enricher" else queue
        for queue in topology.queues
    )
    return replace(topology, queues=tuple(queues))


async def test_while_no_enricher_runs_articles_arrive_without_labels(amqp_url: str, database_url: str) -> None:
    broker = RabbitMQ(amqp_url, name="test", max_message_bytes=10**6)
    async with broker.connect(topology_of(seconds=1)) as session:
        async with running_pipeline(amqp_url, database_url, growing_specs(12), also=DECLARED) as pipeline:
            await pipeline.until_complete()
            assert pipeline.unlabelled() == len(pipeline.delivered())
        await until_ready(session, "enricher", 0)


async def test_fetchers_wait_for_an_enricher_that_is_behind(amqp_url: str, database_url: str) -> None:
    broker = RabbitMQ(amqp_url, name="test", max_message_bytes=10**6)
    async with broker.connect(topology_of()) as session:
        limits = DECLARED | {"FEEDMILL_WRITER_HIGH_WATER": "4"}
        async with running_pipeline(amqp_url, database_url, growing_specs(24), also=limits) as pipeline:
            waiting = "taking no jobs until the next stage has caught up"
            await pipeline.until(lambda: any(waiting in line for _, line in pipeline.lines))
            assert pipeline.delivered() == []
            async with running_enricher(Addresses(amqp_url, database_url)):
                await pipeline.until_complete()
            assert pipeline.unlabelled() == 0
        await until_ready(session, "enricher", 0)


async def test_a_result_that_kills_enrichers_goes_on_after_a_few_of_them(amqp_url: str, database_url: str) -> None:
    broker, topology = RabbitMQ(amqp_url, name="test", max_message_bytes=10**6), topology_of(deliveries=2)
    deadly = make_result(feed_id=1, entries=(make_entry(1, title=f"A {DEADLY} one"),))
    harmless = [make_result(feed_id=n, entries=(make_entry(n),)) for n in range(2, 40)]
    addresses = Addresses(amqp_url, database_url)
    async with broker.connect(topology) as session:
        for result in (harmless[0], deadly, *harmless[1:]):
            await session.publish(Outgoing.onward(topology.fetcher, result).to_publication())
        for _ in range(3):
            async with running_enricher(addresses) as process:
                assert await asyncio.wait_for(process.wait(), 60) == 139
        async with running_enricher(addresses):
            await until_ready(session, "writer", 39)
        got: list[FeedFetched] = []
        await session.consume(
            "writer", prefetch=100, deliver=lambda d: got.append(FeedFetched.decode(d.body, d.content_encoding))
        )
        async with asyncio.timeout(30):
            while len(got) < 39:
                await asyncio.sleep(0.01)
    assert sorted(result.feed_id for result in got) == list(range(1, 40))
    enriched = {result.feed_id for result in got if result.entries[0].enrichment}
    assert 1 not in enriched
    assert enriched, "most of what was not in hand with it"


@asynccontextmanager
async def running_enricher(addresses: Addresses) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run an enricher for the length of the block."""
    environment = child_environment(addresses.environment() | SETTINGS | DECLARED)
    command = sys.executable, "-m", "tests.faults.deadly_enricher"
    process = await asyncio.create_subprocess_exec(*command, env=environment)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), 60)
