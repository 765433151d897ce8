"""From a job to what follows from it: admission, the turn, the attempt, the verdict."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta

from prometheus_client import Counter, Gauge, Histogram

from services.fetcher.attempt import Attempt, Clock, FeedReader, unattempted
from services.fetcher.scoreboard import Hold, Report, Requeue, Scoreboard, Skip, Started
from services.fetcher.verdict import RetryRules, settle
from shared.errors import GiveBack
from shared.messages import FeedFetched, FetchFeed, Outcome
from shared.outgoing import Outgoing
from shared.topology import Stage
from shared.waiting import pause

log = logging.getLogger(__name__)

FETCHES = Counter("feedmill_fetches_total", "Attempts at feeds by outcome, one outcome per attempt.", ["outcome"])
FETCH_SECONDS = Histogram("feedmill_fetch_seconds", "Time of one attempt at a feed, reading included, in seconds.")
REQUEUES = Counter("feedmill_requeues_total", "Jobs that were sent to the fast-delay queue.")
ACTIVE = Gauge("feedmill_fetches_active", "Fetches under way in this process.")


class FetchFeeds:
    """The fetcher's handler: one job at a time per call, many calls side by side.

    Args:
        reader: makes the attempt, on a thread of `threads`.
        stopping: set when no new fetch may begin.
    """

    def __init__(
        self,
        reader: FeedReader,
        scoreboard: Scoreboard,
        stage: Stage,
        *,
        rules: RetryRules,
        clock: Clock,
        threads: int,
        max_hold_seconds: float,
        stopping: asyncio.Event,
    ) -> None:
        self._reader = reader
        self._scoreboard = scoreboard
        self._stage = stage
        self._rules = rules
        self._clock = clock
        self._max_hold_seconds = max_hold_seconds
        self._stopping = stopping
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="fetch")
        self._free_threads = asyncio.Semaphore(threads)

    def close(self) -> None:
        """Wait for the threads to end."""
        self._pool.shutdown()

    async def __call__(self, batch: Sequence[FetchFeed]) -> Sequence[Outgoing]:
        """Handle one job. Raises GiveBack if the service stops before the fetch began."""
        (job,) = batch
        if job.not_after <= self._clock.now():
            return self._follow_up(
                job, self._unattempted(job, Outcome.STALE, "the claim's deadline passed in the queue")
            )
        admission = self._scoreboard.admit(job.group, self._clock.monotonic())
        if isinstance(admission, Hold):
            turn = await self._take_turn(job, admission.seconds)
            if isinstance(turn, Attempt):
                return self._follow_up(job, turn.fetched)
            admission = turn
        if isinstance(admission, Skip):
            reason = f"{job.group} could not be connected to a short while ago"
            return self._follow_up(job, self._unattempted(job, Outcome.SKIPPED, reason))
        if admission.throttled_seconds > self._rules.retry_delay_seconds:
            return self._follow_up(job, self._throttled(job, admission.throttled_seconds))
        REQUEUES.inc()
        assert self._stage.fast_delay is not None
        return [Outgoing.into(self._stage.fast_delay, job)]

    async def _take_turn(self, job: FetchFeed, wait: float) -> Attempt | Requeue | Skip:
        """Wait for the job's turn, never longer than the hold allows, and take it."""
        until = self._clock.monotonic() + self._max_hold_seconds
        while True:
            turn = await self._try_turn(job, wait)
            if isinstance(turn, Attempt):
                return turn
            if isinstance(turn, Hold) and self._clock.monotonic() + turn.seconds <= until:
                wait = turn.seconds
                continue
            self._scoreboard.withdraw(job.group)
            return turn if isinstance(turn, Skip) else Requeue()

    async def _try_turn(self, job: FetchFeed, wait: float) -> Attempt | Hold | Skip:
        """Wait, then ask for the turn on a free thread. If we are cancelled, the job does not stay held."""
        try:
            if wait > 0:
                await pause(wait, self._stopping)
            await self._free_threads.acquire()
        except asyncio.CancelledError:
            self._scoreboard.withdraw(job.group)
            raise
        try:
            if self._stopping.is_set():
                self._scoreboard.withdraw(job.group)
                raise GiveBack("stopping")
            turn = self._pool.submit(self._start, job)
            try:
                return await asyncio.wrap_future(turn)
            except asyncio.CancelledError:
                # The thread may not have begun, or go on without us: settle with the scoreboard when it is done.
                turn.add_done_callback(lambda done: self._abandon(job, done))
                raise
        finally:
            self._free_threads.release()

    def _abandon(self, job: FetchFeed, turn: Future[Attempt | Hold | Skip]) -> None:
        started = not turn.cancelled() and (turn.exception() or isinstance(turn.result(), Attempt))
        if not started:
            self._scoreboard.withdraw(job.group)

    def _start(self, job: FetchFeed) -> Attempt | Hold | Skip:
        """On a worker thread: check the rules at the very moment the request leaves, then fetch."""
        start = self._scoreboard.start(job.group, self._clock.monotonic())
        if not isinstance(start, Started):
            return start
        report = Report(latency_seconds=0.0, succeeded=False)  # what stands if the attempt itself has a bug
        try:
            with ACTIVE.track_inprogress(), FETCH_SECONDS.time():
                attempt = self._reader.attempt(job)
            report = attempt.report
            return attempt
        finally:
            self._scoreboard.finish(job.group, self._clock.monotonic(), report)

    def _throttled(self, job: FetchFeed, seconds: float) -> FeedFetched:
        result = self._unattempted(job, Outcome.THROTTLED, f"{job.group} asked to be left alone for a while")
        return result.model_copy(update={"not_before": self._clock.now() + timedelta(seconds=seconds)})

    def _unattempted(self, job: FetchFeed, outcome: Outcome, reason: str) -> FeedFetched:
        return unattempted(job, outcome, self._clock.now(), reason)

    def _follow_up(self, job: FetchFeed, fetched: FeedFetched) -> list[Outgoing]:
        result, again = settle(job, fetched, self._rules, self._clock.now())
        FETCHES.labels(result.outcome.value).inc()
        log.info(
            "fetch ended",
            extra={
                "outcome": result.outcome.value,
                "feed_id": job.feed_id,
                "claim_id": str(job.claim_id),
                "url": job.url,
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
            outgoing.append(Outgoing.into(self._stage.retry, again))
        return outgoing
