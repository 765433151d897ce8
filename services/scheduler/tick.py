"""One tick: look at the backlog, claim what is due, publish it, give back what could not be published."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from prometheus_client import Counter, Histogram

from services.scheduler.store import claim_due_feeds, disable_feed, release_claims
from shared.broker import Session
from shared.errors import FeedmillError, Unprocessable
from shared.messages import FetchFeed
from shared.outgoing import Outgoing, encode_outgoing
from shared.postgres import Database
from shared.topology import Topology, fetch_routing_key

log = logging.getLogger(__name__)

CLAIMED = Counter("feedmill_feeds_claimed_total", "Due feeds claimed by this scheduler.")
EXPIRED = Counter("feedmill_claims_expired_total", "Of these, feeds whose earlier claim had run out unanswered.")
LATENESS = Histogram(
    "feedmill_claim_lateness_seconds",
    "For how long a feed had been due when it was claimed, in seconds.",
    buckets=(1, 2, 5, 15, 60, 300, 900, 3600, 14400, 86400),
)
PUBLISHED = Counter("feedmill_jobs_published_total", "Jobs that the broker confirmed.")
RELEASED = Counter("feedmill_claims_released_total", "Claims given back because their job could not be published.")

IN_FLIGHT = 100
"""Publishes awaiting their confirm at the same time; more gains nothing (measured)."""


class Tick:
    """What one scheduler does again and again. Spans in seconds."""

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

    async def run(self, session: Session) -> int:
        """Issue the feeds that are due, up to one batch; return how many were claimed.

        Raises:
            Unavailable: database or broker away. Claims whose jobs were not confirmed were given back, or, if
                the database is away too, run out by themselves.
        """
        backlog = await self._count_backlog(session)
        room = self._high_water - backlog
        if room <= 0:
            log.warning("the fetchers lag behind, publishing pauses", extra={"backlog": backlog})
            return 0
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
            await self._publish_all(session, claimed.jobs)
            log.info("issued %d feeds", len(claimed.jobs), extra={"feed_ids": [job.feed_id for job in claimed.jobs]})
        return claimed.feeds

    async def _count_backlog(self, session: Session) -> int:
        """Return how many jobs wait in all shards together."""
        return sum([await session.count_ready(queue) or 0 for queue in self._topology.fetcher.queues])

    async def _publish_all(self, session: Session, jobs: Sequence[FetchFeed]) -> None:
        slots, shards = asyncio.Semaphore(IN_FLIGHT), len(self._topology.fetcher.queues)

        async def publish(job: FetchFeed) -> None:
            async with slots:
                await session.publish(encode_outgoing(Outgoing(job, fetch_routing_key(job.group, shards))))
                PUBLISHED.inc()

        results = await asyncio.gather(*map(publish, jobs), return_exceptions=True)
        failed = [(job, result) for job, result in zip(jobs, results, strict=True) if result is not None]
        for job, error in failed:
            if isinstance(error, Unprocessable):  # no broker will ever take this one
                async with self._database.transaction() as connection:
                    await disable_feed(connection, job.feed_id, f"its job can't be published: {error}")
        unpublished = [(job, error) for job, error in failed if not isinstance(error, Unprocessable)]
        if unpublished:
            await self._release([job for job, _ in unpublished], unpublished[0][1])
            raise unpublished[0][1]

    async def _release(self, jobs: Sequence[FetchFeed], cause: BaseException) -> None:
        log.warning("could not publish, giving %d claims back: %s", len(jobs), cause)
        try:
            async with self._database.transaction() as connection:
                await release_claims(connection, jobs)
            RELEASED.inc(len(jobs))
        except FeedmillError as error:
            log.warning("could not give them back either, they will run out by themselves: %s", error)
