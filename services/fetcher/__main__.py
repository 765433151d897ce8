"""`python -m services.fetcher`: puts the fetcher together and runs it. Owns the clocks."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from services.fetcher.attempt import FeedFetcher
from services.fetcher.backpressure import Backpressure
from services.fetcher.clock import Clock, ClockSync
from services.fetcher.handler import FetchFeeds
from services.fetcher.http.client import ClientLimits, FeedClient
from services.fetcher.politeness.metrics import BoardWatch, TimedLock
from services.fetcher.politeness.scoreboard import Scoreboard
from services.fetcher.politeness.slots import Slots
from services.fetcher.politeness.workers import Workers
from services.fetcher.retries import RetryRules
from services.fetcher.settings import FetcherSettings
from services.fetcher.shards.lease import Lease, lease_seconds
from services.fetcher.shards.ownership import Shards
from services.fetcher.sources import load_source_types
from shared.background import beside
from shared.broker.consumer import DRAIN_SECONDS, Consumer
from shared.broker.prefetch import PrefetchLimit
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import Stage
from shared.build import read_version
from shared.clock import ServerClock
from shared.errors import NackAndRequeue
from shared.observability.telemetry import Health
from shared.service import run_service
from shared.wire.jobs import FetchFeed


async def serve(settings: FetcherSettings, stop: asyncio.Event, health: Health) -> None:
    """Consume until `stop`."""
    topology = settings.topology()
    rules = RetryRules(
        max_retries=settings.max_retries,
        retry_delay_seconds=settings.retry_delay_seconds,
        claim_seconds=settings.claim_seconds,
    )
    drain_seconds = settings.longest_fetch_seconds() + DRAIN_SECONDS
    server_clock = ServerClock()
    clock_sync = ClockSync(server_clock)
    with fetching(
        settings,
        topology.fetcher,
        rules,
        clock=Clock(now=server_clock.now, monotonic=time.monotonic, confirmed=clock_sync.confirmed),
        # Lambdas, since the shards are made from parts of the fetcher.
        owns=lambda queue: shards.owns(queue),  # noqa: PLW0108
        owned=lambda: shards.owned(),  # noqa: PLW0108
        may_leave=lambda queue: shards.may_leave(queue),  # noqa: PLW0108
    ) as parts:
        broker = RabbitMQ(str(settings.amqp_url), name="feedmill fetcher", max_message_bytes=settings.max_message_bytes)
        shards = Shards(
            broker,
            topology.fetcher,
            parts.prefetch_limit,
            parts.slots,
            stop=stop,
            drain_seconds=drain_seconds,
            clock=time.monotonic,
            lease=Lease(lease_seconds(broker.heartbeat_seconds)),
            uptime=uptime,
            on_message=clock_sync.receive,
        )
        consumer = Consumer(
            shards,
            topology,
            topology.fetcher,
            FetchFeed,
            parts.handler,
            prefetch=parts.prefetch_limit,
            failures=settings.message_retries,
            drain_seconds=drain_seconds,
        )
        behind = [stage.queue for stage in topology.behind(topology.fetcher)]
        backpressure = Backpressure(behind, high_water=settings.writer_high_water, prefetch_limit=parts.prefetch_limit)
        health.add_check("broker", consumer.check)
        health.add_warning("clock", server_clock.check)
        health.add_page("/debug/scoreboard", parts.watch.dump)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, parts.watch.log_dump)
        backpressure_watch = backpressure.watch(lambda: consumer.session, stop)
        async with beside(stop, parts.slots.stop_when(stop), parts.watch.watch(), backpressure_watch):
            await consumer.run(stop)


@dataclass(frozen=True)
class FetcherParts:
    """The fetcher without its queue."""

    handler: FetchFeeds
    slots: Slots
    prefetch_limit: PrefetchLimit
    watch: BoardWatch


@contextlib.contextmanager
def fetching(
    settings: FetcherSettings,
    stage: Stage,
    rules: RetryRules,
    *,
    clock: Clock,
    owns: Callable[[str], bool] = lambda queue: True,
    owned: Callable[[], list[str]] = list,
    may_leave: Callable[[str], bool] = lambda queue: True,
) -> Iterator[FetcherParts]:
    """Put a fetcher together. Its threads end with the block. `feedmill batch` uses it, too.

    `owns`: whether this process makes the requests to groups of a queue; `owned`: the queues for which that is so;
    `may_leave`: the same as `owns`, but certain, since it checks the lease; asked on a worker thread.

    Raises:
        ConfigurationError: a source type is installed that can't be used.
    """
    load_source_types()
    lock, prefetch_limit = TimedLock(), PrefetchLimit(settings.fetcher_prefetch)
    board: Scoreboard[Any] = Scoreboard(settings.limits(), lock)
    threads = min(settings.fetch_threads, settings.max_active)
    workers, client = Workers(threads), make_client(settings)
    slots = Slots(
        board,
        workers,
        prefetch_limit,
        threads=threads,
        clock=clock.monotonic,
        shard_of=stage.queue_of,
        may_leave=may_leave,
    )

    def check_leaving(group: str) -> None:
        if not may_leave(stage.queue_of(group)):
            raise NackAndRequeue("the shard of its group was lost")

    fetcher = FeedFetcher(client, clock, settings.fetch_limits(), check_leaving)
    proxy_hosts = settings.proxy_host_set()
    handler = FetchFeeds(fetcher, slots, stage, rules=rules, clock=clock, proxy_hosts=proxy_hosts, owns=owns)
    try:
        yield FetcherParts(
            handler, slots, prefetch_limit, BoardWatch(board, lock, workers, prefetch_limit, clock.monotonic, owned)
        )
    finally:
        workers.close()
        client.close()


def uptime() -> float:
    """Return seconds of a clock that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def make_client(settings: FetcherSettings) -> FeedClient:
    """Return the HTTP client that these settings describe."""
    return FeedClient(
        ClientLimits(
            deadline_seconds=settings.fetch_deadline_seconds,
            connect_seconds=settings.connect_timeout_seconds,
            read_seconds=settings.read_timeout_seconds,
            max_body_bytes=settings.max_body_bytes,
            large_bodies=settings.large_bodies,
        ),
        user_agent=f"feedmill/{read_version()} (+{settings.contact_url})",
        allowed=settings.allowed(),
    )


if __name__ == "__main__":
    run_service("fetcher", FetcherSettings, serve)
