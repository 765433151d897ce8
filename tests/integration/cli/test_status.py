"""`feedmill status` on a real broker: shards in sum, and the one that nobody reads by its name."""

from __future__ import annotations

import asyncio

import pytest

from services.admin.registry import NewFeed, add_feed, connect
from services.admin.status import look
from services.cli.commands.status import show
from shared.broker.port import Outgoing
from shared.broker.rabbitmq import RabbitMQ
from shared.settings import BrokerSettings
from tests.factories import make_job


async def test_status_names_jobs_in_a_shard_that_no_fetcher_reads(
    amqp_url: str, database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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

        async def look_until_counted() -> None:
            async with asyncio.timeout(10):
                while True:
                    status = await asyncio.to_thread(look, amqp_url, database_url)
                    if any("no fetcher reads `fetcher.02`, where 3 jobs wait" in reason for reason in status.reasons):
                        break
            show(status)
            assert "fetcher.* (4 shards)" in capsys.readouterr().out
            assert {"fetcher.00", "fetcher.01", "fetcher.02", "fetcher.03"} <= status.as_json()["queues"].keys()

        await look_until_counted()
