"""Long work that waits for others, such as requests to a stranger's host: only so much at a time, one per key."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from services.api.problems import ProblemError
from shared.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")


class Places:
    """Places for work that takes a while; nobody waits for one.

    Args:
        most: in this process.
        taken: the sentence for a client that finds none.
    """

    def __init__(self, most: int, taken: str) -> None:
        self._free = threading.BoundedSemaphore(most)
        self._taken = taken

    def give_back(self) -> None:
        """Give back a place that was kept."""
        self._free.release()

    @contextmanager
    def place(self, *, keep: bool = False) -> Iterator[None]:
        """Hold a place for the block; with `keep` it is given back only if the block fails.

        Raises:
            ProblemError: all are taken.
        """
        if not self._free.acquire(blocking=False):
            raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, f"{self._taken}: try again later", {"Retry-After": "10"})
        try:
            yield
        except BaseException:
            keep = False
            raise
        finally:
            if not keep:
                self.give_back()


class Turn:
    """A turn: it may run work in a thread, one after the other."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._running: asyncio.Future[Any] | None = None

    async def run(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Return what `work` returns. A caller who is cancelled does not end it."""
        running = asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args, **options))
        self._running = running
        return await asyncio.shield(running)

    def at_end(self, end: Callable[[], None]) -> None:
        """Call `end` as soon as no work runs."""
        if self._running is None or self._running.done():
            end()
        else:
            self._running.add_done_callback(lambda _: end())


class Turns:
    """Gives turns, with threads of their own, so that such work takes none from other requests.

    Turns of one key come one after the other: a slow host keeps one thread at most.

    Args:
        most: turns at a time.
        patience_seconds: the longest wait for a turn.
    """

    def __init__(self, most: int, patience_seconds: float) -> None:
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="turns")
        self._free = asyncio.Semaphore(most)
        self._patience_seconds = patience_seconds
        self._keys: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[Turn]:
        """Yield a turn. It ends with the block, and not before its work does.

        Raises:
            Unavailable: others had all turns for too long.
        """
        lock = self._keys.setdefault(key, asyncio.Lock())
        await self._begin(key, lock)

        def end() -> None:
            self._free.release()
            lock.release()

        turn = Turn(self._threads)
        try:
            yield turn
        finally:
            turn.at_end(end)

    async def _begin(self, key: str, lock: asyncio.Lock) -> None:
        try:
            async with asyncio.timeout(self._patience_seconds):
                await lock.acquire()
                try:
                    await self._free.acquire()
                except BaseException:
                    lock.release()
                    raise
        except TimeoutError:
            raise Unavailable(f"{key}: too many other requests wait for this host; try again in a minute") from None
