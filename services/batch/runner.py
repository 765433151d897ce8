"""The loop of a run: claim while there is room, hand jobs to the fetcher's handler, publish, wait, retry once, end."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from services.batch.summary import Summary, final_result
from services.batch.window import Window
from shared.broker.port import Outgoing
from shared.broker.prefetch import PrefetchLimit
from shared.broker.topology import Stage
from shared.errors import NackAndRequeue, Unavailable
from shared.waiting import keep_trying, pause
from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched

log = logging.getLogger(__name__)

STAGE = Stage("batch", queues=("batch",), retry="batch.retry", dead="batch.dead", fast_delay="batch.fast-delay")
"""The handler's stage. The broker has no such queues: the run keeps in memory what the handler publishes to them."""

MAX_RETRIES_PER_WINDOW = 10
"""Times the window's size: beyond so many retries, the oldest don't wait for the end of the run."""

LONGEST_SLEEP_SECONDS = 3600.0

HANDLER_STOP_SECONDS = 1.0
"""After a stop, the handler returns jobs that have not begun within this time."""

PUBLISH_SECONDS = 35.0
"""After a stop, publishing results is tried for so long."""

Handler = Callable[[Sequence[FetchFeed]], Awaitable[Sequence[Outgoing]]]
Publish = Callable[[FeedFetched, asyncio.Event], Awaitable[None]]
"""Publishes a result; raises Unavailable once the event is set."""


class ClaimSource(Protocol):
    """Where jobs come from (`services.batch.service.Claims`)."""

    seconds: float
    """How long a claim lives."""

    async def take(self, limit: int) -> tuple[list[FetchFeed], int]:
        """Claim up to `limit` feeds; return their jobs, and how many were claimed."""

    async def release(self, jobs: Sequence[FetchFeed]) -> bool:
        """Release the claims of jobs that were not done; return whether that was possible."""


