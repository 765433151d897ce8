"""The loop of a run: claim while there is room, hand jobs to the fetcher's handler, publish, wait, retry once, end."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.batch.summary import Summary, last_word
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
"""What the handler is told that its queues are. There are none of these names: what it sends there stays in memory."""

RETRIES_KEPT = 10
"""Times the window: of more retries, the oldest don't wait for the end of the run."""

LONGEST_SLEEP_SECONDS = 3600.0

SETTLE_SECONDS = 1.0
"""After a stop, what the handler has not begun comes back from it well within this."""

PUBLISH_SECONDS = 35.0
"""After a stop, results go on being offered to a broker that is away for so long."""

Handler = Callable[[Sequence[FetchFeed]], Awaitable[Sequence[Outgoing]]]
Release = Callable[[Sequence[FetchFeed]], Awaitable[None]]
"""Gives claims back, as far as it can."""
Publish = Callable[[Outgoing, asyncio.Event], Awaitable[None]]
"""Takes a result and an event that ends trying; raises Unavailable then."""


class ClaimSource(Protocol):
    """Where jobs come from (`services.batch.service`)."""

    seconds: float

    async def take(self, limit: int) -> tuple[list[FetchFeed], int]:
        """Claim up to `limit` feeds; return their jobs, and how many were claimed."""


@dataclass(frozen=True)
class Pauses:
    """Spans in seconds."""

    delay: float
    """How long a job waits that can't start yet; also the least time between a failure and its retry."""
    drain: float
    """How long what was begun may take to its end."""


