"""An event loop whose clock jumps to the next timer instead of sleeping."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits; adds the time that it would have waited to `now` (seconds)."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "nothing will ever happen again: a deadlock"
            self.now += max(timeout, 0.0)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def jump(self, seconds: float) -> None:
        """Let time pass in which nobody runs."""
        self._jumping.now += seconds


def run_virtually(main: Coroutine[Any, Any, R]) -> R:
    """Run `main` in a loop of its own; only one thread may take part."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
