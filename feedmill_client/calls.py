"""An article as a consumer gets it, and the order of calls for a batch of articles. No I/O."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Literal
from uuid import UUID


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
    """The md5 of the article that came first with the same story (FEEDMILL_DUPLICATES)."""
    revision: int
    """Grows with every change of the text. Never let a lower one overwrite a higher one in your index."""
    retry_count: int
    """Failures reported of this text."""
    expiries: int
    """Leases on this text that expired."""
    created_at: datetime
    claimed_until: datetime
    lease_id: UUID
    # Older servers give out none of what follows.
    detected_language: str | None = None
    """The text's own (ISO 639-1), whatever the feed says in `language`; `und`: the text does not tell it."""
    language_confidence: float | None = None
    topic: str | None = None
    topic_confidence: float | None = None
    entities: list[dict[str, Any]] | None = None
    """People, organisations, places, technologies: `name`, `kind`, `id` at Wikidata, `mentions`; None: not known."""
    duplicate_kind: str | None = None
    """Why `duplicate_of` is set: `address`, `title` or `text`."""
    duplicate_score: float | None = None
    """How much of the text is the same, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Call:
    """A method of the client, to be called with these arguments."""

    method: Literal["ack", "fail", "renew", "release"]
    arguments: tuple[Any, ...]


LEASE = timedelta(minutes=5)
ACK_SECONDS = 1.0
"""Finished articles are acknowledged together, at the latest after this time: a commit for each would cost much."""

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
            articles = yield Call("renew", (articles, lease))
            continue
        error: BaseException | None = yield articles[0]
        if error is not None and not isinstance(error, Exception):
            break  # interrupted: the article is not to blame
        article, *articles = articles
        if error is None:
            done.append(article)
        else:
            yield Call("fail", ([article], error))
        if done and monotonic() - acked_at > ACK_SECONDS:
            yield Call("ack", (done,))
            done, acked_at = [], monotonic()
    if done:
        yield Call("ack", (done,))
    if articles:
        yield Call("release", (articles,))


def describe(error: str | BaseException) -> str:
    """Return the error as it is stored with an article."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return text[:1000].replace("\0", "").encode("utf-8", "backslashreplace").decode()  # PostgreSQL takes no NUL


def back_off(attempt: int) -> float:
    """Return the seconds to wait after failed tries in a row: about 0.2, 0.4, 0.8, … 10."""
    return random.uniform(0.5, 1.0) * min(10.0, 0.2 * 2.0 ** min(attempt, 10))  # noqa: S311 - it only spreads
