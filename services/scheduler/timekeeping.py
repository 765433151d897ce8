"""What time it is: read from the database once a second, and told to the fetchers, who have no database."""

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
    """See the module. Args: the database, the clock that it sets, and the session with the broker, if one stands."""

    def __init__(self, database: Database, clock: ServerClock, session: Callable[[], Session | None]) -> None:
        self._database = database
        self._clock = clock
        self._session = session
        self._telling: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Read the database's clock, and tell it. Raises DatabaseUnavailable."""
        self._clock.observe(await self._database.read_clock())
        session = self._session()
        if self._telling is not None:
            if not self._telling.done():
                return  # a broker under an alarm confirms nothing for minutes, and must not keep us from looking
            self._telling.result()
        if session is None:
            return
        self._telling = asyncio.create_task(self._tell(session))

    async def _tell(self, session: Session) -> None:
        body = encode_clock(self._clock.now())
        try:
            await session.publish(Publication("", body, FETCHERS, CLOCK_MESSAGE, mandatory=False))
        except Unavailable as error:
            log.debug("the fetchers were not told what time it is: %s", error)
