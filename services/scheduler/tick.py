"""One tick: check the backlog, claim due feeds, publish their jobs, release the claims of unpublished jobs.

A job whose publish was not confirmed may be in its shard. Its claim is kept: with a second job the feed would be
fetched twice.

- While the session stands, the next tick waits for the same confirm and claims nothing before. A broker under a memory
  or disk alarm confirms nothing as long as the alarm lasts.
- After the session is lost, no confirm can come. The claim expires.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import partial

from prometheus_client import Counter, Histogram

from services.scheduler.store import claim_due_feeds, disable_feed, release_claims
from services.scheduler.tracing import trace_claims
from shared.broker.port import Broker, Outgoing, Publication, Session
from shared.broker.topology import Topology, fetch_routing_key
from shared.database.postgres import Database
from shared.errors import BrokerUnavailable, FeedmillError, Unavailable, Unconfirmed, Unprocessable
from shared.waiting import keep_trying, pause
from shared.wire.jobs import FetchFeed

log = logging.getLogger(__name__)

CLAIMED = Counter("feedmill_feeds_claimed_total", "Due feeds claimed by this scheduler.")
EXPIRED = Counter("feedmill_claims_expired_total", "Of these, feeds whose earlier claim had run out unanswered.")
LATENESS = Histogram(
    "feedmill_claim_lateness_seconds",
    "For how long a feed had been due when it was claimed, in seconds.",
    buckets=(1, 2, 5, 15, 60, 300, 900, 3600, 14400, 86400),
)
PUBLISHED = Counter("feedmill_jobs_published_total", "Jobs that the broker confirmed.")
RELEASED = Counter("feedmill_claims_released_total", "Claims released because their job could not be published.")

IN_DOUBT = Counter(
    "feedmill_jobs_in_doubt_total", "Jobs that were neither confirmed nor refused before their session was lost."
)

IN_FLIGHT = 100
"""Publishes awaiting their confirm at the same time; more gains nothing (measured)."""


class Tick:
    """The work of one tick. Spans in seconds."""

    def __init__(
        self,
        database: Database,
        topology: Topology,
        *,
        batch: int,
        claim_seconds: float,
        high_water: int,
        group_jobs: int | None = None,
    ) -> None:
        self._database = database
        self._topology = topology
        self._batch = batch
        self._claim_seconds = claim_seconds
        self._high_water = high_water
        self._group_jobs = group_jobs
        self._unconfirmed: list[tuple[FetchFeed, Publication]] = []
        self._session: Session | None = None
        """Where they were published."""

    async def run(self, session: Session) -> int:
        """Issue the feeds that are due, up to one batch; return how many were claimed.

        Raises:
            Unconfirmed: some jobs still are. Nothing was claimed; the session is to be kept.
            Unavailable: database or broker away. Claims of jobs that were refused or never sent are released; if the
                database is away too, they expire.
        """
        await self._await_unconfirmed(session)
        backlog = await self._count_backlog(session)
        room = self._high_water - backlog
        if room <= 0:
            log.warning("the fetchers lag behind, publishing pauses", extra={"backlog": backlog})
            return 0
        began_at = time.time_ns()
        async with self._database.transaction() as connection:
            claimed = await claim_due_feeds(
                connection,
                limit=min(self._batch, room),
                claim_seconds=self._claim_seconds,
                per_group=self._group_jobs,
            )
        CLAIMED.inc(claimed.feeds)
        EXPIRED.inc(claimed.expired)
        for seconds in claimed.lateness:
            LATENESS.observe(seconds)
        if claimed.jobs:
            trace_claims(claimed.jobs, began_at)
            await self._publish(session, [(job, self._to_publication(job)) for job in claimed.jobs])
            log.info("issued %d feeds", len(claimed.jobs), extra={"feed_ids": [job.feed_id for job in claimed.jobs]})
        return claimed.feeds

    async def _count_backlog(self, session: Session) -> int:
        """Return how many jobs wait in all shards together."""
        return sum([await session.count_ready(queue) or 0 for queue in self._topology.fetcher.queues])

    async def _await_unconfirmed(self, session: Session) -> None:
        """Wait for the confirms of an earlier tick."""
        unconfirmed, self._unconfirmed = self._unconfirmed, []
        if unconfirmed and self._session is session and not session.lost.is_set():
            await self._publish(session, unconfirmed)
        elif unconfirmed:
            feeds = [job.feed_id for job, _ in unconfirmed]
            IN_DOUBT.inc(len(feeds))
            log.warning(
                "it is unknown whether these jobs were published, their claims expire", extra={"feed_ids": feeds}
            )

    def _to_publication(self, job: FetchFeed) -> Publication:
        key = fetch_routing_key(job.group, len(self._topology.fetcher.queues))
        return Outgoing(job, key).to_publication()

    async def _publish(self, session: Session, jobs: Sequence[tuple[FetchFeed, Publication]]) -> None:
        """Publish, and handle each job that was not confirmed. After the first without an answer none is sent."""
        slots, unanswered = asyncio.Semaphore(IN_FLIGHT), asyncio.Event()

        async def publish(publication: Publication) -> None:
            async with slots:
                if unanswered.is_set():
                    raise BrokerUnavailable("not sent: the broker does not confirm what it was sent before")
                try:
                    await session.publish(publication)
                except Unconfirmed:
                    unanswered.set()
                    raise
                PUBLISHED.inc()

        results = await asyncio.gather(*(publish(publication) for _, publication in jobs), return_exceptions=True)
        failed = [(*job, result) for job, result in zip(jobs, results, strict=True) if result is not None]
        unconfirmed = [error for *_, error in failed if isinstance(error, Unconfirmed)]
        self._session = session
        self._unconfirmed = [(job, sent) for job, sent, error in failed if isinstance(error, Unconfirmed)]
        for job, _, error in failed:
            if isinstance(error, Unprocessable):  # no broker will ever accept this job
                async with self._database.transaction() as connection:
                    await disable_feed(connection, job.feed_id, f"its job can't be published: {error}")
        refused = [(job, error) for job, _, error in failed if not isinstance(error, Unprocessable | Unconfirmed)]
        if refused:
            await self._release([job for job, _ in refused], refused[0][1])
        errors = [*unconfirmed, *(error for _, error in refused)]
        if errors:
            raise errors[0]  # first the unconfirmed: they need the session

    async def _release(self, jobs: Sequence[FetchFeed], cause: BaseException) -> None:
        log.warning("could not publish, releasing %d claims: %s", len(jobs), cause)
        try:
            async with self._database.transaction() as connection:
                await release_claims(connection, jobs)
            RELEASED.inc(len(jobs))
        except FeedmillError as error:
            log.warning("could not release them either, they expire: %s", error)


class Ticker:
    """Runs `tick` every `seconds`, or at once after a tick that claimed `full` feeds. Reconnects when needed."""

    def __init__(self, broker: Broker, topology: Topology, tick: Tick, *, full: int, seconds: float) -> None:
        self._broker = broker
        self._topology = topology
        self._tick = tick
        self._full = full
        self._seconds = seconds
        self._session: Session | None = None

    @property
    def session(self) -> Session | None:
        """The session with the broker, if one stands."""
        return self._session if self._session and not self._session.lost.is_set() else None

    def check(self) -> str | None:
        """Return what keeps the scheduler from being ready, if anything (a `shared.observability.telemetry.Check`)."""
        return None if self.session else "no session with the broker"

    async def run(self, stop: asyncio.Event) -> None:
        """Tick until `stop`.

        Raises:
            ConfigurationError: the topology does not fit what stands in the broker.
        """
        while not stop.is_set():
            try:
                await keep_trying(partial(self._run_session, stop), what="scheduling", until=(stop,))
            except Unavailable as error:
                log.info("stopped while a server was away: %s", error)

    async def _run_session(self, stop: asyncio.Event) -> None:
        async with self._broker.connect(self._topology) as session:
            self._session = session
            try:
                while not (stop.is_set() or session.lost.is_set()):
                    if await self._run_tick(session) < self._full:
                        await pause(self._seconds, stop, session.lost)
            finally:
                self._session = None

    async def _run_tick(self, session: Session) -> int:
        """Return how many feeds were claimed. While confirms are awaited, the session is kept: they come over it."""
        try:
            return await self._tick.run(session)
        except Unconfirmed as error:
            if session.lost.is_set():
                raise
            log.warning("the broker does not confirm what is published, nothing is claimed meanwhile: %s", error)
            return 0