class Run:
    """One run. Everything happens on the event loop, but for the requests themselves.

    Args:
        handler: the fetcher's, over `STAGE`.
        prefetch limit: how many jobs the handler may have; shut, nothing is claimed either.
        release: gives back the claims of jobs that were not done.
        summary: counts what happens.
    """

    def __init__(
        self,
        claims: ClaimSource,
        handler: Handler,
        publish: Publish,
        release: Release,
        window: Window,
        prefetch_limit: PrefetchLimit,
        pauses: Pauses,
        summary: Summary,
    ) -> None:
        self._claims = claims
        self._handler = handler
        self._publish = publish
        self._release = release
        self._window = window
        self._prefetch_limit = prefetch_limit
        self._pauses = pauses
        self.summary = summary
        self._retries: deque[tuple[float, FetchFeed]] = deque()
        self._unsettled: list[FetchFeed] = []
        self._running: set[asyncio.Task[None]] = set()
        self._claiming: asyncio.Task[None] | None = None
        self._nothing_due = False
        self._all_claimed = False
        self._at_end = False
        """All is claimed and done but for the retries: what is said now is the last word."""
        self._changed = asyncio.Event()
        self._given_up = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until all is done, or until `stop`: then what has begun comes to its end, and the rest is given back."""
        following = asyncio.create_task(self._follow_valve())
        try:
            while not stop.is_set():
                self._changed.clear()
                self._hand_out()
                self._claim_more(stop)
                if self._is_over():
                    break
                await pause(min(self._seconds_to_wait(), LONGEST_SLEEP_SECONDS), self._changed, stop)
            await self._finish_running()
        finally:
            following.cancel()

    def _is_over(self) -> bool:
        """Return whether all is done; when only retries are left, it is their turn."""
        if not self._all_claimed or len(self._window):
            return False
        self._at_end = True
        self._wake_retries(len(self._retries))
        return not len(self._window)

    def _seconds_to_wait(self) -> float:
        # Without a place in the handler there is nothing to wake up for: a job that ends, or the prefetch limit, will.
        next_at = self._window.next_at() if self._window.in_hand < self._prefetch_limit.total else None
        moments = [at for at in (next_at, self._next_early_retry()) if at is not None]
        return max(min(moments, default=math.inf) - _now(), 0.0)

    async def _follow_valve(self) -> None:
        while True:
            await self._prefetch_limit.wait_changed()
            self._changed.set()

    # ---- claiming -------------------------------------------------------------------------------------------

    def _claim_more(self, stop: asyncio.Event) -> None:
        if self._claiming is not None:
            if not self._claiming.done():
                return
            self._claiming.result()
            self._claiming = None
        step = max(self._window.size // 4, 1)
        # What nobody could be given a moment ago (a writer was at its row) is looked for once more before the end.
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
        self.summary.claimed += feeds
        self._nothing_due = not feeds
        self._all_claimed = not feeds and is_last_look

    # ---- one job --------------------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        now = _now()
        while (early := self._next_early_retry()) is not None and early <= now:
            self._wake_retries(1)
        while self._window.in_hand < self._prefetch_limit.total and (job := self._window.take(now)) is not None:
            task = asyncio.create_task(self._see_to(job))
            self._running.add(task)
            task.add_done_callback(self._end)
        self._prefetch_limit.note_applied()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._changed.set()

    async def _see_to(self, job: FetchFeed) -> None:
        try:
            await self._settle(job, await self._handler([job]))
        except NackAndRequeue:
            self._window.add([job])
        except Unavailable as error:
            log.warning("a result could not be published: %s", error, extra={"feed_id": job.feed_id})
            self._unsettled.append(job)
        except Exception:
            # Ours to mend. Its claim runs out: given back, it would only fail the same way again, sooner.
            log.exception("a job failed", extra={"feed_id": job.feed_id, "claim_id": str(job.claim_id)})
            self.summary.broken += 1
        finally:
            self._window.done(job)

    async def _settle(self, job: FetchFeed, outgoing: Sequence[Outgoing]) -> None:
        retry = None
        for item in outgoing:
            message = item.message
            if isinstance(message, FetchFeed) and STAGE.fast_delay in {item.exchange, item.routing_key}:
                self._window.put_later(message, _now() + self._pauses.delay)
            elif isinstance(message, FetchFeed):
                retry = message
        result = next((item.message for item in outgoing if isinstance(item.message, FeedFetched)), None)
        if result is None:
            return
        is_retry = result.outcome.is_attempt and result.attempt > 0
        if self._at_end and retry is not None and result.outcome.is_deferred:
            result, retry = last_word(result), None
        await self._publish(Outgoing(result, FeedFetched.KIND), self._given_up)
        self.summary.note(result, is_retry=is_retry)
        if retry is not None:
            # That it was put off counts for nothing: not how often, but how the run ends, decides what is said last.
            self._retries.append((_now(), retry.model_copy(update={"skips": 0})))

    # ---- retries --------------------------------------------------------------------------------------------

    def _next_early_retry(self) -> float | None:
        """Return when the oldest retry must not wait for the end any longer: half of its claim is over, or too many."""
        if not self._retries:
            return None
        kept_at, _ = self._retries[0]
        if len(self._retries) > RETRIES_KEPT * self._window.size:
            return kept_at
        return kept_at + self._claims.seconds / 2

    def _wake_retries(self, number: int) -> None:
        for _ in range(number):
            kept_at, job = self._retries.popleft()
            self._window.put_later(job, kept_at + self._pauses.delay)

    # ---- the end --------------------------------------------------------------------------------------------

    async def _finish_running(self) -> None:
        """Let what was begun come to its end."""
        giving_up = asyncio.get_running_loop().call_later(PUBLISH_SECONDS, self._given_up.set)
        late = {*self._running, *([self._claiming] if self._claiming else [])}
        # First what has not begun: the handler gives it back at once. What runs may take minutes.
        for patience in (SETTLE_SECONDS, self._pauses.drain):
            if late:
                _, late = await asyncio.wait(late, timeout=patience)
            await self._give_back()
        for task in late:
            task.cancel()
        if late:
            log.warning("%d fetches were not finished: their claims run out", len(late))
            await asyncio.wait(late)
        giving_up.cancel()
        if self._claiming is not None and not self._claiming.cancelled():
            self._claiming.result()

    async def _give_back(self) -> None:
        left = self._unsettled + self._window.empty() + [job for _, job in self._retries]
        self._unsettled.clear()
        self._retries.clear()
        if left:
            await self._release(left)


def _now() -> float:
    return asyncio.get_running_loop().time()
