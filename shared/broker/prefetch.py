"""How many messages a consumer may take, and from which queues: turned by whoever knows, followed by its loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

LEAST_SHARE = 4
"""Of a small opening each queue may have so many: what one has too much, another that is empty leaves."""


def divide(opening: int, queues: Sequence[str]) -> dict[str, int]:
    """Return how many messages may be unsettled of each queue: even shares, but not too small ones."""
    if not opening or not queues:
        return {}
    each, over = divmod(opening, len(queues))
    return {queue: max(each + (place < over), min(opening, LEAST_SHARE)) for place, queue in enumerate(queues)}


class PrefetchLimit:
    """A number of messages, the least that anybody sets; 0 is shut. Used on one event loop.

    Args:
        most: the prefetch with the prefetch limit fully open.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.queues: Sequence[str] | None = None
        """Where messages may come from; None: from all queues of the stage."""
        self._limits: dict[str, int] = {}
        self._turned = asyncio.Event()
        self._followed: list[asyncio.Future[None]] = []

    @property
    def total(self) -> int:
        """How many messages may be unsettled at a time."""
        return min((self.most, *self._limits.values()))

    @property
    def share(self) -> int:
        """How many of these may come from one queue."""
        return min(divide(self.total, self.queues or ("",)).values(), default=0)

    def read_from(self, queues: Sequence[str] | None) -> None:
        """Set where messages may come from."""
        if self.queues != queues:
            self.queues = queues
            self._turned.set()

    def set(self, who: str, limit: int) -> None:
        """Set the limit that `who` has a say in."""
        if self._limits.get(who, self.most) != limit:
            self._limits[who] = limit
            self._turned.set()

    async def wait_changed(self) -> None:
        """Wait until somebody has turned it since the last time."""
        await self._turned.wait()
        self._turned.clear()

    def wake(self) -> None:
        """Have whoever waits for a change look again, although nothing was turned."""
        self._turned.set()

    def note_applied(self) -> None:
        """Say that the consumer does as the prefetch limit says (or that there is none that takes anything)."""
        waiting, self._followed = self._followed, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def next_applied(self) -> asyncio.Future[None]:
        """Return a future that is done when the consumer does as the prefetch limit says now.

        What is given back after that does not come here again at once.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._followed.append(future)
        self.wake()
        return future
