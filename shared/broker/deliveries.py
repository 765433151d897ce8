"""Deliveries between the broker and the handler: waiting for their turn, put together in batches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass

from shared.broker.port import Delivery
from shared.waiting import until_any


@dataclass(frozen=True)
class Batching:
    """How many messages the handler gets at once: up to `size` by `weigh`, waiting for more up to `linger_seconds`.

    The default is one at a time, as many side by side as the prefetch allows.
    """

    size: int = 1
    linger_seconds: float = 0.0
    weigh: Callable[[Delivery], int] = lambda _: 1
    concurrency: int | None = None
    """Batches handled at the same time; None: as many as the prefetch lets in."""


class Arrivals:
    """Deliveries that wait for their turn. Closed when no more will be handled."""

    def __init__(self) -> None:
        self._waiting: deque[Delivery] = deque()
        self._changed = asyncio.Event()
        self._closed = False

    def put(self, delivery: Delivery) -> None:
        """Add a delivery; called from the session."""
        self._waiting.append(delivery)
        self._changed.set()

    async def close_when(self, *events: asyncio.Event) -> None:
        """Close once any of the events is set."""
        await until_any(*events)
        self._closed = True
        self._changed.set()

    async def next(self, deadline: float | None = None) -> Delivery | None:
        """Return the oldest delivery; None if closed, or at `deadline` (the event loop's clock, seconds)."""
        try:
            async with asyncio.timeout_at(deadline):
                while not (self._waiting or self._closed):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return None
        return None if self._closed else self._waiting.popleft()

    async def next_batch(self, batching: Batching, most: int) -> list[Delivery]:
        """Return the next batch of at most `most` deliveries (no more than that can come); empty once closed."""
        first = await self.next()
        if first is None:
            return []
        batch, weight = [first], batching.weigh(first)
        deadline = asyncio.get_running_loop().time() + batching.linger_seconds
        while weight < batching.size and len(batch) < most:
            following = await self.next(deadline)
            if following is None:
                break
            batch.append(following)
            weight += batching.weigh(following)
        return batch

    def take_rest(self, queues: Collection[str] | None = None) -> list[Delivery]:
        """Return all that was not begun, of these queues or of any."""
        rest = [delivery for delivery in self._waiting if queues is None or delivery.queue in queues]
        left = [delivery for delivery in self._waiting if queues is not None and delivery.queue not in queues]
        self._waiting.clear()
        self._waiting.extend(left)
        return rest
