"""Lets claims wait for articles: hundreds of them, with one database connection for all."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import psycopg

from shared.database.postgres import LIVELINESS
from shared.observability.secrets import mask_credentials

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_SECONDS = 2.0
"""How often a few look without a notification: returning articles are not announced, and PgBouncer passes none on."""

FEW = 2
"""So many are woken at a time. One that finds articles wakes the next few: as many claim as there is work for."""

IDLE_LOOKS = 30
"""After so many looks for nobody the connection is closed."""


class Arrivals:
    """Those that wait for articles, in the order in which they came.

    Args:
        database_url: where notifications come from.
        at_once: so many look for articles at a time: the pool's other connections are for other requests.
    """

    def __init__(self, database_url: str, at_once: int) -> None:
        self._url = database_url
        self._places = itertools.count()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._looking = asyncio.Semaphore(at_once)
        self._listening: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def close(self) -> None:
        """End all waits at once; later ones end as soon as they begin."""
        self._closed = True
        self.wake(len(self._waiting))
        if self._listening is not None:
            self._listening.cancel()

    def wake(self, most: int = FEW) -> None:
        """Let those who have waited longest look for articles."""
        for place in heapq.nsmallest(most, self._waiting):
            self._waiting.pop(place).set_result(None)

    async def wait_for(
        self, look: Callable[[], Awaitable[list[T]]], seconds: float, gone: asyncio.Future[None]
    ) -> list[T]:
        """Return what `look` finds, as soon as that is something; nothing after `seconds`, or after `close`.

        `look` is not called once `gone` is done: nobody would get what it finds.
        """
        place = next(self._places)
        deadline = asyncio.get_running_loop().time() + seconds
        is_woken = False
        while not gone.done():
            async with self._looking:
                found = [] if gone.done() else await look()
            if found:
                if is_woken:
                    self.wake()  # there may be more
                return found
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or self._closed:
                return []
            is_woken = await self._until_woken(place, left, gone)
            if not is_woken and not gone.done():
                return []
        if is_woken:
            self.wake(1)
        return []

    async def _until_woken(self, place: int, seconds: float, gone: asyncio.Future[None]) -> bool:
        self._listen()
        mine = self._waiting[place] = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait({mine, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if mine.done():
                self.wake(1)
            raise
        finally:
            self._waiting.pop(place, None)
        return mine.done()

    def _listen(self) -> None:
        if not self._closed and (self._listening is None or self._listening.done()):
            self._listening = asyncio.create_task(self._keep_listening())

    async def _keep_listening(self) -> None:
        idle = 0
        while idle < IDLE_LOOKS and not self._closed:
            try:
                async with await psycopg.AsyncConnection.connect(
                    self._url, autocommit=True, application_name="feedmill arrivals", **LIVELINESS
                ) as connection:
                    await connection.execute("LISTEN feedmill_pending")
                    # Before Python 3.12 `wait_for`, by which psycopg waits, may swallow the cancellation.
                    while idle < IDLE_LOOKS and not self._closed:
                        idle = 0 if self._waiting else idle + 1
                        self.wake()  # also at first: something may have come before
                        async for _ in connection.notifies(timeout=LOOK_SECONDS, stop_after=1):
                            pass
            except psycopg.Error as error:
                log.warning("not told of new articles, looking every few seconds: %s", mask_credentials(str(error)))
                idle = 0 if self._waiting else idle + 1
                await asyncio.sleep(LOOK_SECONDS)
                self.wake()
