"""Long work that waits for others, such as requests to a stranger's host: only so much at a time, one per key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from shared.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")


class Turns:
    """Runs work in threads of its own, so that it takes none from other requests.

    Work of one key runs one after the other: a slow host keeps one thread at most.

    Args:
        most: works at a time.
        patience_seconds: the longest wait for a turn.
    """

    def __init__(self, most: int, patience_seconds: float) -> None:
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="turns")
        self._free = asyncio.Semaphore(most)
        self._patience_seconds = patience_seconds
        self._keys: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, key: str, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Return what `work` returns. Its turn ends with it, even if the caller does not wait so long.

        Raises:
            Unavailable: too much other work waits.
        """
        lock = self._keys.setdefault(key, asyncio.Lock())
        await self._begin(key, lock)
        running = asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args, **options))

        def end(_: Any) -> None:
            self._free.release()
            lock.release()

        running.add_done_callback(end)
        return await asyncio.shield(running)

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
            raise Unavailable(
                f"{key}: other requests wait for this host, or too many for others; try again in a minute"
            ) from None
