"""The client for asyncio: loop.py and drain.py with `await`. A test holds the two against each other."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import psycopg

from feedmill_client import calls, sql
from feedmill_client.calls import Article, Call
from feedmill_client.loop import NAP_SECONDS
from feedmill_client.sql import AWAY

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class AsyncPendingArticles:
    """One consumer on one connection, which it opens when needed, and again after a loss. A context manager.

    Every call raises one of `AWAY` if the server is away. It may then be repeated, as `patiently` does.

    Args:
        conninfo: a PostgreSQL URL.
        poll_seconds: how often to look without a notification (PgBouncer passes none on).
    """

    def __init__(self, conninfo: str, *, poll_seconds: float = 5.0) -> None:
        self._conninfo = conninfo
        self._poll_seconds = poll_seconds
        self._connection: psycopg.AsyncConnection | None = None
        self._stopped = False

    async def __aenter__(self) -> AsyncPendingArticles:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()

    def stop(self) -> None:
        """End `batches` and `run` after the current article. Signal handlers and other threads may call it."""
        self._stopped = True

    async def claim(self, most: int = 50, lease: timedelta = calls.LEASE) -> list[Article]:
        """Claim up to `most` articles, the oldest first."""
        connection = await self._connect()
        async with connection.cursor(row_factory=sql.read_articles) as cursor:
            await cursor.execute(sql.CLAIM.encode(), [most, lease])
            return await cursor.fetchall()

    async def ack(self, articles: Sequence[Article]) -> int:
        """Acknowledge and remove them; return how many. Articles whose text has changed meanwhile stay pending."""
        return int(await self._ask(*sql.ack(articles)))

    async def fail(
        self, articles: Sequence[Article], error: str | Exception, retry_after: timedelta | None = None
    ) -> int:
        """Count a failure: they come again after a pause, or become dead. Return how many this consumer still held."""
        return int(await self._ask(*sql.fail(articles, error, retry_after)))

    async def renew(self, articles: Sequence[Article], lease: timedelta = calls.LEASE) -> list[Article]:
        """Start their lease anew; return the articles that this consumer still holds."""
        held = await self._ask(*sql.renew(articles, lease))
        return [article for article in articles if article.md5 in held]

    async def release(self, articles: Sequence[Article]) -> int:
        """Release them for other consumers; return how many this consumer still held."""
        return int(await self._ask(*sql.release(articles)))

    async def batches(self, most: int = 50, lease: timedelta = calls.LEASE) -> AsyncIterator[list[Article]]:
        """Yield claimed articles until `stop()`; wait while there are none, and while the server is away."""
        with contextlib.suppress(*AWAY):  # stopped while it was away
            while not self._stopped:
                if articles := await self.patiently(lambda: self.claim(most, lease)):
                    yield articles
                else:
                    await self.patiently(self._wait)

    async def run(
        self, handle: Callable[[Article], Awaitable[object]], *, batch: int = 50, lease: timedelta = calls.LEASE
    ) -> None:
        """Call `handle` with each article until `stop()`. An exception fails the article, otherwise it is acknowledged.

        Leases are renewed between articles: `lease` must be more than twice the time of the slowest article.
        Raises one of `AWAY` if the server is away after `stop()`: unacknowledged articles come again.
        """
        async for articles in self.batches(batch, lease):
            await self._work_off(articles, handle, lease)

    async def patiently(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Return `call()`, repeated while the server is away; after `stop()` at most once more."""
        for attempt in itertools.count():
            try:
                return await call()
            except AWAY as error:
                await self.close()
                if self._stopped:
                    raise
                log.warning("the database is away, trying again: %s", error)
                await self._sleep(calls.back_off(attempt))
        raise AssertionError

    async def _work_off(
        self, articles: list[Article], handle: Callable[[Article], Awaitable[object]], lease: timedelta
    ) -> None:
        work = calls.work_off(articles, lease, lambda: self._stopped)
        step = calls.advance(work, None)
        interruption: BaseException | None = None
        while step is not None:
            answer: object = None
            if not isinstance(step, Article):
                answer = await self._call(step)
            else:
                try:
                    await handle(step)
                except Exception as error:  # noqa: BLE001 - it is stored with the article
                    log.warning("article %s failed: %r", step.md5, error)
                    answer = error
                except BaseException as error:  # noqa: BLE001 - raised below, after the articles are released
                    self.stop()
                    answer = interruption = error
            step = calls.advance(work, answer)
        if interruption is not None:
            raise interruption

    async def _call(self, call: Call) -> Any:
        return await self.patiently(lambda: getattr(self, call.method)(*call.arguments))

    async def _ask(self, query: str, arguments: Sequence[object]) -> Any:
        cursor = await (await self._connect()).execute(query.encode(), arguments)
        row = await cursor.fetchone()
        assert row is not None
        return row[0]

    async def _connect(self) -> psycopg.AsyncConnection:
        if self._connection is None or self._connection.closed:
            self._connection = await psycopg.AsyncConnection.connect(self._conninfo, **sql.CONNECT)
            await self._connection.execute(sql.LISTEN.encode())
        return self._connection

    async def _wait(self) -> None:
        until = time.monotonic() + self._poll_seconds
        while not self._stopped and (left := until - time.monotonic()) > 0:
            connection = await self._connect()
            if [n async for n in connection.notifies(timeout=min(left, NAP_SECONDS), stop_after=1)]:
                return

    async def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopped and (left := until - time.monotonic()) > 0:  # noqa: ASYNC110 - stop() may come from a thread
            await asyncio.sleep(min(left, NAP_SECONDS))
