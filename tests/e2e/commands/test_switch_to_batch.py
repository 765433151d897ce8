"""The switch from scheduler and fetchers to `feedmill batch`: what they leave is neither lost nor stuck."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from local.demo.demo import DELAYS, SHARDS
from services.scheduler.store import claim_due_feeds
from shared.broker.port import Outgoing, Publication
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.shards import lock_of
from shared.broker.topology import EXCHANGE, build_topology
from shared.database.postgres import Database
from tests.e2e.commands.test_batch import Bench, farm_of, spec, until

pytestmark = pytest.mark.e2e

TOPOLOGY = build_topology(**DELAYS, fetcher_shards=SHARDS)
STAGE = TOPOLOGY.fetcher


@pytest.fixture
def bench(amqp_url: str, database_url: str) -> Bench:
    return Bench(amqp_url, database_url)


@contextmanager
def service(bench: Bench, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a service, and end it as a rollout does."""
    command = [sys.executable, "-m", "services.cli", name]
    with subprocess.Popen(command, env=bench.environment(), stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


def waiting(bench: Bench) -> int:
    """Return how many jobs stand in the fetchers' queues."""
    return sum(bench.count_ready(queue) or 0 for queue in STAGE.queues)


def test_the_first_run_takes_over_what_scheduler_and_fetchers_left(bench: Bench) -> None:
    specs = [spec(f"feed-{n}", host=2 + n % 4, delay_seconds=0.2) for n in range(20)]
    with farm_of(bench, specs) as farm:
        with service(bench, "scheduler"):
            until(lambda: waiting(bench) == 20)
        with service(bench, "fetcher"):
            until(lambda: farm.request_count() >= 4)
        left = waiting(bench)
        assert 0 < left < 20
        assert bench.due() == 0, "their claims are alive"
        run = bench.run("--writer")
        assert run["taken_back"] == run["claimed"] == run["attempts"] == left
        assert Counter(record.path for record in farm.access_log()) == {f"/feed-{n}": 1 for n in range(20)}
        assert bench.delivered() == sorted(farm.expected_articles().items())
    assert (waiting(bench), bench.claims()) == (0, 0)


async def test_a_living_fetchers_jobs_and_others_claims_are_left_and_a_retry_is_taken_when_its_time_has_come(
    bench: Bench, amqp_url: str, database_url: str
) -> None:
    bench.register(*(f"http://127.0.0.{2 + n}:1/" for n in range(9)))
    async with (
        Database(database_url, size=2).open() as database,
        RabbitMQ(amqp_url, name="test", max_message_bytes=10**6).connect(TOPOLOGY) as session,
    ):
        async with database.transaction() as connection:
            jobs = (await claim_due_feeds(connection, limit=9, claim_seconds=600)).jobs
            # Somebody else has claimed the last one since.
            await connection.execute("UPDATE feeds SET claim_id = gen_random_uuid() WHERE id = %s", [jobs[-1].feed_id])
        retried, *others = jobs
        for job in others:
            await session.publish(Outgoing.into(STAGE.queue_of(job.group), job).to_publication())
        of_the_retry = STAGE.queue_of(retried.group)
        shares = Counter(STAGE.queue_of(job.group) for job in others)
        owned, kept = max((share for share in shares.items() if share[0] != of_the_retry), key=lambda share: share[1])
        await session.publish(Publication(of_the_retry, b"no job", EXCHANGE, ""))
        stale = STAGE.queue_of(jobs[-1].group) != owned

        assert await session.lock(lock_of(owned))
        first = await asyncio.to_thread(bench.run)
        assert (first["taken_back"], first["claimed"]) == (8 - kept, 8 - kept - stale)
        assert (await session.count_ready(owned), await session.count_ready(STAGE.dead)) == (kept, 1)

        await session.unlock(lock_of(owned))
        await session.publish(Outgoing.after(STAGE.retry, retried, then=of_the_retry).to_publication())
        async with asyncio.timeout(30):
            while not await session.count_ready(of_the_retry):
                await asyncio.sleep(0.05)
        last = await asyncio.to_thread(bench.run)
        assert (last["taken_back"], last["claimed"]) == (kept + 1, kept + 1 - (not stale))
        assert [await session.count_ready(queue) for queue in STAGE.queues] == [0] * SHARDS
