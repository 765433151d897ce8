"""The blocking client."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import psycopg

from feedmill_client import calls, sql
from feedmill_client.calls import Article
from feedmill_client.loop import NAP_SECONDS, Consumer


class PendingArticles(Consumer):
    """One consumer on one connection, which it opens when needed, and again after a loss. A context manager.

    Every call raises one of `AWAY` if the server is away. It may then be repeated, as `patiently` does.

    Args:
        conninfo: a PostgreSQL URL.
        poll_seconds: how often to look without a notification (PgBouncer passes none on).
    """

    AWAY = sql.AWAY

    def __init__(self, conninfo: str, *, poll_seconds: float = 5.0) -> None:
        super().__init__()
        self._conninfo = conninfo
        self._poll_seconds = poll_seconds
        self._connection: psycopg.Connection | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def claim(self, most: int = 50, lease: timedelta = calls.LEASE) -> list[Article]:
        """Claim up to `most` articles, the oldest first."""
        with self._connect().cursor(row_factory=sql.read_articles) as cursor:
            return cursor.execute(sql.CLAIM.encode(), [most, lease]).fetchall()

    def ack(self, articles: Sequence[Article]) -> int:
        """Acknowledge and remove them; return how many. Articles whose text has changed meanwhile stay pending."""
        return int(self._ask(*sql.ack(articles)))

    def fail(self, articles: Sequence[Article], error: str | Exception, retry_after: timedelta | None = None) -> int:
        """Count a failure: they come again after a pause, or become dead. Return how many this consumer still held."""
        return int(self._ask(*sql.fail(articles, error, retry_after)))

    def renew(self, articles: Sequence[Article], lease: timedelta = calls.LEASE) -> list[Article]:
        """Start their lease anew; return the articles that this consumer still holds."""
        held = self._ask(*sql.renew(articles, lease))
        return [article for article in articles if article.md5 in held]

    def release(self, articles: Sequence[Article]) -> int:
        """Release them for other consumers; return how many this consumer still held."""
        return int(self._ask(*sql.release(articles)))

    def _ask(self, query: str, arguments: Sequence[object]) -> Any:
        row = self._connect().execute(query.encode(), arguments).fetchone()
        assert row is not None
        return row[0]

    def _connect(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._conninfo, **sql.CONNECT)
            self._connection.execute(sql.LISTEN.encode())
        return self._connection

    def _wait(self, most: int, lease: timedelta) -> list[Article]:
        until = time.monotonic() + self._poll_seconds
        while not self._stopped and (left := until - time.monotonic()) > 0:
            if list(self._connect().notifies(timeout=min(left, NAP_SECONDS), stop_after=1)):
                break
        return []
