"""Which results of a run the writer has written: the fetch log has a row for each."""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from uuid import UUID

from services.batch.tally import Tally
from shared.database.postgres import Database
from shared.errors import Unavailable
from shared.waiting import pause
from shared.wire.messages import FeedFetched

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
LOOK_AT = 2000
"""Results that are asked for at a time, the oldest first."""

PATIENCE_SECONDS = 30.0
"""For so long nothing may be written while the run waits for the writer: a feed may have been removed meanwhile, or a
result be in the writer's retry or dead queue."""


class Receipts:
    """See the module. Counts the articles that were new into the tally."""

    def __init__(self, database: Database, tally: Tally) -> None:
        self._database = database
        self._tally = tally
        self._open: dict[UUID, None] = {}
        tally.new_articles = tally.unwritten = 0

    def note(self, fetched: FeedFetched) -> None:
        """Wait for the row of a result that was passed on."""
        self._open[fetched.result_id] = None

    async def watch(self) -> None:
        """Look until cancelled, so that what is open stays as short as the writer's backlog."""
        while True:
            await self._look()
            await pause(LOOK_SECONDS)

    async def wait_written(self, stop: asyncio.Event) -> None:
        """Wait until all is written, or until `stop`, or until nothing moves any more."""
        loop = asyncio.get_running_loop()
        moved_at = loop.time()
        while self._open and not stop.is_set() and loop.time() - moved_at < PATIENCE_SECONDS:
            if await self._look():
                moved_at = loop.time()
            elif self._open:
                await pause(LOOK_SECONDS, stop)
        self._tally.unwritten = len(self._open)
        if self._open:
            log.warning("%d results are not written yet", len(self._open))

    async def _look(self) -> bool:
        """Return whether something was found, or could not be looked for."""
        if not self._open:
            return False
        try:
            async with self._database.transaction() as connection:
                cursor = await connection.execute(
                    "SELECT result_id, items_new FROM feed_fetch_log WHERE result_id = ANY(%s)",
                    [list(islice(self._open, LOOK_AT))],
                )
                rows = await cursor.fetchall()
        except Unavailable as error:
            log.warning("could not look at what is written: %s", error)
            await pause(LOOK_SECONDS)
            return True
        for row in rows:
            if row["result_id"] in self._open:
                del self._open[row["result_id"]]
                assert self._tally.new_articles is not None
                self._tally.new_articles += row["items_new"]
        return bool(rows)
