"""The event loop of a command's calls, and what Ctrl-C and SIGTERM do to it."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


class Loop:
    """Runs coroutines one after the other. An interrupt cancels the one that runs.

    A KeyboardInterrupt that is raised while a loop runs may end it between a callback's turn and the callback, which is
    lost then, and who waits for it waits for ever; raised within a weak reference's callback it is lost itself. So none
    is raised there, and what was missed is raised at the end of the next call.
    """

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self._loop = runner.get_loop()
        self._task: asyncio.Task[Any] | None = None
        self._runs = False
        self._interrupted = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns.

        Raises:
            KeyboardInterrupt: an interrupt came, now or before; if now, `work` was cancelled.
        """
        try:
            result = self.end(work)
        except asyncio.CancelledError:
            if self._interrupted:
                raise KeyboardInterrupt from None
            raise
        if self._interrupted:
            raise KeyboardInterrupt
        return result

    def end(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns, which cleans up: an interrupt before is no reason to leave it."""
        self._runs = True
        try:
            return self._runner.run(self._hold(work))
        finally:
            self._runs = False

    async def _hold(self, work: Coroutine[Any, Any, T]) -> T:
        self._task = asyncio.current_task()
        return await work

    def interrupt(self, _signum: int, _frame: FrameType | None) -> None:
        """Cancel what runs; between two calls, interrupt the command itself."""
        self._interrupted = True
        if not self._runs:
            raise KeyboardInterrupt
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


@contextmanager
def open_loop() -> Iterator[Loop]:
    """Yield a loop that Ctrl-C and SIGTERM interrupt, unless they are ignored; it is closed at the end."""
    before = {}
    with asyncio.Runner() as runner:
        loop = Loop(runner)
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, signal.SIGTERM):
                if (handler := signal.getsignal(signum)) is not signal.SIG_IGN:
                    before[signum] = handler
                    signal.signal(signum, loop.interrupt)
        try:
            yield loop
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)
