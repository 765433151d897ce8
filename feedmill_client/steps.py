"""The calls, and what to do with a batch of articles in which order. No I/O."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import fields
from datetime import timedelta
from time import monotonic
from typing import Any

from feedmill_client.article import Article

Call = tuple[str, Sequence[object]]

LEASE = timedelta(minutes=5)
ACK_SECONDS = 1.0
"""What is done is acknowledged after this time at the latest: a commit for each article would be dear."""

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
    """With the hash of the text that was worked on: the same article with another text stays."""
    return "SELECT ack_articles(%s::text[], %s::text[])", [_md5s(articles), [a.content_hash for a in articles]]


def fail(articles: Sequence[Article], error: str | BaseException, retry_after: timedelta | None = None) -> Call:
    """Under the leases that we have: what was given to somebody else meanwhile is not counted against them."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    query = "SELECT count(*) FROM fail_articles(%s::text[], %s, %s::uuid[], retry_after => %s)"
    return query, [_md5s(articles), text.replace("\0", ""), _leases(articles), retry_after]  # PostgreSQL takes no NUL


def renew(articles: Sequence[Article], lease: timedelta) -> Call:
    """Answers with the md5s that are still ours."""
    query = "SELECT coalesce(array_agg(md5), '{}') FROM renew_articles(%s::text[], %s, %s::uuid[]) AS md5"
    return query, [_md5s(articles), lease, _leases(articles)]


def release(articles: Sequence[Article]) -> Call:
    """Under the leases that we have."""
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
    """Yield what is to be done: a call (send its answer) or an article to handle (send what it raised, or None)."""
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
    """Return the seconds to wait when so many tries in a row have failed: about 0.2, 0.4, 0.8, … 10."""
    return random.uniform(0.5, 1.0) * min(10.0, 0.2 * 2.0 ** min(attempt, 10))  # noqa: S311 - it only spreads
