"""A fetcher alone: jobs put into its queue by hand, results taken from the queue behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from local.servers import Servers
from shared.broker.port import Outgoing
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import build_topology, fetch_routing_key
from shared.politeness import politeness_group
from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched
from tests.conftest import own_vhost
from tests.manners.services import running
from tests.manners.sites import PATIENCE_SECONDS

TOPOLOGY = build_topology(fast_delay_seconds=1, retry_delay_seconds=1, message_retry_seconds=1)
"""Of the queues whose names don't depend on these delays."""


@dataclass(frozen=True)
class Fetcher:
    """A running fetcher."""

    pid: int
    amqp_url: str

    def fetch(self, urls: Iterable[str]) -> None:
        """Give it a feed to fetch for each URL, in this order."""
        asyncio.run(self._publish([_job(number, url) for number, url in enumerate(urls)]))

    def results(self, number: int) -> list[FeedFetched]:
        """Return its next results, in the order of their jobs."""
        return sorted(asyncio.run(self._take(number)), key=lambda result: result.feed_id)

    async def _publish(self, jobs: list[FetchFeed]) -> None:
        async with self._broker().connect(TOPOLOGY) as session:
            for job in jobs:
                await session.publish(
                    Outgoing(job, fetch_routing_key(job.group, len(TOPOLOGY.fetcher.queues))).to_publication()
                )

    async def _take(self, number: int) -> list[FeedFetched]:
        found: list[FeedFetched] = []
        async with self._broker().connect(TOPOLOGY) as session, asyncio.timeout(PATIENCE_SECONDS):
            await session.consume(
                TOPOLOGY.writer.queue,
                prefetch=100,
                deliver=lambda delivery: found.append(FeedFetched.decode(delivery.body, delivery.content_encoding)),
            )
            while len(found) < number:
                await asyncio.sleep(0.02)
        return found

    def _broker(self) -> RabbitMQ:
        return RabbitMQ(self.amqp_url, name="test", max_message_bytes=10**6)


@contextmanager
def running_fetcher(servers: Servers, logs: Path, **settings: str) -> Iterator[Fetcher]:
    """Run a fetcher in a vhost of its own for the length of the block."""
    with (
        own_vhost(servers) as amqp_url,
        running(("fetcher",), logs, {"FEEDMILL_AMQP_URL": amqp_url, **settings}) as pids,
    ):
        yield Fetcher(pids["fetcher"], amqp_url)


def _job(number: int, url: str) -> FetchFeed:
    now = datetime.now(UTC)
    return FetchFeed(
        feed_id=number,
        url=url,
        group=politeness_group(url),
        claim_id=uuid4(),
        not_after=now + timedelta(minutes=5),
        queued_at=now,
    )
