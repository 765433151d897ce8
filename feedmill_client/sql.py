"""The SQL of each call, and when the server is away. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any

import psycopg

from feedmill_client.calls import Article, describe

AWAY = (
    psycopg.OperationalError,  # connection lost or refused, shutdown, deadlock, time-out
    psycopg.InterfaceError,  # the connection is closed
    psycopg.errors.ReadOnlySqlTransaction,  # a fail-over: a new connection finds the primary
)
"""The server is away or can't serve now. Every call of this client may be tried again after these."""

Statement = tuple[str, Sequence[object]]

CONNECT: dict[str, Any] = {
    "autocommit": True,  # a claim must be committed before the work begins
    "prepare_threshold": None,  # works behind PgBouncer
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "feedmill consumer",
}
LISTEN = "LISTEN feedmill_pending"
CLAIM = "SELECT * FROM claim_pending_articles(%s, %s)"
_FIELDS = frozenset(field.name for field in fields(Article))


def read_articles(cursor: psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]) -> Callable[[Sequence[Any]], Article]:
    """Return what makes an article of a row (a row factory), whichever columns the server has."""
    names = [column.name for column in cursor.description or ()]
    places = [(place, name) for place, name in enumerate(names) if name in _FIELDS]
    return lambda row: Article(**{name: row[place] for place, name in places})


def ack(articles: Sequence[Article]) -> Statement:
    """Return the call that acknowledges these texts: an article whose text has changed stays."""
    return "SELECT ack_articles(%s::text[], %s::text[])", [_md5s(articles), [a.content_hash for a in articles]]


def fail(articles: Sequence[Article], error: str | BaseException, retry_after: timedelta | None = None) -> Statement:
    """Return the call that counts a failure, unless another consumer has the article by now."""
    query = "SELECT count(*) FROM fail_articles(%s::text[], %s, %s::uuid[], retry_after => %s)"
    return query, [_md5s(articles), describe(error), _leases(articles), retry_after]


def renew(articles: Sequence[Article], lease: timedelta) -> Statement:
    """Return the call that extends the leases; it answers with the md5s that this consumer still holds."""
    query = "SELECT coalesce(array_agg(md5), '{}') FROM renew_articles(%s::text[], %s, %s::uuid[]) AS md5"
    return query, [_md5s(articles), lease, _leases(articles)]


def release(articles: Sequence[Article]) -> Statement:
    """Return the call that ends the leases, unless another consumer has the article by now."""
    return "SELECT release_articles(%s::text[], %s::uuid[])", [_md5s(articles), _leases(articles)]


def _md5s(articles: Sequence[Article]) -> list[str]:
    return [article.md5 for article in articles]


def _leases(articles: Sequence[Article]) -> list[object]:
    return list({article.lease_id for article in articles})
