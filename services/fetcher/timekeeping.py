"""What time it is: told by the schedulers, who read it from the database that makes the claims."""

from __future__ import annotations

import asyncio

from shared.clock import ServerClock, decode_clock
from shared.waiting import pause

PATIENCE_SECONDS = 3.0
"""Schedulers say what time it is once a second. Who has heard nothing for so long goes by its own clock."""


class TimeTold:
    """Sets `clock` by what is said on the exchange where fetchers listen."""

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self._heard = asyncio.Event()

    def hear(self, body: bytes) -> None:
        """Set the clock, if this is about it: fetchers talk here, too."""
        moment = decode_clock(body)
        if moment is not None:
            self._clock.observe(moment)
            self._heard.set()

    async def confirmed(self) -> None:
        """Wait until the clock was set, or nobody seems to do so."""
        await pause(PATIENCE_SECONDS, self._heard)
