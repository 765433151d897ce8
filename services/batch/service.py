"""Puts a run together: claims, the fetcher's handler, the publisher of results, and the loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from psycopg.errors import InsufficientPrivilege
from psycopg.types.json import Json

from services.batch.leftovers import take_back
from services.batch.results import ResultPublisher, UnwrittenResults
from services.batch.runner import STAGE, Run
from services.batch.summary import Summary
from services.batch.window import Window, max_in_progress
from services.fetcher.__main__ import fetching
from services.fetcher.backpressure import Backpressure
from services.fetcher.clock import Clock
from services.fetcher.retries import RetryRules
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from services.scheduler.store import claim_due_feeds, release_claims
from services.scheduler.tracing import trace_claims
from shared.background import beside
from shared.broker.consumer import DRAIN_SECONDS
from shared.broker.port import Outgoing, Session
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
"""Retries of a soft error at the end of the run, unless FEEDMILL_MAX_RETRIES forbids them."""

CONNECTIONS = 3
"""Database connections: for the claims, for the look at the fetch log, and one to spare."""

KEPT_RUNS = 1000
"""So many runs are remembered."""

RELEASE_SECONDS = 30.0
"""Releasing claims is tried for so long."""


class Claims:
    """Claims feeds that were due when the run began: feeds that become due meanwhile are left to the next run.

    Args:
        clock: is set by the database's, which the claims' deadlines follow.
        batch: the most feeds that one statement claims.
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
            DatabaseUnavailable: away; if feeds were claimed nevertheless, their claims expire.
        """
        if self._due_by is None:
            self._due_by = await self._database.read_clock()
            self._clock.observe(self._due_by)
        began_at = time.time_ns()
        async with self._database.transaction() as connection:
            claimed = await claim_due_feeds(
                connection, limit=min(limit, self._batch), claim_seconds=self.seconds, due_by=self._due_by
            )
        jobs = [job.model_copy(update={"reason": "batch"}) for job in claimed.jobs]
        trace_claims(jobs, began_at)
        return jobs, claimed.feeds

    async def release(self, jobs: Sequence[FetchFeed]) -> bool:
        """Release claims: their feeds are due again at once. Return False if the database is away for long."""
        given_up = asyncio.Event()
        giving_up = asyncio.get_running_loop().call_later(RELEASE_SECONDS, given_up.set)
        try:
            await keep_trying(lambda: self.release_once(jobs), what="releasing claims", until=(given_up,))
        except Unavailable as error:
            log.warning("could not release %d claims, they will run out by themselves: %s", len(jobs), error)
            return False
        finally:
            giving_up.cancel()
        return True

    async def release_once(self, jobs: Sequence[FetchFeed]) -> None:
        """Release claims. Raises DatabaseUnavailable."""
        async with self._database.transaction() as connection:
            await release_claims(connection, jobs)


class BatchService:
    """A run with everything that it needs.

    Args:
        amqp_url: where results go.
        database_url: where claims come from.
        fetcher: settings of the requests.
        scheduler: settings of the claims.
        waits_for_writer: whether the run ends after the writer has written its results, and counts new articles.
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
        self._publisher = ResultPublisher(self._broker, self._topology)
        self._clock = ServerClock()
        self._claims = Claims(self._database, self._clock, batch=scheduler.claim_batch, seconds=scheduler.claim_seconds)
        self.summary = Summary()
        self._unwritten = UnwrittenResults(self._database, self.summary) if waits_for_writer else None

    async def run(self, stop: asyncio.Event, hurry: asyncio.Event, health: Health) -> None:
        """Run until all is done or `stop`; then wait for the writer, until `hurry`.

        Raises:
            Unavailable: a server can't be used from the beginning.
            ConfigurationError: the topology does not fit the broker's queues.
        """
        began = time.monotonic()
        health.add_check("broker", self._publisher.check)
        health.add_check("database", self._database.check)
        async with self._database.open():
            await self._database.require_schema()
            async with self._broker.connect(self._topology) as session:
                if not self._unwritten and not await session.count_consumers(self._topology.writer.queue):
                    log.warning("no writer runs: results wait in the queue until one does")
                await self._take_back(session, stop)
            async with self._publisher.open(stop):
                await self._fetch(stop)
                if self._unwritten:
                    await self._unwritten.wait(hurry)
            await self._record(time.monotonic() - began)

    async def _take_back(self, session: Session, stop: asyncio.Event) -> None:
        """Make the feeds due whose jobs fetchers have left. The run is no worse without: such claims expire."""
        try:
            self.summary.taken_back = await take_back(
                session,
                self._topology.fetcher,
                self._claims.release_once,
                max_message_bytes=self._broker.max_message_bytes,
                stop=stop,
            )
        except Unavailable as error:
            log.warning("the fetchers' queues could not be looked through: %s", error)

    async def _record(self, seconds: float) -> None:
        """Write a row for the run, by which the pipeline's health is judged. The run is no worse without it."""
        try:
            async with self._database.transaction() as connection:
                summary = Json(self.summary.as_json() | {"seconds": round(seconds, 1)})
                await connection.execute(
                    "INSERT INTO batch_runs (seconds, summary) VALUES (%s, %s)", [seconds, summary]
                )
                await connection.execute(
                    "DELETE FROM batch_runs WHERE id <= (SELECT max(id) FROM batch_runs) - %s", [KEPT_RUNS]
                )
        except (Unavailable, InsufficientPrivilege) as error:
            log.warning("the run is over, and could not be recorded: %s", error)

    async def _fetch(self, stop: asyncio.Event) -> None:
        settings, limits = self._settings, self._settings.limits()
        rules = RetryRules(
            max_retries=min(settings.max_retries, RETRIES),
            retry_delay_seconds=settings.fast_delay_seconds,
            claim_seconds=settings.claim_seconds,
        )
        clock = Clock(now=self._clock.now, monotonic=time.monotonic)
        fetcher = self._topology.fetcher
        stage = replace(STAGE, next_key=fetcher.next_key, next_key_if_empty=fetcher.next_key_if_empty)
        with fetching(settings, stage, rules, clock=clock) as parts:
            run = Run(
                self._claims,
                parts.handler,
                self._publish,
                Window(settings.fetcher_prefetch, lambda group: max_in_progress(limits, group)),
                parts.prefetch_limit,
                delay_seconds=settings.fast_delay_seconds,
                drain_seconds=settings.longest_fetch_seconds() + DRAIN_SECONDS,
                summary=self.summary,
            )
            backpressure = Backpressure(
                [stage.queue for stage in self._topology.behind(self._topology.fetcher)],
                high_water=settings.writer_high_water,
                prefetch_limit=parts.prefetch_limit,
            )
            over = asyncio.Event()
            async with beside(
                over,
                parts.slots.stop_when(stop),
                parts.watch.watch(),
                backpressure.watch(lambda: self._publisher.session, over),
                *([self._unwritten.watch()] if self._unwritten else []),
            ):
                await run.run(stop)

    async def _publish(self, result: FeedFetched, until: asyncio.Event) -> None:
        await self._publisher.publish(Outgoing.onward(self._topology.fetcher, result).to_publication(), until=until)
        if self._unwritten:
            self._unwritten.add(result)
