"""Backpressure: the fetcher takes no new jobs while the stages behind it have a backlog."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from prometheus_client import Gauge

from shared.broker.port import Session
from shared.broker.prefetch import PrefetchLimit
from shared.errors import Unavailable
from shared.waiting import pause

log = logging.getLogger(__name__)

BACKPRESSURE = Gauge("feedmill_backpressure", "1 while no jobs are taken because the next stage has a backlog.")

LOOK_SECONDS = 1.0


class Backpressure:
    """Sets the prefetch limit to 0 at a high-water mark of ready messages in `queues`, and lifts that at half of it."""

    def __init__(self, queues: Sequence[str], *, high_water: int, prefetch_limit: PrefetchLimit) -> None:
        self._queues = queues
        self._high = high_water
        self._low = high_water // 2
        self._prefetch_limit = prefetch_limit
        self._shut = False

    async def watch(self, session: Callable[[], Session | None], stop: asyncio.Event) -> None:
        """Look every second until `stop`. Not to be cancelled: the AMQP library may take a cancellation for its own."""
        while not stop.is_set():
            standing = session()
            if standing is not None and not standing.lost.is_set():
                try:
                    self.note(sum([await standing.count_ready(queue) or 0 for queue in self._queues]))
                except Unavailable as error:
                    log.debug("cannot look at %s: %s", ", ".join(self._queues), error)
            await pause(LOOK_SECONDS, stop)

    def note(self, ready: int) -> None:
        """Set the prefetch limit by the number of ready messages."""
        shut = ready > self._low if self._shut else ready >= self._high
        if shut == self._shut:
            return
        self._shut = shut
        BACKPRESSURE.set(int(shut))
        self._prefetch_limit.set("backpressure", 0 if shut else self._prefetch_limit.most)
        what = "taking no jobs until the next stage has caught up" if shut else "taking jobs again"
        log.warning(what, extra={"queue": ", ".join(self._queues), "ready": ready, "high_water": self._high})
