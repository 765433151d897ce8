"""From a job to what follows from it: its turns, what they found, the verdict."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client import Counter, Gauge, Histogram

from services.fetcher.attempt import FeedFetcher, Sent, unattempted
from services.fetcher.clock import Clock
from services.fetcher.http.options import BadOptions, read_options
from services.fetcher.http.redirects import check_url
from services.fetcher.outcomes import RetryRules, decide_retry
from services.fetcher.politeness.decisions import FastDelay, Report, Skip
from services.fetcher.politeness.slots import Slots
from services.fetcher.request import FeedRequest, prepare_request
from shared.broker.port import Outgoing
from shared.broker.topology import Stage
from shared.errors import NackAndRequeue
from shared.observability.secrets import mask_credentials
from shared.politeness import BadUrl
from shared.ttl_cache import TtlCache
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched

log = logging.getLogger(__name__)

FETCHES = Counter("feedmill_fetches_total", "Attempts at feeds by outcome, one outcome per attempt.", ["outcome"])
REQUEST_SECONDS = Histogram("feedmill_request_seconds", "Time of one request, reading the feed included, in seconds.")
REQUEUES = Counter("feedmill_requeues_total", "Jobs that were sent to the fast-delay queue.")
MOVED_ON = Counter("feedmill_jobs_moved_on_total", "Jobs that were sent to the shard of another fetcher.")
ACTIVE = Gauge("feedmill_fetches_active", "Requests under way in this process.")

LOGGED_CHARACTERS = 2000
"""Of a URL: whoever publishes a job may have made it as long as a message can be."""

SOURCE_TYPE = "feed"
"""The one kind of source that there is a reader for."""

ORPHAN_SECONDS = 600.0
"""How long a fetch is kept whose job was lost with its session: longer than a broker takes to come back."""


@dataclass
class _Progress:
    """How far a fetch has come."""

    begun: bool = False
    """A server was asked for something."""


class FetchFeeds:
    """The fetcher's handler: one job at a time per call, many calls side by side.

    A fetch that has begun comes to its end even if its call is cancelled (the session is lost that its job came
    through). The broker hands the job out again, and it then gets what that fetch came to: nobody is asked twice.

    Args:
        reader: makes the requests, on threads.
        slots: who may begin when, and on which thread.
        owns: whether requests to groups of this queue are this process's to make. What belongs elsewhere (a redirect
            led there, or the number of shards was another one) is sent there.
    """

    def __init__(
        self,
        reader: FeedFetcher,
        slots: Slots,
        stage: Stage,
        *,
        rules: RetryRules,
        clock: Clock,
        proxy_hosts: frozenset[str] = frozenset(),
        owns: Callable[[str], bool] = lambda queue: True,
    ) -> None:
        self._reader = reader
        self._slots = slots
        self._stage = stage
        self._rules = rules
        self._clock = clock
        self._proxy_hosts = proxy_hosts
        self._owns = owns
        self._orphaned: TtlCache[asyncio.Task[Sequence[Outgoing]]] = TtlCache(ORPHAN_SECONDS)

    async def __call__(self, batch: Sequence[FetchFeed]) -> Sequence[Outgoing]:
        """Handle one job. Raises NackAndRequeue if it can't begin in this process."""
        (job,) = batch
        progress = _Progress(begun=True)
        fetch = self._orphaned.take(_identity(job))
        if fetch is None:
            progress.begun = False
            fetch = asyncio.create_task(self._fetch(job, progress))
        try:
            return await asyncio.shield(fetch)
        except asyncio.CancelledError:
            if progress.begun:
                fetch.add_done_callback(_forgive)
                self._orphaned.put(_identity(job), fetch)
            else:
                fetch.cancel()
            raise

    async def _fetch(self, job: FetchFeed, progress: _Progress) -> Sequence[Outgoing]:
        if await self._is_stale(job):
            return self._end_unattempted(job, Outcome.STALE, "the claim's deadline passed in the queue")
        try:
            request = self._prepare(job)
        except (BadOptions, BadUrl) as error:
            kind = "bad_url" if isinstance(error, BadUrl) else "bad_options"
            return self._end_unattempted(job, Outcome.HARD_ERROR, str(error), kind)
        front = False  # a job that comes with its resume state keeps it when its message is requeued
        while True:
            queue = self._stage.queue_of(request.group)
            if not self._owns(queue):
                MOVED_ON.inc()
                return [Outgoing.into(queue, request.to_job())]
            found = await self._run_in_slot(job, request, progress, front=front)
            match found:
                case FeedFetched():
                    return self._follow_up(job, found)
                case FeedRequest():
                    request, front = found, True
                case FastDelay():
                    REQUEUES.inc()
                    assert self._stage.fast_delay is not None
                    return [Outgoing.after(self._stage.fast_delay, request.to_job(), then=queue)]
                case Skip():
                    return self._skip(job, request.group, found)

    async def _is_stale(self, job: FetchFeed) -> bool:
        """Return whether the claim is over; after a start, by a clock that somebody has confirmed."""
        if job.not_after > self._clock.now():
            return False
        await self._clock.confirmed()
        return job.not_after <= self._clock.now()

    async def _run_in_slot(
        self, job: FetchFeed, request: FeedRequest, progress: _Progress, *, front: bool
    ) -> FeedFetched | FeedRequest | FastDelay | Skip:
        def make_request(sent: Sent) -> tuple[FeedFetched | FeedRequest, Report]:
            progress.begun = True
            with ACTIVE.track_inprogress(), REQUEST_SECONDS.time():
                return self._reader.make_request(request, sent)

        label = f"feed {job.feed_id} {mask_credentials(request.chain.url)}"
        try:
            return await self._slots.run(request.group, label, make_request, target=request.target, front=front)
        except NackAndRequeue:
            if front:
                return FastDelay()
            raise

    def _prepare(self, job: FetchFeed) -> FeedRequest:
        """Return the job's first request. Raises BadOptions and BadUrl for what a person has to put right."""
        if job.source_type != SOURCE_TYPE:
            raise BadOptions(f"source_type: expected {SOURCE_TYPE!r}, found {job.source_type[:50]!r}")
        read_options(job.source_config)
        check_url(job.url)
        return prepare_request(job, self._proxy_hosts)

    def _skip(self, job: FetchFeed, group: str, skip: Skip) -> Sequence[Outgoing]:
        if not skip.throttled:
            return self._end_unattempted(job, Outcome.SKIPPED, f"{group} could not be connected to a short while ago")
        reason = f"{group} asked to be left alone for a while"
        if skip.seconds <= self._rules.retry_delay_seconds:
            return self._end_unattempted(job, Outcome.SKIPPED, reason)
        result = unattempted(job, Outcome.THROTTLED, self._clock.now(), reason)
        until = self._clock.now() + timedelta(seconds=skip.seconds)
        return self._follow_up(job, result.model_copy(update={"not_before": until}))

    def _end_unattempted(
        self, job: FetchFeed, outcome: Outcome, reason: str, error_class: str | None = None
    ) -> Sequence[Outgoing]:
        return self._follow_up(job, unattempted(job, outcome, self._clock.now(), reason, error_class))

    def _follow_up(self, job: FetchFeed, fetched: FeedFetched) -> list[Outgoing]:
        result, again = decide_retry(job, fetched, self._rules, self._clock.now())
        FETCHES.labels(result.outcome.value).inc()
        log.info(
            "fetch ended",
            extra={
                "outcome": result.outcome.value,
                "feed_id": job.feed_id,
                "claim_id": str(job.claim_id),
                "url": mask_credentials(job.url)[:LOGGED_CHARACTERS],
                "attempt": job.attempt,
                "status": result.status,
                "entries": len(result.entries),
                "seconds": round(result.elapsed_seconds, 3),
                "error": result.error,
            },
        )
        if job.dry_run:
            return []
        outgoing = [Outgoing(result, FeedFetched.KIND)]
        if again is not None:
            outgoing.append(Outgoing.after(self._stage.retry, again, then=self._stage.queue_of(again.group)))
        return outgoing


def _identity(job: FetchFeed) -> Hashable:
    """Return what a job has in common only with itself when it comes again."""
    return job.feed_id, job.claim_id, job.attempt, job.skips, job.resume and job.resume.url


def _forgive(fetch: asyncio.Task[Sequence[Outgoing]]) -> None:
    """Take note of how a fetch ended that perhaps nobody asks for any more."""
    if not fetch.cancelled():
        fetch.exception()
