"""The fetcher's clocks. The wall time is the database's: schedulers read it there and publish it to the fetchers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from shared.clock import ServerClock, decode_clock
from shared.waiting import pause

PATIENCE_SECONDS = 3.0
"""Schedulers publish the time once a second. A fetcher that receives none for this long uses its own clock."""


async def _at_once() -> None:
    """Return at once: nobody publishes the time here."""


@dataclass(frozen=True)
class Clock:
    """The clocks as functions."""

    now: Callable[[], datetime]
    """Aware wall time."""
    monotonic: Callable[[], float]
    """Seconds that never step."""
    cpu: Callable[[], float] = time.thread_time
    """Seconds of CPU that the calling thread has used."""
    confirmed: Callable[[], Awaitable[None]] = _at_once
    """Waits until the database's time has been received, or for a short while if nobody publishes it."""


class ClockSync:
    """Sets `clock` to the time that schedulers publish on the fetchers' exchange."""

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self._received = asyncio.Event()

    def receive(self, body: bytes) -> None:
        """Set the clock, if this message is about it. Fetchers use the same exchange for their heartbeats."""
        moment = decode_clock(body)
        if moment is not None:
            self._clock.observe(moment)
            self._received.set()

    async def confirmed(self) -> None:
        """Wait until the time was received, at most `PATIENCE_SECONDS`."""
        await pause(PATIENCE_SECONDS, self._received)
