"""An article as a consumer gets it, the SQL calls, and their order for a batch of articles. No I/O."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from time import monotonic
from typing import Any
from uuid import UUID

import psycopg

AWAY = (
    psycopg.OperationalError,  # connection lost or refused, shutdown, deadlock, time-out
    psycopg.InterfaceError,  # the connection is closed
    psycopg.errors.ReadOnlySqlTransaction,  # a fail-over: a new connection finds the primary
)
"""The server is away or can't serve now. Every call of this client may be tried again after these."""


@dataclass(frozen=True, slots=True)
class Article:
    """A claimed article: no other consumer gets it before `claimed_until`."""

    md5: str
    feed_id: int
    entry_id: str
    url: str
    title: str
    body: str
    html: str | None
    """The body as HTML that is safe to show, where fetchers keep it (FEEDMILL_KEEP_HTML)."""
    content_quality: str
    content_hash: str
    published_at: datetime | None
    updated_at: datetime | None
    author: str | None
    categories: list[str]
    enclosures: list[dict[str, Any]]
    language: str | None
    flags: list[str]
    duplicate_of: str | None
    """The md5 of the same article that came first under another address (FEEDMILL_DUPLICATES)."""
    revision: int
    """Grows with every change of the text. Never let a lower one overwrite a higher one in your index."""
    retry_count: int
    """Failures reported of this text."""
    expiries: int
    """Leases on this text that expired."""
    created_at: datetime
    claimed_until: datetime
    lease_id: UUID


Call = tuple[str, Sequence[object]]

LEASE = timedelta(minutes=5)
ACK_SECONDS = 1.0
"""Finished articles are acknowledged together, at the latest after this time: a commit for each would cost much."""

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
CLAIM = f"SELECT {', '.join(field.name for field in fields(Article))} FROM claim_pending_articles(%s, %s)"  # noqa: S608


def ack(articles: Sequence[Article]) -> Call:
    """Return the call that acknowledges these texts: an article whose text has changed stays."""
    return "SELECT ack_articles(%s::text[], %s::text[])", [_md5s(articles), [a.content_hash for a in articles]]


def fail(articles: Sequence[Article], error: str | BaseException, retry_after: timedelta | None = None) -> Call:
    """Return the call that counts a failure, unless another consumer has the article by now."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    query = "SELECT count(*) FROM fail_articles(%s::text[], %s, %s::uuid[], retry_after => %s)"
    return query, [_md5s(articles), text.replace("\0", ""), _leases(articles), retry_after]  # PostgreSQL takes no NUL


def renew(articles: Sequence[Article], lease: timedelta) -> Call:
    """Return the call that extends the leases; it answers with the md5s that this consumer still holds."""
    query = "SELECT coalesce(array_agg(md5), '{}') FROM renew_articles(%s::text[], %s, %s::uuid[]) AS md5"
    return query, [_md5s(articles), lease, _leases(articles)]


def release(articles: Sequence[Article]) -> Call:
    """Return the call that ends the leases, unless another consumer has the article by now."""
    return "SELECT release_articles(%s::text[], %s::uuid[])", [_md5s(articles), _leases(articles)]


def _md5s(articles: Sequence[Article]) -> list[str]:
    return [article.md5 for article in articles]


def _leases(articles: Sequence[Article]) -> list[object]:
    return list({article.lease_id for article in articles})


Work = Generator[Call | Article, Any, None]


def advance(work: Work, answer: object) -> Call | Article | None:
    """Return the next step, or None at the end."""
    try:
        return work.send(answer)
    except StopIteration:
        return None


def work_off(articles: list[Article], lease: timedelta, is_stopped: Callable[[], bool]) -> Work:
    """Yield the next step: a call (send its answer) or an article to handle (send the exception, or None)."""
    renewed_at = acked_at = monotonic()
    done: list[Article] = []
    while articles and not is_stopped():
        if monotonic() - renewed_at > lease.total_seconds() / 2:
            renewed_at = monotonic()
            held = yield renew(articles, lease)
            articles = [article for article in articles if article.md5 in held]
            continue
        error: BaseException | None = yield articles[0]
        if error is not None and not isinstance(error, Exception):
            break  # interrupted: the article is not to blame
        article, *articles = articles
        if error is None:
            done.append(article)
        else:
            yield fail([article], error)
        if done and monotonic() - acked_at > ACK_SECONDS:
            yield ack(done)
            done, acked_at = [], monotonic()
    if done:
        yield ack(done)
    if articles:
        yield release(articles)


def back_off(attempt: int) -> float:
    """Return the seconds to wait after failed tries in a row: about 0.2, 0.4, 0.8, … 10."""
    return random.uniform(0.5, 1.0) * min(10.0, 0.2 * 2.0 ** min(attempt, 10))  # noqa: S311 - it only spreads
