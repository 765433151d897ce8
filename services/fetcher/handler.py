"""The fetcher's handler: from a job to its requests, their slots, and the messages that follow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime, timedelta
from functools import partial

from prometheus_client import Counter

from services.fetcher.attempt import FeedFetcher
from services.fetcher.clock import Clock
from services.fetcher.findings import Findings
from services.fetcher.http.options import BadOptions
from services.fetcher.politeness.decisions import FastDelay, Refusal, Report, Skip
from services.fetcher.politeness.slot_request import Progress, Sent
from services.fetcher.politeness.slots import Slots
from services.fetcher.request import FeedRequest, prepare_request
from services.fetcher.retries import RetryRules, decide_retry
from shared.broker.port import Outgoing
from shared.broker.shards import front_of
from shared.broker.topology import TRIALS, Stage
from shared.observability.secrets import mask_credentials
from shared.politeness import BadUrl
from shared.tracing import Span
from shared.ttl_cache import TtlCache
from shared.waiting import retrieve_error
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched

log = logging.getLogger(__name__)

FETCHES = Counter("feedmill_fetches_total", "Attempts at feeds by outcome, one outcome per attempt.", ["outcome"])
REQUEUES = Counter("feedmill_requeues_total", "Jobs that were sent to the fast-delay queue.")
MOVED_ON = Counter("feedmill_jobs_moved_on_total", "Jobs that were sent to the shard of another fetcher.")

LOGGED_CHARACTERS = 2000
"""The longest URL in the log. A job that somebody else published may hold a URL as long as a message can be."""

SUPERSEDED = "the feed was fired since, and that job took its place"

ORPHAN_SECONDS = 600.0
"""The result of an orphaned fetch is kept for so long. A broker comes back sooner."""


class _Superseded(Exception):
    """A newer job of the feed came while this one waited for its slot."""


class FetchFeeds:
    """Handles one job per call, many calls side by side.

    A fetch that has begun runs to its end, even if its call is cancelled because the session that brought its job is
    lost. Such a fetch is orphaned. When the broker delivers the job again, the job gets the orphaned fetch's result, so
    no server is asked twice.

    A job that a person waits for (`FetchFeed.goes_ahead`) goes before all jobs that wait. It took the claim of its
    feed's earlier job, if there was one. This process remembers that, and ends the earlier job without a request.

    Args:
        fetcher: makes the requests, on threads.
        slots: decides when a request may start, and on which thread.
        owns: whether this process makes the requests to groups of this queue. Other jobs are sent to the queue of
            their group's owner: a redirect led there, or the number of shards has changed.
    """

    def __init__(
        self,
        fetcher: FeedFetcher,
        slots: Slots,
        stage: Stage,
        *,
        rules: RetryRules,
        clock: Clock,
        proxy_hosts: frozenset[str] = frozenset(),
        owns: Callable[[str], bool] = lambda queue: True,
    ) -> None:
        self._fetcher = fetcher
        self._slots = slots
        self._stage = stage
        self._rules = rules
        self._clock = clock
        self._proxy_hosts = proxy_hosts
        self._owns = owns
        self._orphaned: TtlCache[asyncio.Task[Sequence[Outgoing]]] = TtlCache(ORPHAN_SECONDS)
        self._fired: TtlCache[datetime] = TtlCache(rules.retry_delay_seconds + rules.claim_seconds)
        """When each feed was fired. No earlier job of it lives for longer."""

    async def __call__(self, batch: Sequence[FetchFeed]) -> Sequence[Outgoing]:
        """Handle one job. Raises NackAndRequeue if it can't begin in this process."""
        (job,) = batch
        progress = Progress()
        fetch = self._orphaned.take(_key_of(job))
        if fetch is None:
            fetch = asyncio.create_task(self._fetch(job, progress))
        else:
            progress.has_begun = True
        try:
            return await asyncio.shield(fetch)
        except asyncio.CancelledError:
            if progress.has_begun:
                fetch.add_done_callback(retrieve_error)  # its job may never come again
                self._orphaned.put(_key_of(job), fetch)
            else:
                fetch.cancel()
            raise

    async def _fetch(self, job: FetchFeed, progress: Progress) -> Sequence[Outgoing]:
        if await self._is_stale(job):
            return self._end_unasked(job, Outcome.STALE, "the claim's deadline passed in the queue")
        if job.goes_ahead and not job.dry_run:
            self._fired.put(job.feed_id, job.queued_at)
        try:
            request = prepare_request(job, self._proxy_hosts)
        except (BadUrl, BadOptions) as error:
            error_class = "bad_url" if isinstance(error, BadUrl) else "bad_options"
            return self._end_unasked(job, Outcome.HARD_ERROR, str(error), error_class)
        while True:
            queue = self._stage.queue_of(request.group)
            if not self._owns(queue):
                MOVED_ON.inc()
                return [Outgoing.into(_way_to(queue, job), request.to_job())]
            match await self._run_in_slot(request, progress):
                case FeedFetched() as fetched:
                    return self._end(job, fetched)
                case FeedRequest() as following:
                    request = following
                case FastDelay():
                    REQUEUES.inc()
                    assert self._stage.fast_delay is not None
                    return [Outgoing.after(self._stage.fast_delay, request.to_job(), then=_way_to(queue, job))]
                case Skip() as skip:
                    return self._skip(job, request.group, skip)

    async def _run_in_slot(self, request: FeedRequest, progress: Progress) -> FeedFetched | FeedRequest | Refusal:
        job = request.job
        label = f"feed {job.feed_id} {request.url}"
        waiting = job.span.start("wait for slot", group=request.group)
        work = partial(self._make_request, request, waiting)
        try:
            result = await self._slots.run(
                request.group, label, work, target=request.target, progress=progress, ahead=job.goes_ahead
            )
        except _Superseded:
            found = Findings(Outcome.STALE, error_class=Outcome.STALE.value, error=SUPERSEDED)
            return found.to_result(job, self._clock.now(), 0.0)
        else:
            if isinstance(result, Refusal):
                waiting.note(refusal=type(result).__name__)
            return result
        finally:
            waiting.end()

    def _make_request(
        self, request: FeedRequest, waiting: Span, sent: Sent
    ) -> tuple[FeedFetched | FeedRequest, Report]:
        waiting.end()
        fired_at = self._fired.get(request.job.feed_id)
        if fired_at is not None and request.job.queued_at < fired_at:
            raise _Superseded
        return self._fetcher.make_request(request, sent)

    async def _is_stale(self, job: FetchFeed) -> bool:
        """Return whether the claim is over. A clock that says so shortly after a start is confirmed first."""
        if job.not_after > self._clock.now():
            return False
        await self._clock.confirmed()
        return job.not_after <= self._clock.now()

    def _skip(self, job: FetchFeed, group: str, skip: Skip) -> Sequence[Outgoing]:
        if not skip.throttled:
            return self._end_unasked(job, Outcome.SKIPPED, f"{group} could not be connected to a short while ago")
        not_before = self._clock.now() + timedelta(seconds=skip.seconds)
        reason = f"{group} asked to be left alone until {not_before:%Y-%m-%d %H:%M:%S} UTC"
        return self._end_unasked(job, Outcome.SKIPPED, reason, not_before=not_before)

    def _end_unasked(
        self,
        job: FetchFeed,
        outcome: Outcome,
        reason: str,
        error_class: str | None = None,
        not_before: datetime | None = None,
    ) -> Sequence[Outgoing]:
        """Return the messages of a job whose server was not asked."""
        findings = Findings(outcome, error_class=error_class or outcome.value, error=reason, not_before=not_before)
        return self._end(job, findings.to_result(job, self._clock.now(), 0.0))

    def _end(self, job: FetchFeed, fetched: FeedFetched) -> Sequence[Outgoing]:
        result, again = fetched, None
        if not job.dry_run:
            result, again = decide_retry(job, fetched, self._rules, self._clock.now())
        FETCHES.labels(result.outcome.value).inc()
        _note(job.span, result)
        log.info(
            "fetch ended",
            extra={
                "outcome": result.outcome.value,
                "feed_id": job.feed_id,
                "claim_id": str(job.claim_id),
                "url": _shown(job.url),
                "attempt": job.attempt,
                "status": result.status,
                "entries": len(result.entries),
                "seconds": round(result.elapsed_seconds, 3),
                "error": result.error,
            },
        )
        if job.dry_run:
            return [Outgoing.into(TRIALS.queue, result)]
        outgoing = [Outgoing.onward(self._stage, result)]
        if again is not None:
            outgoing.append(Outgoing.after(self._stage.retry, again, then=self._stage.queue_of(again.group)))
        return outgoing


def _note(span: Span, result: FeedFetched) -> None:
    outcome = result.outcome
    span.note(
        claim_id=str(result.claim_id),
        attempt=result.attempt,
        outcome=outcome.value,
        status=result.status,
        entries=len(result.entries),
        final=result.final,
    )
    if outcome.is_attempt and not outcome.is_success:
        span.fail(result.error_class or outcome.value)


def _way_to(shard: str, job: FetchFeed) -> str:
    """Return the queue by which a job reaches the owner of a shard."""
    return front_of(shard) if job.goes_ahead else shard


def _key_of(job: FetchFeed) -> Hashable:
    """Return the key of a job. It is the same when the broker delivers the job again."""
    return job.feed_id, job.claim_id, job.attempt, job.skips, job.resume and job.resume.url


def _shown(url: str) -> str:
    """Return a URL for a log line. The log masks credentials, but a URL has to be masked before it is cut."""
    return url if len(url) <= LOGGED_CHARACTERS else mask_credentials(url)[:LOGGED_CHARACTERS]
