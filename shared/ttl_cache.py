"""Things that somebody may come back for: kept for a while, then let go of."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class TtlCache(Generic[V]):
    """Values by key, each for at most so many seconds. Used on one event loop."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._values: dict[Hashable, tuple[V, asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def put(self, key: Hashable, value: V) -> None:
        """Keep `value`, in place of what was kept under this key before."""
        self.take(key)
        end = asyncio.get_running_loop().call_later(self._seconds, self._values.pop, key)
        self._values[key] = (value, end)

    def take(self, key: Hashable) -> V | None:
        """Return what is kept under this key, if anything; it is kept no longer."""
        value, end = self._values.pop(key, (None, None))
        if end is not None:
            end.cancel()
        return value
