"""A fetcher alone: a test puts jobs into its queue, and takes results from the queue behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.servers import Servers
from shared.broker.topology import build_topology
from shared.politeness import politeness_group
from shared.wire.results import FeedFetched
from tests.conftest import own_vhost
from tests.e2e.fetcher.fetcher_bench import Queues, make_job
from tests.manners.services import running

TOPOLOGY = build_topology(fast_delay_seconds=1, retry_delay_seconds=1, message_retry_seconds=1)
"""The tests use only queues whose names don't depend on these delays."""


@dataclass(frozen=True)
class Fetcher:
    """A running fetcher, and the queues of its vhost."""

    pid: int
    queues: Queues

    def fetch(self, urls: Iterable[str]) -> None:
        """Give it a feed to fetch for each URL, in this order."""
        jobs = [make_job(url, number, politeness_group(url)) for number, url in enumerate(urls)]
        asyncio.run(self.queues.publish(*jobs))

    def results(self, number: int) -> list[FeedFetched]:
        """Wait for so many results, and return them in the order of their jobs."""
        return sorted(asyncio.run(self.queues.results(number)), key=lambda result: result.feed_id)


@contextmanager
def running_fetcher(servers: Servers, logs: Path, **settings: str) -> Iterator[Fetcher]:
    """Run a fetcher in a vhost of its own for the length of the block."""
    with (
        own_vhost(servers) as amqp_url,
        running(("fetcher",), logs, {"FEEDMILL_AMQP_URL": amqp_url, **settings}) as pids,
    ):
        yield Fetcher(pids["fetcher"], Queues(amqp_url, TOPOLOGY))
