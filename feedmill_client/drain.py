"""The blocking client."""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from psycopg.rows import class_row

from feedmill_client import calls
from feedmill_client.calls import AWAY, Article

log = logging.getLogger(__name__)
Result = TypeVar("Result")

NAP_SECONDS = 0.25
"""How late a `stop()` is noticed while waiting."""


class PendingArticles:
    """One consumer on one connection, which it opens when needed, and again after a loss. A context manager.

    Every call raises one of `AWAY` if the server is away. It may then be repeated, as `patiently` does.

    Args:
        conninfo: a PostgreSQL URL.
        poll_seconds: how often to look without a notification (PgBouncer passes none on).
    """

    def __init__(self, conninfo: str, *, poll_seconds: float = 5.0) -> None:
        self._conninfo = conninfo
        self._poll_seconds = poll_seconds
        self._connection: psycopg.Connection | None = None
        self._stopped = False

    def __enter__(self) -> PendingArticles:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def stop(self) -> None:
        """End `batches` and `run` after the current article. Signal handlers and other threads may call it."""
        self._stopped = True

    def claim(self, most: int = 50, lease: timedelta = calls.LEASE) -> list[Article]:
        """Claim up to `most` articles, the oldest first."""
        with self._connect().cursor(row_factory=class_row(Article)) as cursor:
            return cursor.execute(calls.CLAIM.encode(), [most, lease]).fetchall()

    def ack(self, articles: Sequence[Article]) -> int:
        """Acknowledge and remove them; return how many. Articles whose text has changed meanwhile stay pending."""
        return int(self._ask(*calls.ack(articles)))

    def fail(self, articles: Sequence[Article], error: str | Exception, retry_after: timedelta | None = None) -> int:
        """Count a failure: they come again after a pause, or become dead. Return how many this consumer still held."""
        return int(self._ask(*calls.fail(articles, error, retry_after)))

    def renew(self, articles: Sequence[Article], lease: timedelta = calls.LEASE) -> list[Article]:
        """Start their lease anew; return the articles that this consumer still holds."""
        held = self._ask(*calls.renew(articles, lease))
        return [article for article in articles if article.md5 in held]

    def release(self, articles: Sequence[Article]) -> int:
        """Release them for other consumers; return how many this consumer still held."""
        return int(self._ask(*calls.release(articles)))

    def batches(self, most: int = 50, lease: timedelta = calls.LEASE) -> Iterator[list[Article]]:
        """Yield claimed articles until `stop()`; wait while there are none, and while the server is away."""
        with contextlib.suppress(*AWAY):  # stopped while it was away
            while not self._stopped:
                if articles := self.patiently(lambda: self.claim(most, lease)):
                    yield articles
                else:
                    self.patiently(self._wait)

    def run(self, handle: Callable[[Article], object], *, batch: int = 50, lease: timedelta = calls.LEASE) -> None:
        """Call `handle` with each article until `stop()`. An exception fails the article, otherwise it is acknowledged.

        Leases are renewed between articles: `lease` must be more than twice the time of the slowest article.
        Raises one of `AWAY` if the server is away after `stop()`: unacknowledged articles come again.
        """
        for articles in self.batches(batch, lease):
            self._work_off(articles, handle, lease)

    def patiently(self, call: Callable[[], Result]) -> Result:
        """Return `call()`, repeated while the server is away; after `stop()` at most once more."""
        for attempt in itertools.count():
            try:
                return call()
            except AWAY as error:
                self.close()
                if self._stopped:
                    raise
                log.warning("the database is away, trying again: %s", error)
                self._sleep(calls.back_off(attempt))
        raise AssertionError

    def _work_off(self, articles: list[Article], handle: Callable[[Article], object], lease: timedelta) -> None:
        work = calls.work_off(articles, lease, lambda: self._stopped)
        step = calls.advance(work, None)
        interruption: BaseException | None = None
        while step is not None:
            answer: object = None
            if not isinstance(step, Article):
                answer = self.patiently(functools.partial(self._ask, *step))
            else:
                try:
                    handle(step)
                except Exception as error:  # noqa: BLE001 - it is stored with the article
                    log.warning("article %s failed: %r", step.md5, error)
                    answer = error
                except BaseException as error:  # noqa: BLE001 - raised below, after the articles are released
                    self.stop()
                    answer = interruption = error
            step = calls.advance(work, answer)
        if interruption is not None:
            raise interruption

    def _ask(self, query: str, arguments: Sequence[object]) -> Any:
        row = self._connect().execute(query.encode(), arguments).fetchone()
        assert row is not None
        return row[0]

    def _connect(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._conninfo, **calls.CONNECT)
            self._connection.execute(calls.LISTEN.encode())
        return self._connection

    def _wait(self) -> None:
        until = time.monotonic() + self._poll_seconds
        while not self._stopped and (left := until - time.monotonic()) > 0:
            if list(self._connect().notifies(timeout=min(left, NAP_SECONDS), stop_after=1)):
                return

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopped and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, NAP_SECONDS))
