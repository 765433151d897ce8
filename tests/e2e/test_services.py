"""Single services as processes: signals, exit codes, log lines."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
import pytest

from local.demo.demo import SETTINGS, SHARDS
from local.farm import Farm, FeedKind, FeedSpec
from local.settings import child_environment
from shared.broker.port import Outgoing
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import fetch_routing_key
from shared.settings import BrokerSettings
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched

pytestmark = pytest.mark.e2e

TOPOLOGY = BrokerSettings(
    fast_delay_seconds=1.0, retry_delay_seconds=2.0, message_retry_seconds=1.0, fetcher_shards=SHARDS
).topology()


class Service:
    """A running service whose log lines can be waited for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def wait_for(self, message: str) -> dict[str, str]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            record: dict[str, str] = json.loads(line)
            if record["message"] == message:
                return record
        raise AssertionError(f"{message!r} was never said")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=20)
        return self.process.returncode


@contextmanager
def running(name: str, **settings: str) -> Iterator[Service]:
    process = subprocess.Popen(
        [sys.executable, "-m", f"services.{name}"],
        env=child_environment(SETTINGS | settings),
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Service(process)
        finally:
            if process.poll() is None:
                process.kill()


def job(url: str, group: str, **changes: object) -> FetchFeed:
    now = datetime.now(UTC)
    fields = {
        "feed_id": 1,
        "url": url,
        "group": group,
        "claim_id": uuid4(),
        "not_after": now + timedelta(minutes=5),
        "queued_at": now,
    }
    return FetchFeed(**{**fields, **changes})


async def publish(amqp_url: str, *jobs: FetchFeed) -> None:
    async with RabbitMQ(amqp_url, name="test", max_message_bytes=10**6).connect(TOPOLOGY) as session:
        for item in jobs:
            await session.publish(Outgoing(item, fetch_routing_key(item.group, SHARDS)).to_publication())


async def take_results(amqp_url: str, number: int) -> list[FeedFetched]:
    bodies: list[FeedFetched] = []
    async with RabbitMQ(amqp_url, name="test", max_message_bytes=10**6).connect(TOPOLOGY) as session:
        await session.consume(
            "writer",
            prefetch=100,
            deliver=lambda d: bodies.append(FeedFetched.decode(d.body, d.content_encoding)),
        )
        async with asyncio.timeout(20):
            while len(bodies) < number:
                await asyncio.sleep(0.02)
    return bodies


async def count_ready(amqp_url: str, queue: str) -> int | None:
    async with RabbitMQ(amqp_url, name="test", max_message_bytes=10**6).connect(TOPOLOGY) as session:
        return await session.count_ready(queue)


def test_on_sigterm_a_fetcher_finishes_what_runs_and_gives_back_what_waits(amqp_url: str) -> None:
    slow = FeedSpec(name="slow", host="127.0.0.2", path="/feed", kind=FeedKind.SLOW, delay_seconds=1.5)
    with Farm([slow]) as farm, running("fetcher", FEEDMILL_AMQP_URL=amqp_url, FEEDMILL_HOST_CONCURRENCY="1") as fetcher:
        fetcher.wait_for("consuming")
        asyncio.run(publish(amqp_url, *(job(farm.url(slow), "127.0.0.2", feed_id=n) for n in range(4))))
        asyncio.run(until_requested(farm))
        assert fetcher.stop() == 0
        (result,) = asyncio.run(take_results(amqp_url, 1))
        assert (result.outcome, len(result.entries)) == (Outcome.FETCHED, slow.items)
        assert asyncio.run(count_ready(amqp_url, TOPOLOGY.fetcher.queue_of("127.0.0.2"))) == 3
        assert farm.request_count() == 1


async def until_requested(farm: Farm) -> None:
    async with asyncio.timeout(30):
        while sum(load.in_flight for load in farm.host_loads().values()) == 0:
            await asyncio.sleep(0.01)


def test_a_job_past_its_deadline_is_dropped_unasked(amqp_url: str) -> None:
    late = job("http://127.0.0.2:1/", "127.0.0.2:1", not_after=datetime.now(UTC) - timedelta(seconds=1))
    with running("fetcher", FEEDMILL_AMQP_URL=amqp_url) as fetcher:
        asyncio.run(publish(amqp_url, late))
        (result,) = asyncio.run(take_results(amqp_url, 1))
        assert (result.outcome, result.final) == (Outcome.STALE, True)
        assert fetcher.stop() == 0


def test_a_soft_error_comes_back_until_it_is_given_up(amqp_url: str) -> None:
    broken = FeedSpec(name="broken", host="127.0.0.2", path="/feed", kind=FeedKind.ERROR_500)
    settings = {"FEEDMILL_AMQP_URL": amqp_url, "FEEDMILL_MAX_RETRIES": "2"}
    with Farm([broken]) as farm, running("fetcher", **settings) as fetcher:
        fetcher.wait_for("consuming")
        asyncio.run(publish(amqp_url, job(farm.url(broken), "127.0.0.2")))
        results = asyncio.run(take_results(amqp_url, 3))
        assert fetcher.stop() == 0
    outcomes = [(result.outcome, result.final, result.attempt) for result in results]
    assert outcomes == [
        (Outcome.SOFT_ERROR, False, 0),
        (Outcome.SOFT_ERROR, False, 1),
        (Outcome.GAVE_UP, True, 2),
    ]


def test_a_service_is_ready_once_it_consumes_and_says_where_its_metrics_are(amqp_url: str) -> None:
    with running("fetcher", FEEDMILL_AMQP_URL=amqp_url) as fetcher:
        metrics = fetcher.wait_for("started")["metrics"]
        fetcher.wait_for("consuming")
        assert httpx.get(metrics.replace("/metrics", "/readyz"), trust_env=False).status_code == 200
        assert "feedmill_fetches_total" in httpx.get(metrics, trust_env=False).text
        assert fetcher.stop() == 0


def test_a_service_waits_for_a_database_that_is_away_and_can_be_stopped(amqp_url: str) -> None:
    settings = {"FEEDMILL_AMQP_URL": amqp_url, "FEEDMILL_DATABASE_URL": "postgresql://user:secret@127.0.0.1:1/x"}
    for name in ("scheduler", "writer"):
        with running(name, **settings) as service:
            metrics = service.wait_for("started")["metrics"]
            assert httpx.get(metrics.replace("/metrics", "/readyz"), trust_env=False).status_code == 503
            assert service.stop() == 0


def test_a_service_waits_for_a_broker_that_is_away_and_can_be_stopped(database_url: str) -> None:
    settings = {"FEEDMILL_AMQP_URL": "amqp://user:secret@127.0.0.1:1/", "FEEDMILL_DATABASE_URL": database_url}
    for name in ("scheduler", "fetcher", "writer"):
        with running(name, **settings) as service:
            metrics = service.wait_for("started")["metrics"]
            assert httpx.get(metrics.replace("/metrics", "/readyz"), trust_env=False).status_code == 503
            assert service.stop() == 0


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"FEEDMILL_FETCH_THREADS": "none"}, "FEEDMILL_FETCH_THREADS"),
        ({"FEEDMILL_ALLOW_NETWORKS": "10.0.0.1/8"}, "FEEDMILL_ALLOW_NETWORKS"),
        ({"FEEDMILL_RETRY_DELAY_SECONDS": "inf"}, "FEEDMILL_RETRY_DELAY_SECONDS"),
        ({"FEEDMILL_FAST_DELAY_SECONDS": "1e12"}, "FEEDMILL_FAST_DELAY_SECONDS"),
        ({"FEEDMILL_FETCHER_PREFETCH": "70000"}, "FEEDMILL_FETCHER_PREFETCH"),
        ({"FEEDMILL_CONTACT_URL": "\u00e9"}, "FEEDMILL_CONTACT_URL"),
        ({"FEEDMILL_AMQP_URL": "http://user:secret@h/"}, "FEEDMILL_AMQP_URL"),
        ({"FEEDMILL_METRICS_HOST": "192.0.2.1"}, "FEEDMILL_METRICS_HOST"),
    ],
)
def test_a_configuration_that_cannot_work_is_exit_78_and_a_sentence(settings: dict[str, str], complaint: str) -> None:
    with running("fetcher", **settings) as service:
        _, said = service.process.communicate(timeout=20)
        assert service.process.returncode == 78
    assert complaint in said
    assert "Traceback" not in said
    assert "secret" not in said


def test_a_queue_with_other_arguments_is_exit_78_and_says_the_way_out(amqp_url: str) -> None:
    import aio_pika

    async def declare_otherwise() -> None:
        connection = await aio_pika.connect(amqp_url)
        channel = await connection.channel()
        await channel.declare_queue("fetcher.00", durable=True)
        await connection.close()

    asyncio.run(declare_otherwise())
    with running("fetcher", FEEDMILL_AMQP_URL=amqp_url) as service:
        _, said = service.process.communicate(timeout=20)
        assert service.process.returncode == 78
    assert "queue fetcher.00 exists with other arguments" in said
    assert "delete it" in said
