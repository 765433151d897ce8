"""The time: read from the database once a second, and announced to the fetchers, which have no database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from shared.broker.port import Publication, Session
from shared.broker.topology import FETCHERS
from shared.clock import CLOCK_MESSAGE, ServerClock, encode_clock
from shared.database.postgres import Database
from shared.errors import Unavailable

log = logging.getLogger(__name__)

WORD_SECONDS = 1.0


class ClockAnnouncer:
    """Sets `clock` by the database, and announces the time over the session with the broker, if one stands."""

    def __init__(self, database: Database, clock: ServerClock, session: Callable[[], Session | None]) -> None:
        self._database = database
        self._clock = clock
        self._session = session
        self._announcing: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Read the database's clock, and announce it. Raises DatabaseUnavailable."""
        self._clock.observe(await self._database.read_clock())
        session = self._session()
        if self._announcing is not None:
            if not self._announcing.done():
                return  # a broker under an alarm confirms nothing for minutes, and must not keep us from looking
            self._announcing.result()
        if session is None:
            return
        self._announcing = asyncio.create_task(self._announce(session))

    async def _announce(self, session: Session) -> None:
        body = encode_clock(self._clock.now())
        try:
            await session.publish(Publication("", body, FETCHERS, CLOCK_MESSAGE, mandatory=False))
        except Unavailable as error:
            log.debug("the time was not announced to the fetchers: %s", error)
