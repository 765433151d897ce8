"""The client that blocks."""

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

from feedmill_client import steps
from feedmill_client.article import AWAY, Article

log = logging.getLogger(__name__)
Result = TypeVar("Result")

NAP_SECONDS = 0.25
"""How late a `stop()` is noticed at most while nothing comes."""


class PendingArticles:
    """One consumer on one connection, which is made when it is needed, and again when it was lost. A context manager.

    Every call raises one of `AWAY` if the server is away, and may then be made again: `patiently` does.

    Args:
        conninfo: a PostgreSQL URL.
        poll_seconds: look again after this time if no notification comes (PgBouncer lets none through).
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
        """End `batches` and `run` after the article in hand. For signal handlers and other threads too."""
        self._stopped = True

    def claim(self, most: int = 50, lease: timedelta = steps.LEASE) -> list[Article]:
        """Claim up to `most` articles, the oldest first."""
        with self._connect().cursor(row_factory=class_row(Article)) as cursor:
            return cursor.execute(steps.CLAIM.encode(), [most, lease]).fetchall()

    def ack(self, articles: Sequence[Article]) -> int:
        """Say that they are done; return how many went: those whose text has changed meanwhile stay pending."""
        return int(self._ask(*steps.ack(articles)))

    def fail(self, articles: Sequence[Article], error: str | Exception, retry_after: timedelta | None = None) -> int:
        """Count a failure: they come again after a pause, or die. Return how many were still ours."""
        return int(self._ask(*steps.fail(articles, error, retry_after)))

    def renew(self, articles: Sequence[Article], lease: timedelta = steps.LEASE) -> list[Article]:
        """Let their lease run from now; return those that are still ours."""
        held = self._ask(*steps.renew(articles, lease))
        return [article for article in articles if article.md5 in held]

    def release(self, articles: Sequence[Article]) -> int:
        """Give them back for others to have at once; return how many were still ours."""
        return int(self._ask(*steps.release(articles)))

    def batches(self, most: int = 50, lease: timedelta = steps.LEASE) -> Iterator[list[Article]]:
        """Yield claimed articles until `stop()`; wait while there are none, and while the server is away."""
        with contextlib.suppress(*AWAY):  # stopped while it was away
            while not self._stopped:
                if articles := self.patiently(lambda: self.claim(most, lease)):
                    yield articles
                else:
                    self.patiently(self._wait)

    def run(self, handle: Callable[[Article], object], *, batch: int = 50, lease: timedelta = steps.LEASE) -> None:
        """Hand each article to `handle` until `stop()`. What it raises fails the article; otherwise it is done.

        Leases are renewed between articles, not within one: `lease` must be more than twice what the longest takes.
        Raises one of `AWAY` if after `stop()` the server is away: what was done and not acknowledged comes again.
        """
        for articles in self.batches(batch, lease):
            self._work_off(articles, handle, lease)

    def patiently(self, call: Callable[[], Result]) -> Result:
        """Return `call()`, made again and again while the server is away; after `stop()` once more at most."""
        for attempt in itertools.count():
            try:
                return call()
            except AWAY as error:
                self.close()
                if self._stopped:
                    raise
                log.warning("the database is away, trying again: %s", error)
                self._sleep(steps.back_off(attempt))
        raise AssertionError

    def _work_off(self, articles: list[Article], handle: Callable[[Article], object], lease: timedelta) -> None:
        work = steps.work_off(articles, lease, lambda: self._stopped)
        step = steps.advance(work, None)
        interruption: BaseException | None = None
        while step is not None:
            answer: object = None
            if not isinstance(step, Article):
                answer = self.patiently(functools.partial(self._ask, *step))
            else:
                try:
                    handle(step)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is stored with the article
                    log.warning("article %s failed: %r", step.md5, error)
                    answer = error
                except BaseException as error:  # noqa: BLE001 - raised below, once the articles were given back
                    self.stop()
                    answer = interruption = error
            step = steps.advance(work, answer)
        if interruption is not None:
            raise interruption

    def _ask(self, query: str, arguments: Sequence[object]) -> Any:
        row = self._connect().execute(query.encode(), arguments).fetchone()
        assert row is not None
        return row[0]

    def _connect(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._conninfo, **steps.CONNECT)
            self._connection.execute(steps.LISTEN.encode())
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
