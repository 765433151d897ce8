"""A value that many ask for and that takes a while: it is found once for all of them, and nobody waits for long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from shared.database.postgres import Connection
from shared.errors import FeedmillError, Unavailable

T = TypeVar("T")

END_SECONDS = 2.0
"""A search that is cancelled ends within so long: it takes its leave of a server that may hang."""

_NAME = "search of a look"


class Look(Generic[T]):
    """Finds a value at most every `keep_seconds`, once at a time, and keeps it, or the error, for all that ask.

    Args:
        find: finds it. A search that takes too long goes on, and its value serves those who ask later.
        what: who is asked, for the error.
        keep_seconds: how old a value may be.
        patience_seconds: how long a search may take before those who ask get an error instead.
    """

    def __init__(
        self, find: Callable[[], Awaitable[T]], *, what: str, keep_seconds: float, patience_seconds: float
    ) -> None:
        self._find = find
        self._what = what
        self._keep = keep_seconds
        self._patience = patience_seconds
        self._task: asyncio.Task[T] | None = None
        self._begun_at = self._ended_at = 0.0
        self.last: T | None = None
        """The last value that was found, however old."""
        self.last_at: datetime | None = None
        """When it was found."""
        self.failing_since: datetime | None = None
        """When the first of the searches began that have failed since, or take too long; None: the last one did not."""

    async def get(self, *, patience_seconds: float | None = None) -> T:
        """Return the value.

        Args:
            patience_seconds: in place of the usual one.

        Raises:
            Unavailable: the search takes too long; or what the search raised.
        """
        task = self._begin()
        patience = self._patience if patience_seconds is None else patience_seconds
        if not task.done():
            left = self._begun_at + patience - time.monotonic()
            await asyncio.wait({task}, timeout=max(left, 0.0))
        if not task.done():
            self._note_failure()
            raise Unavailable(f"{self._what} does not answer within {patience:g} s")
        if error := task.exception():
            raise error.with_traceback(None)
        return task.result()

    async def recent(self, seconds: float, *, patience_seconds: float) -> T:
        """Return the last value at once if it is not older than `seconds`, and look for a new one meanwhile.

        Else wait for a new one up to `patience_seconds`; then the last one, however old, has to do. If there never was
        any, wait as `get` does, and raise what it raises.
        """
        if self.last is None or self.last_at is None:
            return await self.get()
        if datetime.now(UTC) - self.last_at <= timedelta(seconds=seconds):
            self._begin()
            return self.last
        try:
            return await self.get(patience_seconds=patience_seconds)
        except FeedmillError:
            return self.last

    def _begin(self) -> asyncio.Task[T]:
        """Return the search that runs, or was not long ago; else begin one."""
        task = self._task
        if task is None or (task.done() and time.monotonic() > self._ended_at + self._keep):
            task = self._task = asyncio.create_task(self._search(), name=_NAME)
            task.add_done_callback(_note_error)
            self._begun_at = time.monotonic()
        return task

    async def _search(self) -> T:
        try:
            self.last = found = await self._find()
        except BaseException:
            self._note_failure()
            if (task := asyncio.current_task()) and task.cancelling():
                raise asyncio.CancelledError from None  # what it met meanwhile, such as a closed pool, is no news
            raise
        else:
            self.last_at, self.failing_since = datetime.now(UTC), None
            return found
        finally:
            self._ended_at = time.monotonic()

    def _note_failure(self) -> None:
        if self.failing_since is None:
            self.failing_since = datetime.now(UTC) - timedelta(seconds=time.monotonic() - self._begun_at)


async def end_searches() -> None:
    """Cancel the searches that still run in this loop, and wait for their ends: none may outlive its pool."""
    searches = [task for task in asyncio.all_tasks() if task.get_name() == _NAME]
    for task in searches:
        task.cancel()
    if searches:
        await asyncio.wait(searches, timeout=END_SECONDS)


async def bound(connection: Connection, seconds: float) -> None:
    """Let no statement of this transaction take longer than `seconds`, nor be compiled.

    The planner overrates such counts: compiling one takes seconds, and the count itself a tenth of one.
    """
    await connection.execute(
        "SELECT set_config('statement_timeout', %s, true), set_config('jit', 'off', true)", [f"{seconds * 1000:.0f}ms"]
    )


def _note_error(task: asyncio.Task[T]) -> None:
    """Keep asyncio from logging an error that nobody came back for."""
    if not task.cancelled():
        task.exception()
