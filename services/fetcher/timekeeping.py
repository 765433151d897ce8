"""What time it is: told by the schedulers, who read it from the database that makes the claims."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.broker import Broker, Session
from shared.clock import ServerClock, decode_word
from shared.topology import FETCHERS, Topology
from shared.waiting import pause

PATIENCE_SECONDS = 3.0
"""Schedulers say what time it is once a second. Who has heard nothing for so long goes by its own clock."""


class TimeTold:
    """A broker, to be put before another, over whose sessions `clock` is set."""

    def __init__(self, broker: Broker, clock: ServerClock) -> None:
        self._broker = broker
        self._clock = clock
        self._heard = asyncio.Event()

    @asynccontextmanager
    async def connect(self, topology: Topology | None) -> AsyncIterator[Session]:
        """Yield a session, and listen for its length. See `shared.broker.Broker.connect`."""
        async with self._broker.connect(topology) as session:
            await session.listen(FETCHERS, self.hear)
            yield session

    def hear(self, body: bytes) -> None:
        """Set the clock, if this is about it: fetchers talk here, too."""
        moment = decode_word(body)
        if moment is not None:
            self._clock.hear(moment)
            self._heard.set()

    async def confirmed(self) -> None:
        """Wait until the clock was set, or nobody seems to do so."""
        await pause(PATIENCE_SECONDS, self._heard)
