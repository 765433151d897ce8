"""The prefetch limit: how many messages a consumer may hold, and from which queues. Its loop applies every change."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

LEAST_SHARE = 4
"""Each queue gets at least this much, even of a small total: other queues may be empty."""


def divide(total: int, queues: Sequence[str]) -> dict[str, int]:
    """Return how many messages of each queue may be unsettled: even shares, but none below `LEAST_SHARE`."""
    if not total or not queues:
        return {}
    each, over = divmod(total, len(queues))
    return {queue: max(each + (place < over), min(total, LEAST_SHARE)) for place, queue in enumerate(queues)}


class PrefetchLimit:
    """How many messages may be unsettled: the lowest limit that anybody set; 0 stops the consumer. For one event loop.

    Args:
        most: the limit while nobody sets a lower one.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.queues: Sequence[str] | None = None
        """The queues to consume; None: all queues of the stage."""
        self._limits: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def total(self) -> int:
        """How many messages may be unsettled."""
        return min((self.most, *self._limits.values()))

    @property
    def share(self) -> int:
        """How many of these may come from one queue."""
        return min(divide(self.total, self.queues or ("",)).values(), default=0)

    def read_from(self, queues: Sequence[str] | None) -> None:
        """Set the queues to consume."""
        if self.queues != queues:
            self.queues = queues
            self._changed.set()

    def set(self, who: str, limit: int) -> None:
        """Set the limit that `who` wants; it replaces the former limit of the same name."""
        if self._limits.get(who, self.most) != limit:
            self._limits[who] = limit
            self._changed.set()

    async def wait_changed(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()
        self._changed.clear()

    def wake(self) -> None:
        """End `wait_changed` without a change."""
        self._changed.set()

    def note_applied(self) -> None:
        """Note that the consumer now consumes as this limit says, or that no session consumes at all."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def next_applied(self) -> asyncio.Future[None]:
        """Return a future that is done when the consumer has applied the limit as it is now.

        A message that is requeued after that does not come back here at once.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self.wake()
        return future
