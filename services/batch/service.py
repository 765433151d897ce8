"""What takes part in a run, put together: the fetcher's handler, claims, outlet, receipts, and the loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from datetime import datetime

from services.batch.results import ResultPublisher, WrittenResults
from services.batch.runner import STAGE, Pauses, Run
from services.batch.summary import Summary
from services.batch.window import Window, share_of
from services.fetcher.__main__ import fetching
from services.fetcher.backpressure import Backpressure
from services.fetcher.clock import Clock
from services.fetcher.outcomes import RetryRules
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from services.scheduler.store import claim_due_feeds, release_claims
from shared.background import beside
from shared.broker.consumer import DRAIN_SECONDS
from shared.broker.port import Outgoing
from shared.broker.rabbitmq import RabbitMQ
from shared.clock import ServerClock
from shared.database.postgres import Database
from shared.errors import Unavailable
from shared.observability.telemetry import Health
from shared.waiting import keep_trying
from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched

log = logging.getLogger(__name__)

RETRIES = 1
"""Of a soft error, at the end of the run; unless FEEDMILL_MAX_RETRIES forbids it."""

CONNECTIONS = 3
"""To the database: the claim at hand, the look at what is written, and one to spare."""

RELEASE_SECONDS = 30.0
"""How long a database that is away is waited for, to give claims back."""


class Claims:
    """See the module. What becomes due while the run lasts is left to the next one: a run has an end.

    Args:
        clock: set by the database's, which the claims' deadlines are made by.
        batch: feeds claimed in one go, at most.
        seconds: how long the claims live.
    """

    def __init__(self, database: Database, clock: ServerClock, *, batch: int, seconds: float) -> None:
        self._database = database
        self._clock = clock
        self._batch = batch
        self.seconds = seconds
        self._due_by: datetime | None = None

    async def take(self, limit: int) -> tuple[list[FetchFeed], int]:
        """Claim up to `limit` feeds; return their jobs, and how many were claimed (a row may make no job).

        Raises:
            DatabaseUnavailable: away; what may have been claimed nevertheless runs out.
        """
        if self._due_by is None:
            self._due_by = await self._database.read_clock()
            self._clock.observe(self._due_by)
        async with self._database.transaction() as connection:
            claimed = await claim_due_feeds(
                connection, limit=min(limit, self._batch), claim_seconds=self.seconds, due_by=self._due_by
            )
        return [job.model_copy(update={"reason": "batch"}) for job in claimed.jobs], claimed.feeds

    async def release(self, jobs: Sequence[FetchFeed]) -> None:
        """Give claims back: their feeds are due again at once. Raises DatabaseUnavailable."""
        async with self._database.transaction() as connection:
            await release_claims(connection, jobs)


class BatchService:
    """See the module.

    Args:
        waits_for_writer: the run waits for the writer, and tells how many articles were new.
    """

    def __init__(
        self,
        amqp_url: str,
        database_url: str,
        fetcher: FetcherSettings,
        scheduler: SchedulerSettings,
        *,
        waits_for_writer: bool,
    ) -> None:
        self._settings = fetcher
        self._database = Database(
            database_url,
            size=CONNECTIONS,
            prepared=scheduler.prepared_statements,
            statement_seconds=scheduler.statement_seconds,
        )
        self._topology = fetcher.topology()
        self._broker = RabbitMQ(amqp_url, name="feedmill batch", max_message_bytes=fetcher.max_message_bytes)
        self._outlet = ResultPublisher(self._broker, self._topology)
        self._clock = ServerClock()
        self._claims = Claims(self._database, self._clock, batch=scheduler.claim_batch, seconds=scheduler.claim_seconds)
        self.summary = Summary()
        self._receipts = WrittenResults(self._database, self.summary) if waits_for_writer else None

    async def run(self, stop: asyncio.Event, hurry: asyncio.Event, health: Health) -> None:
        """Run until all is done or `stop`; then wait for the writer, until `hurry`.

        Raises:
            Unavailable: a server can't be used from the beginning.
            ConfigurationError: the topology does not fit what stands in the broker.
        """
        health.add_check("broker", self._outlet.check)
        health.add_check("database", self._database.check)
        async with self._database.open():
            await self._database.require_schema()
            async with self._broker.connect(self._topology) as session:
                if not self._receipts and not await session.count_consumers(self._topology.writer.queue):
                    log.warning("no writer runs: results wait in the queue until one does")
            async with self._outlet.open(stop):
                await self._fetch(stop)
                if self._receipts:
                    await self._receipts.wait_written(hurry)

    async def _fetch(self, stop: asyncio.Event) -> None:
        settings, pause_seconds = self._settings, self._settings.fast_delay_seconds
        rules = RetryRules(
            max_retries=min(settings.max_retries, RETRIES),
            retry_delay_seconds=pause_seconds,
            claim_seconds=settings.claim_seconds,
        )
        limits = settings.limits()
        window = Window(settings.fetcher_prefetch, lambda group: share_of(limits, group))
        pauses = Pauses(delay=pause_seconds, drain=settings.longest_fetch_seconds() + DRAIN_SECONDS)
        clock = Clock(now=self._clock.now, monotonic=time.monotonic)
        with fetching(settings, STAGE, rules, clock=clock) as room:
            run = Run(
                self._claims,
                room.handler,
                self._publish,
                self._release,
                window,
                room.prefetch_limit,
                pauses,
                self.summary,
            )
            backpressure = Backpressure(
                self._topology.writer.queue, high_water=settings.writer_high_water, prefetch_limit=room.prefetch_limit
            )
            over = asyncio.Event()
            watching = [self._receipts.watch()] if self._receipts else []
            async with beside(
                over,
                room.slots.stop_when(stop),
                room.watch.watch(),
                backpressure.watch(lambda: self._outlet.session, over),
                *watching,
            ):
                await run.run(stop)

    async def _publish(self, item: Outgoing, until: asyncio.Event) -> None:
        await self._outlet.publish(item.to_publication(), until=until)
        if self._receipts and isinstance(item.message, FeedFetched):
            self._receipts.note(item.message)

    async def _release(self, jobs: Sequence[FetchFeed]) -> None:
        given_up = asyncio.Event()
        giving_up = asyncio.get_running_loop().call_later(RELEASE_SECONDS, given_up.set)
        try:
            await keep_trying(lambda: self._claims.release(jobs), what="giving claims back", until=(given_up,))
            self.summary.given_back += len(jobs)
        except Unavailable as error:
            log.warning("could not give %d claims back, they will run out by themselves: %s", len(jobs), error)
        finally:
            giving_up.cancel()
