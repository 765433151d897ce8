"""The scoreboard for people: gauges, one log line a minute, and a full dump on request."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from prometheus_client import Counter, Gauge, Histogram

from services.fetcher.politeness.scoreboard import Scoreboard
from services.fetcher.politeness.workers import Workers
from shared.broker.prefetch import PrefetchLimit
from shared.waiting import pause

log = logging.getLogger(__name__)

HELD = Gauge("feedmill_jobs_held", "Jobs that wait in this process for a slot of their host.")
READY = Gauge("feedmill_jobs_ready", "Held jobs that may start, but wait for a thread.")
GROUPS = Gauge(
    "feedmill_groups", "Politeness groups that this process knows: all, recent (a minute), active.", ["state"]
)
REQUEST_SECONDS = Histogram("feedmill_request_seconds", "Time of one request, reading the feed included, in seconds.")
ACTIVE = Gauge("feedmill_fetches_active", "Requests under way in this process.")
LOCK_WAIT = Counter("feedmill_scoreboard_lock_wait_seconds_total", "Time that threads waited for the scoreboard.")

GAUGE_SECONDS = 15.0
"""How often the gauges are set."""

LINE_SECONDS = 60.0
"""How often there is a log line, and idle groups are dropped."""

IDLE_SECONDS = 600.0
"""A group that was idle for so long is forgotten with its latency, unless it is down or throttled."""


class TimedLock:
    """A lock that measures how long threads waited for it, in seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.waited = 0.0
        self.longest = 0.0
        self.contended = False
        """Whether a thread ever waited for it."""

    def __enter__(self) -> None:
        if self._lock.acquire(blocking=False):
            return
        self.contended = True
        since = time.perf_counter()
        self._lock.acquire()
        wait = time.perf_counter() - since
        self.waited += wait
        self.longest = max(self.longest, wait)

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class BoardWatch:
    """Reports the scoreboard. `clock`: monotonic seconds; `shards`: returns the shards that this process owns."""

    def __init__(
        self,
        board: Scoreboard[Any],
        lock: TimedLock,
        workers: Workers,
        prefetch_limit: PrefetchLimit,
        clock: Callable[[], float],
        shards: Callable[[], list[str]] = list,
    ) -> None:
        self._board = board
        self._lock = lock
        self._workers = workers
        self._prefetch_limit = prefetch_limit
        self._clock = clock
        self._shards = shards
        self._waited = 0.0

    async def watch(self) -> None:
        """Report until cancelled."""
        last_line = self._clock()
        while True:
            await pause(GAUGE_SECONDS)
            self.set_gauges()
            if self._clock() - last_line >= LINE_SECONDS - GAUGE_SECONDS / 2:
                last_line = self._clock()
                self._board.forget_idle(last_line, idle_seconds=IDLE_SECONDS)
                log.info("scoreboard", extra=self.summary())

    def set_gauges(self) -> None:
        """Set the gauges."""
        totals = self._board.totals(self._clock())
        HELD.set(totals.held)
        READY.set(totals.ready)
        for state, count in (
            ("all", totals.groups),
            ("recent", totals.groups_recent),
            ("active", totals.groups_active),
        ):
            GROUPS.labels(state).set(count)
        waited = self._lock.waited
        LOCK_WAIT.inc(waited - self._waited)
        self._waited = waited

    def summary(self) -> dict[str, float]:
        """Return the scoreboard in numbers. Lock times are milliseconds since the start."""
        totals = self._board.totals(self._clock())
        return {
            **vars(totals),
            "intake": self._prefetch_limit.total,
            "lock_waited_ms": round(1000 * self._lock.waited, 1),
            "lock_longest_ms": round(1000 * self._lock.longest, 1),
        }

    def dump(self) -> dict[str, Any]:
        """Return the numbers, the shards, the task of each thread, and the groups, the busiest first."""
        return {
            "summary": self.summary(),
            "shards": self._shards(),
            "threads": [vars(busy) | {"seconds": round(busy.seconds, 3)} for busy in self._workers.busy()],
            "groups": self._board.dump(self._clock()),
        }

    def log_dump(self) -> None:
        """Log the dump at the highest level: a person asked for it (SIGUSR1)."""
        log.critical("scoreboard dump", extra=self.dump())
