"""`feedmill status` on a real broker: shards in sum, the one that nobody reads by its name, and the verdicts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from typer.testing import CliRunner

from services.admin.registry import NewFeed, add_feed, connect
from services.cli.__main__ import app
from shared.broker.port import Outgoing
from shared.broker.rabbitmq import RabbitMQ
from shared.settings import BrokerSettings
from tests.factories import make_job


@pytest.fixture(autouse=True)
def given(amqp_url: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_AMQP_URL", amqp_url)
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)


def run(*arguments: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, ["status", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == exit_code
    return result.output


async def test_status_names_jobs_in_a_shard_that_no_fetcher_reads(
    amqp_url: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://a.example/feed"))
    monkeypatch.setenv("FEEDMILL_FETCHER_SHARDS", "2")
    broker = RabbitMQ(amqp_url, name="test", max_message_bytes=10**6)
    async with broker.connect(BrokerSettings(fetcher_shards=4).topology()) as session:
        for queue, jobs in {"fetcher.01": 2, "fetcher.02": 3}.items():
            for n in range(jobs):
                await session.publish(Outgoing.into(queue, make_job(feed_id=n)).to_publication())
        await session.consume("fetcher.00", prefetch=1, deliver=lambda delivery: None)
        await session.consume("fetcher.01", prefetch=1, deliver=lambda delivery: None)
        async with asyncio.timeout(30):
            while "no fetcher reads `fetcher.02`, where 3 jobs wait" not in (said := await asyncio.to_thread(run)):
                pass
        assert "fetcher.* (4 shards)" in said
        found: dict[str, Any] = json.loads(await asyncio.to_thread(run, "--json"))
        assert {"fetcher.00", "fetcher.01", "fetcher.02", "fetcher.03"} <= found["queues"].keys()
        assert found["queues"]["fetcher.02"] == 3
        assert found["consumers"]["fetcher.00"] == 1
        assert found["counts"]["feeds"] == 1
        assert {"busiest", "reasons", "articles", "hours"} <= found.keys()


def test_health_says_what_is_down_and_exits_with_1() -> None:
    said = run("--health", exit_code=1)
    assert "the pipeline is down" in said
    assert "the queue `writer` is not declared" in said
    assert json.loads(run("--health", "--json", exit_code=1))["status"] == "down"


async def test_health_exits_with_0_if_all_is_well(amqp_url: str) -> None:
    topology = BrokerSettings().topology()
    async with RabbitMQ(amqp_url, name="test", max_message_bytes=10**6).connect(topology) as session:
        for queue in (*topology.fetcher.queues, topology.writer.queue):
            await session.consume(queue, prefetch=1, deliver=lambda delivery: None)
        assert "the pipeline is healthy" in await asyncio.to_thread(run, "--health")