class Run:
    """One run. Everything happens on the event loop, except for the requests themselves.

    Args:
        handler: the fetcher's, for `STAGE`.
        prefetch_limit: how many jobs the handler may have; at 0, nothing is claimed either.
        delay_seconds: the wait of a job that can't start yet, and the least wait before a retry.
        drain_seconds: the longest time that a job in progress takes to end.
        summary: counts what happens.
    """

    def __init__(
        self,
        claims: ClaimSource,
        handler: Handler,
        publish: Publish,
        window: Window,
        prefetch_limit: PrefetchLimit,
        *,
        delay_seconds: float,
        drain_seconds: float,
        summary: Summary,
    ) -> None:
        self._claims = claims
        self._handler = handler
        self._publish = publish
        self._window = window
        self._prefetch_limit = prefetch_limit
        self._delay_seconds = delay_seconds
        self._drain_seconds = drain_seconds
        self._summary = summary
        self._retries: deque[tuple[float, FetchFeed]] = deque()
        self._unpublished: list[FetchFeed] = []
        self._running: set[asyncio.Task[None]] = set()
        self._claiming: asyncio.Task[None] | None = None
        self._nothing_due = False
        self._all_claimed = False
        self._is_retry_round = False
        """Only retries are left: a job that is skipped now has its final result."""
        self._changed = asyncio.Event()
        self._stop_publishing = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until all is done, or until `stop`: then jobs in progress end, and the other claims are released."""
        watching = asyncio.create_task(self._watch_prefetch_limit())
        try:
            while not stop.is_set():
                self._changed.clear()
                self._start_jobs()
                self._claim_more(stop)
                if self._is_over():
                    break
                await pause(min(self._seconds_to_wait(), LONGEST_SLEEP_SECONDS), self._changed, stop)
            await self._wind_up()
        finally:
            watching.cancel()

    def _is_over(self) -> bool:
        """Return whether all is done; start the retry round when only retries are left."""
        if not self._all_claimed or len(self._window):
            return False
        self._is_retry_round = True
        self._wake_retries(len(self._retries))
        return not len(self._window)

    def _seconds_to_wait(self) -> float:
        # With a full handler no job could start: a job that ends, or the prefetch limit, wakes the loop.
        next_at = self._window.next_at() if self._window.in_progress < self._prefetch_limit.total else None
        moments = [at for at in (next_at, self._next_early_retry()) if at is not None]
        return max(min(moments, default=math.inf) - _now(), 0.0)

    async def _watch_prefetch_limit(self) -> None:
        while True:
            await self._prefetch_limit.wait_changed()
            self._changed.set()

    def _claim_more(self, stop: asyncio.Event) -> None:
        if self._claiming is not None:
            if not self._claiming.done():
                return
            self._claiming.result()
            self._claiming = None
        step = max(self._window.size // 4, 1)
        # A feed may have been locked (by a writer) a moment ago. So the run looks once more before its end.
        is_worth_it = not len(self._window) if self._nothing_due else self._window.room >= step
        if is_worth_it and self._prefetch_limit.total and not self._all_claimed:
            self._claiming = asyncio.create_task(self._claim(stop))

    async def _claim(self, stop: asyncio.Event) -> None:
        is_last_look = not len(self._window)
        try:
            jobs, feeds = await keep_trying(
                lambda: self._claims.take(self._window.room), what="claiming feeds", until=(stop,)
            )
        except Unavailable as error:
            log.info("stopped while the database was away: %s", error)
            return
        finally:
            self._changed.set()
        self._window.add(jobs)
        self._summary.claimed += feeds
        self._nothing_due = not feeds
        self._all_claimed = not feeds and is_last_look

    def _start_jobs(self) -> None:
        now = _now()
        while (early := self._next_early_retry()) is not None and early <= now:
            self._wake_retries(1)
        while self._window.in_progress < self._prefetch_limit.total and (job := self._window.take(now)) is not None:
            task = asyncio.create_task(self._handle(job))
            self._running.add(task)
            task.add_done_callback(self._end)
        self._prefetch_limit.note_applied()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._changed.set()

    async def _handle(self, job: FetchFeed) -> None:
        try:
            with job.span.start("fetch", feed_id=job.feed_id, attempt=job.attempt) as span:
                await self._take_outgoing(await self._handler([job.model_copy().traced(span) if span else job]))
        except NackAndRequeue:
            self._window.add([job])
        except Unavailable as error:
            log.warning("a result could not be published: %s", error, extra={"feed_id": job.feed_id})
            self._unpublished.append(job)
        except Exception:
            # A bug. The claim is left to expire: released, the job would fail the same way with every run.
            log.exception("a job failed", extra={"feed_id": job.feed_id, "claim_id": str(job.claim_id)})
            self._summary.broken += 1
        finally:
            self._window.done(job)

    async def _take_outgoing(self, outgoing: Sequence[Outgoing]) -> None:
        """Publish the handler's result; keep the jobs that it delays or retries."""
        result = retry = None
        for item in outgoing:
            if isinstance(item.message, FeedFetched):
                result = item.message
            elif isinstance(item.message, FetchFeed):
                if STAGE.fast_delay in {item.exchange, item.routing_key}:
                    self._window.add_later(item.message, _now() + self._delay_seconds)
                else:
                    retry = item.message
        if result is None:
            return
        is_retry = result.outcome.is_attempt and result.attempt > 0
        if self._is_retry_round and retry is not None and result.outcome.is_deferred:
            result, retry = final_result(result), None
        await self._publish(result, self._stop_publishing)
        self._summary.count(result, is_retry=is_retry)
        if retry is not None:
            # The number of skips does not matter: the run's end decides the final result.
            self._retries.append((_now(), retry.model_copy(update={"skips": 0})))

    def _next_early_retry(self) -> float | None:
        """Return when the oldest retry stops waiting for the end: at half of its claim, or if there are too many."""
        if not self._retries:
            return None
        kept_at, _ = self._retries[0]
        if len(self._retries) > MAX_RETRIES_PER_WINDOW * self._window.size:
            return kept_at
        return kept_at + self._claims.seconds / 2

    def _wake_retries(self, number: int) -> None:
        for _ in range(number):
            kept_at, job = self._retries.popleft()
            self._window.add_later(job, kept_at + self._delay_seconds)

    async def _wind_up(self) -> None:
        """Let jobs in progress end; release the claims of all others."""
        giving_up = asyncio.get_running_loop().call_later(PUBLISH_SECONDS, self._stop_publishing.set)
        late = {*self._running, *([self._claiming] if self._claiming else [])}
        # The handler returns jobs that have not begun at once. Running ones may take minutes.
        for patience in (HANDLER_STOP_SECONDS, self._drain_seconds):
            if late:
                _, late = await asyncio.wait(late, timeout=patience)
            await self._release_rest()
        for task in late:
            task.cancel()
        if late:
            log.warning("%d fetches were not finished: their claims run out", len(late))
            await asyncio.wait(late)
        giving_up.cancel()
        if self._claiming is not None and not self._claiming.cancelled():
            self._claiming.result()

    async def _release_rest(self) -> None:
        jobs = self._unpublished + self._window.empty() + [job for _, job in self._retries]
        self._unpublished.clear()
        self._retries.clear()
        if jobs and await self._claims.release(jobs):
            self._summary.given_back += len(jobs)


def _now() -> float:
    return asyncio.get_running_loop().time()
