"""A cache whose values expire."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class TtlCache(Generic[V]):
    """Values by key, each kept for so many seconds. For one event loop."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._values: dict[Hashable, tuple[V, asyncio.TimerHandle]] = {}

    def put(self, key: Hashable, value: V) -> None:
        """Store `value` under this key, in place of an earlier one."""
        self.take(key)
        end = asyncio.get_running_loop().call_later(self._seconds, self._values.pop, key)
        self._values[key] = (value, end)

    def get(self, key: Hashable) -> V | None:
        """Return the value under this key; None if there is none. From any thread."""
        value, _ = self._values.get(key, (None, None))
        return value

    def take(self, key: Hashable) -> V | None:
        """Remove and return the value under this key; None if there is none."""
        value, end = self._values.pop(key, (None, None))
        if end is not None:
            end.cancel()
        return value
