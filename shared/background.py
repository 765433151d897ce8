"""Background tasks of a service; none of them fails in silence.

- A task that the service depends on runs `beside` its work: if it fails, the service ends with that error.
- Housekeeping is a `PeriodicTask`: after a failed round the next one is tried as usual. Log, metric and health page say
  for how long no round has succeeded.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from prometheus_client import Gauge

from shared.errors import Unavailable
from shared.waiting import pause

log = logging.getLogger(__name__)

FAILING = Gauge(
    "feedmill_background_failing_seconds",
    "While a background task fails: seconds since its last round that succeeded, or since the start; else 0.",
    ["task"],
)


class PeriodicTask:
    """Awaits `work` every `seconds`, also after it failed.

    Args:
        name: in the metric, on the health page and in the log.
        work: one round.
        seconds: from the end of a round to the next.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        *,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._work = work
        self._seconds = seconds
        self._clock = clock
        self._good_at = clock()
        self._trouble: str | None = None
        FAILING.labels(name).set_function(self.failing_seconds)

    def failing_seconds(self) -> float:
        """Return for how long no round has succeeded; 0 if the last one did."""
        return self._clock() - self._good_at if self._trouble else 0.0

    def check(self) -> str | None:
        """Return what is wrong, if anything (a `shared.observability.telemetry.Check`)."""
        return f"fails for {self.failing_seconds():.0f} s: {self._trouble}" if self._trouble else None

    async def run(self, stop: asyncio.Event) -> None:
        """Go on until `stop`."""
        while not stop.is_set():
            await self.run_once()
            await pause(self._seconds, stop)

    async def run_once(self) -> None:
        """Await the work once. Its errors are logged and not raised."""
        try:
            await self._work()
        except Exception as error:  # noqa: BLE001 - a bug or a missing right here must not stop the work beside it
            self._note_failure(error)
        else:
            if self._trouble:
                log.info("%s works again", self.name)
            self._trouble, self._good_at = None, self._clock()

    def _note_failure(self, error: Exception) -> None:
        trouble = f"{type(error).__name__}: {error}"
        is_new, self._trouble = trouble != self._trouble, trouble
        if isinstance(error, Unavailable):
            log.info("%s failed, will try again: %s", self.name, error)
        else:
            log.error("%s failed, will try again: %s", self.name, trouble, exc_info=error if is_new else None)


@contextlib.asynccontextmanager
async def beside(
    stop: asyncio.Event, *coroutines: Coroutine[Any, Any, None], grace_seconds: float = 0.0
) -> AsyncIterator[None]:
    """Run the coroutines for the length of the block. If one fails, the block is told to stop and its error is raised.

    Args:
        stop: set when one fails, and at the end of the block.
        coroutines: the tasks. Each ends by itself after `stop`.
        grace_seconds: how long they may take for that; then they are cancelled.
    """
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]

    def end(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            stop.set()

    for task in tasks:
        task.add_done_callback(end)
    try:
        yield
    finally:
        stop.set()
        if grace_seconds and tasks:
            await asyncio.wait(tasks, timeout=grace_seconds)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception):
            raise error
