"""The scheduler's loop: a tick every so often, over a session that is made anew whenever it is lost."""

from __future__ import annotations

import asyncio
import logging

from services.scheduler.tick import Tick
from shared.broker.port import Broker, Session
from shared.broker.topology import Topology
from shared.errors import Unavailable, Unconfirmed
from shared.waiting import keep_trying, pause

log = logging.getLogger(__name__)


class Ticker:
    """Runs `tick` every `seconds`, at once again after one that claimed `full` feeds."""

    def __init__(self, broker: Broker, topology: Topology, tick: Tick, *, full: int, seconds: float) -> None:
        self._broker = broker
        self._topology = topology
        self._tick = tick
        self._full = full
        self._seconds = seconds
        self._session: Session | None = None

    @property
    def session(self) -> Session | None:
        """The session with the broker, if one stands."""
        return self._session if self._session and not self._session.lost.is_set() else None

    def check(self) -> str | None:
        """Return what keeps the scheduler from being ready, if anything (a `shared.observability.telemetry.Check`)."""
        return None if self.session else "no session with the broker"

    async def run(self, stop: asyncio.Event) -> None:
        """Tick until `stop`.

        Raises:
            ConfigurationError: the topology does not fit what stands in the broker.
        """
        while not stop.is_set():
            try:
                await keep_trying(lambda: self._run_session(stop), what="scheduling", until=(stop,))
            except Unavailable as error:
                log.info("stopped while a server was away: %s", error)

    async def _run_session(self, stop: asyncio.Event) -> None:
        async with self._broker.connect(self._topology) as session:
            self._session = session
            try:
                while not (stop.is_set() or session.lost.is_set()):
                    if await self._run_tick(session) < self._full:
                        await pause(self._seconds, stop, session.lost)
            finally:
                self._session = None

    async def _run_tick(self, session: Session) -> int:
        """Return how many feeds were claimed. While jobs wait for their confirm the session is kept: it brings it."""
        try:
            return await self._tick.run(session)
        except Unconfirmed as error:
            if session.lost.is_set():
                raise
            log.warning("the broker does not confirm what is published, nothing is claimed meanwhile: %s", error)
            return 0
