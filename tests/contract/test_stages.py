"""A new stage takes a service and an entry in the chain: here an enricher between fetcher and writer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from services.admin.dead_letters.letters import read_letters, requeue_letters, select_stages
from services.cli.broker_users import service_rights
from shared.broker.consumer import Consumer
from shared.broker.port import Broker, Delivery, Outgoing, Session
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import CHAIN, EXCHANGE, Stage, StageEntry, Topology, build_topology, fetch_routing_key
from shared.errors import Unprocessable
from shared.settings import BrokerSettings
from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched
from tests.contract.test_broker_conformance import until, until_ready
from tests.factories import make_entry, make_job, make_result
from tests.monitoring.rules import ROOT
from tests.unit.fetcher.harness import Harness

DELAYS: dict[str, Any] = {"fast_delay_seconds": 20, "retry_delay_seconds": 3600, "message_retry_seconds": 60}
FETCHER, WRITER = (next(entry for entry in CHAIN if entry.service == name) for name in ("fetcher", "writer"))
ENRICHED = build_topology((FETCHER, StageEntry("toy-stage"), WRITER), **DELAYS, fetcher_shards=1)
ENRICHER = ENRICHED.stage("toy-stage")


class Services:
    """The three stages, each a consumer over the given topology. The writer keeps what it gets."""

    def __init__(self, broker: Broker, topology: Topology) -> None:
        self.written: list[FeedFetched] = []
        self._broker = broker
        self._topology = topology

    @asynccontextmanager
    async def running(self, *services: str) -> AsyncIterator[None]:
        stop = asyncio.Event()
        consumers: dict[str, Consumer[FetchFeed] | Consumer[FeedFetched]] = {
            "fetcher": Consumer(
                self._broker, self._topology, self._topology.fetcher, FetchFeed, self._fetch, prefetch=5, failures=0
            ),
            "toy-stage": Consumer(self._broker, self._topology, ENRICHER, FeedFetched, enrich, prefetch=5, failures=0),
            "writer": Consumer(
                self._broker, self._topology, self._topology.writer, FeedFetched, self._write, prefetch=5, failures=0
            ),
        }
        tasks = [asyncio.create_task(consumers[service].run(stop)) for service in services]
        try:
            yield
        finally:
            stop.set()
            await asyncio.gather(*tasks)

    async def _fetch(self, batch: Sequence[FetchFeed]) -> Sequence[Outgoing]:
        results = [make_result(feed_id=job.feed_id, entries=(make_entry(1),)) for job in batch]
        return [Outgoing.onward(self._topology.fetcher, result) for result in results]

    async def _write(self, batch: Sequence[FeedFetched]) -> Sequence[Outgoing]:
        self.written += batch
        return []


async def enrich(batch: Sequence[FeedFetched]) -> Sequence[Outgoing]:
    """The whole toy service: it adds a category to every entry."""
    if any(result.feed_id == 13 for result in batch):
        raise Unprocessable("13 can't be enriched")
    return [
        Outgoing.onward(
            ENRICHER,
            result.model_copy(
                update={"entries": tuple(e.model_copy(update={"categories": ("enriched",)}) for e in result.entries)}
            ),
        )
        for result in batch
    ]


async def publish_jobs(session: Session, *feed_ids: int) -> None:
    for feed_id in feed_ids:
        job = make_job(feed_id=feed_id)
        await session.publish(Outgoing(job, fetch_routing_key(job.group, 1)).to_publication())


async def test_a_message_passes_every_stage_of_the_chain(broker: Broker) -> None:
    services = Services(broker, ENRICHED)
    async with broker.connect(ENRICHED) as session, services.running("fetcher", "toy-stage", "writer"):
        await publish_jobs(session, 1, 2, 3)
        await until(lambda: len(services.written) == 3)
        for queue in (queue for stage in ENRICHED.stages for queue in stage.queues):
            await until_ready(session, queue, 0)
    assert {result.feed_id for result in services.written} == {1, 2, 3}
    assert {result.entries[0].categories for result in services.written} == {("enriched",)}


async def test_an_upgrade_that_inserts_a_stage_loses_nothing(broker: Broker) -> None:
    """Old fetchers publish straight to the writer; the results of new ones wait for the enricher."""
    before, after = build_topology((FETCHER, WRITER), **DELAYS, fetcher_shards=1), Services(broker, ENRICHED)
    old = Services(broker, before)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(broker.connect(before))
        await stack.enter_async_context(old.running("writer"))
        async with broker.connect(ENRICHED), old.running("fetcher"):
            await publish_jobs(session, 1)
            await until(lambda: len(old.written) == 1)
        async with after.running("fetcher"):
            await publish_jobs(session, 2)
            await until_ready(session, "toy-stage", 1)
        async with after.running("toy-stage"):
            await until(lambda: len(old.written) == 2)
    assert [(r.feed_id, r.entries[0].categories) for r in old.written] == [(1, ()), (2, ("enriched",))]


async def test_the_dead_letters_of_a_new_stage_are_found_and_sent_back(broker: Broker) -> None:
    services, stages = Services(broker, ENRICHED), select_stages(ENRICHED, "toy-stage")
    async with broker.connect(ENRICHED) as session:
        async with services.running("fetcher", "toy-stage"):
            await publish_jobs(session, 13)
            await until_ready(session, ENRICHER.dead, 1)
        (letter,) = await read_letters(broker, ENRICHED, stages, 10)
        assert (letter.first_queue, letter.summary()["reason"]) == ("toy-stage", "unprocessable")
        assert await requeue_letters(broker, ENRICHED, stages, None, 10) == 1
        await until_ready(session, "toy-stage", 1)


async def test_the_fetcher_publishes_to_the_next_stage() -> None:
    assert await keys_of(build_topology((FETCHER, WRITER), **DELAYS, fetcher_shards=1).fetcher) == ["feed.fetched.v1"]
    assert await keys_of(ENRICHED.fetcher) == ["toy-stage"]


async def keys_of(stage: Stage) -> list[str]:
    harness = Harness()
    harness.handler._stage = stage
    return [item.routing_key for item in await harness.handler([make_job()])]


class TestAStageThatResultsCanDoWithout:
    """The enricher's place in the chain."""

    ON = build_topology(**DELAYS, fetcher_shards=1)
    OFF = build_topology(**DELAYS, fetcher_shards=1, switched_off=["enricher"])
    FULL, EMPTY = make_result(entries=(make_entry(1),)), make_result()

    @pytest.mark.parametrize(
        ("topology", "service", "result", "key"),
        [
            (ON, "fetcher", FULL, "enricher"),
            (ON, "fetcher", EMPTY, "feed.fetched.v1"),
            (OFF, "fetcher", FULL, "feed.fetched.v1"),
            (OFF, "fetcher", EMPTY, "feed.fetched.v1"),
            (ON, "enricher", FULL, "feed.fetched.v1"),
            (OFF, "enricher", FULL, "feed.fetched.v1"),  # what waits while it is switched off
            (OFF, "enricher", EMPTY, "feed.fetched.v1"),
        ],
    )
    def test_results_without_entries_pass_it_by_and_all_do_while_it_is_off(
        self, topology: Topology, service: str, result: FeedFetched, key: str
    ) -> None:
        assert Outgoing.onward(topology.stage(service), result).routing_key == key

    def test_its_queues_are_there_while_it_is_off(self) -> None:
        assert self.OFF.queues == self.ON.queues
        assert [stage.is_on for stage in self.OFF.stages] == [True, False, True]

    async def test_what_nobody_takes_in_time_goes_on_to_the_next_stage(
        self, ticking: Broker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("shared.broker.topology.OPTIONAL_SECONDS", 0.2)
        hurried = build_topology(**DELAYS, fetcher_shards=1)
        async with ticking.connect(hurried) as session:
            await session.publish(Outgoing.onward(hurried.fetcher, self.FULL).to_publication())
            await until_ready(session, "writer", 1)
            await until_ready(session, "enricher", 0)
            services = Services(ticking, hurried)
            async with services.running("writer"):
                await until(lambda: len(services.written) == 1)
        assert services.written == [self.FULL]

    async def test_what_comes_back_again_and_again_goes_on_to_the_next_stage(
        self, amqp_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("shared.broker.topology.OPTIONAL_DELIVERY_LIMIT", 2)
        topology, broker = (
            build_topology(**DELAYS, fetcher_shards=1),
            RabbitMQ(amqp_url, name="t", max_message_bytes=10**6),
        )
        async with broker.connect(topology) as session:
            await session.publish(Outgoing.onward(topology.fetcher, self.FULL).to_publication())
        deliveries: list[Delivery] = []
        for time in (1, 2, 3):  # each time its enricher dies
            async with broker.connect(topology) as session:
                await session.consume("enricher", prefetch=1, deliver=deliveries.append)
                while len(deliveries) < time:
                    await asyncio.sleep(0.01)
        async with broker.connect(topology) as session:
            await until_ready(session, "writer", 1)
            await until_ready(session, "enricher", 0)


def test_the_users_of_a_new_stage_may_do_its_work_and_no_more() -> None:
    rights = service_rights(ENRICHED)
    names = {queue.name for queue in ENRICHED.queues}

    def reached(service: str) -> set[str]:
        keys = rights[service].keys[EXCHANGE]
        return {q.name for q in ENRICHED.queues if any(re.search(keys, binding) for binding in q.bindings)}

    assert {name for name in names if re.search(rights["toy-stage"].read, name)} == {"toy-stage"}
    assert {name for name in names if re.search(rights["toy-stage"].write, name)} == {ENRICHER.retry}
    assert reached("toy-stage") == {"writer", "toy-stage.dead"}
    skipping = {"writer", "writer.trials"}  # older ones skip the enricher, and so do dry runs
    assert reached("fetcher") == {"fetcher.00", "fetcher.00.front", "fetcher.dead", "toy-stage", *skipping}
    assert reached("writer") == {"writer.dead"}
    assert all(re.search(rights["fetcher"].write, queue) for queue in ("toy-stage", "writer")), "for the backpressure"


def test_the_alerts_and_dashboards_watch_every_stage_of_the_chain() -> None:
    """These expressions can't be computed: a person who adds a stage adds it to each of them."""
    queues = [queue.name for queue in BrokerSettings().topology().queues]
    work = [queue for stage in BrokerSettings().topology().stages for queue in stage.queues]
    rules = (ROOT / "monitoring" / "alerts.yml").read_text(encoding="utf-8")
    dashboard = ROOT / "k8s" / "components" / "monitoring" / "dashboards" / "feedmill-pipeline.json"
    panels = dashboard.read_text(encoding="utf-8").replace('\\"', '"')
    (recorded,) = re.findall(r'queue_messages_ready\{queue=~"(\(.+?)"\}\)', rules)
    assert all(re.fullmatch(recorded, queue) for queue in queues)
    (without_reader,) = re.findall(r'queue_consumers\{queue=~"(.+?)"', rules)
    optional = {stage.queue for stage in BrokerSettings().topology().stages if stage.is_optional}
    assert {queue for queue in work if not re.fullmatch(without_reader, queue)} == optional
    assert all(f'queue_consumers{{queue="{queue}"}}' in rules for queue in optional)
    for dead in set(re.findall(r'queue=~"([^"]*\[\.\]dead)"', panels)):
        assert all(re.fullmatch(dead, stage.dead) for stage in BrokerSettings().topology().stages)
