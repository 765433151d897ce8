"""`feedmill feeds fetch` of a feed whose job waits in the retry queue, on a real broker and a real database."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest
from typer.testing import CliRunner

from services.admin.registry import NewFeed, add_feed, connect
from services.cli.__main__ import app
from shared.broker.port import Delivery, Outgoing
from shared.broker.rabbitmq import RabbitMQ
from shared.settings import BrokerSettings
from shared.wire.jobs import FetchFeed
from tests.factories import make_job

TOPOLOGY = BrokerSettings().topology()
STAGE = TOPOLOGY.fetcher


@dataclass
class Waiting:
    """Two feeds; the jobs of both wait in the retry queue."""

    amqp_url: str
    database_url: str
    claims: dict[int, UUID]

    def fetch(self, feed: int) -> str:
        result = CliRunner().invoke(app, ["feeds", "fetch", str(feed)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    def issued(self) -> dict[int, bool]:
        with connect(self.database_url) as connection:
            rows = connection.execute("SELECT id, issued_at IS NOT NULL AS issued, claim_id FROM feeds").fetchall()
        assert {row["id"]: row["claim_id"] for row in rows} == self.claims
        return {row["id"]: row["issued"] for row in rows}

    async def publish(self, feed: int, claim: UUID) -> None:
        job = make_job(feed_id=feed, claim_id=claim, attempt=1, group="news.example")
        async with self._broker().connect(TOPOLOGY) as session:
            await session.publish(Outgoing.after(STAGE.retry, job, then=STAGE.queue_of(job.group)).to_publication())

    async def ready(self, queue: str, number: int) -> None:
        async with self._broker().connect(TOPOLOGY) as session, asyncio.timeout(30):
            while await session.count_ready(queue) != number:
                await asyncio.sleep(0.02)

    async def take(self, queue: str) -> FetchFeed:
        taken: list[Delivery] = []
        async with self._broker().connect(TOPOLOGY) as session, asyncio.timeout(30):
            await session.consume(queue, prefetch=1, deliver=taken.append)
            while not taken:
                await asyncio.sleep(0.02)
            await session.ack(taken[0])
        assert taken[0].headers["feed_id"] == 1
        return FetchFeed.decode(taken[0].body, taken[0].content_encoding)

    def _broker(self) -> RabbitMQ:
        return RabbitMQ(self.amqp_url, name="test", max_message_bytes=10**6)


@pytest.fixture
async def waiting(amqp_url: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Waiting:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    monkeypatch.setenv("FEEDMILL_AMQP_URL", amqp_url)
    claims = {1: uuid4(), 2: uuid4()}
    found = Waiting(amqp_url, database_url, claims)
    with connect(database_url) as connection:
        for feed, claim in claims.items():
            add_feed(connection, NewFeed(f"http://news.example/{feed}"), claim_id=claim)
        connection.execute(
            "UPDATE feeds SET claim_expires_at = now() + interval '2 hours', last_outcome = 'soft_error'"
        )
    for feed, claim in claims.items():
        await found.publish(feed, claim)
    await found.ready(STAGE.retry, 2)
    return found


SHARD = STAGE.queue_of("news.example")


async def test_the_job_is_moved_to_its_shard_with_its_claim_and_the_others_stay(waiting: Waiting) -> None:
    assert "is fetched now" in await asyncio.to_thread(waiting.fetch, 1)
    await waiting.ready(SHARD, 1)
    await waiting.ready(STAGE.retry, 1)
    assert waiting.issued() == {1: True, 2: False}
    assert "it is being fetched" in await asyncio.to_thread(waiting.fetch, 1)
    job = await waiting.take(SHARD)
    assert (job.claim_id, job.attempt) == (waiting.claims[1], 1)


async def test_a_job_of_an_earlier_claim_stays_where_it_is(waiting: Waiting) -> None:
    with connect(waiting.database_url) as connection:
        connection.execute("UPDATE feeds SET claim_id = gen_random_uuid() WHERE id = 1")
    assert "its job is not in the retry queue" in await asyncio.to_thread(waiting.fetch, 1)
    await waiting.ready(STAGE.retry, 2)
    await waiting.ready(SHARD, 0)
