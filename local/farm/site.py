"""How one feed of the farm answers. Knows no socket and no clock; `Router` guards it with its lock."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from enum import StrEnum
from functools import lru_cache
from http import HTTPStatus

from local.farm.articles import Article, write_article
from local.farm.documents import CONTENT_TYPES, HTML_PAGE, render, spoil
from local.farm.http import Reply, Request, join_fields, make_reply
from local.farm.specs import FeedKind, FeedSpec

_ENTITY_TAG = re.compile(r'(?:W/)?("[^"]*")')
_ARTICLE_SPACING = timedelta(hours=3)
_FIRST_AGE = timedelta(hours=1)
"""The first issue is so old when the farm opens: later Last-Modified values have room to differ."""


class Freshness(StrEnum):
    """What becomes of a request's validators."""

    HONEST = "honest"
    """304 if and only if the client has the current state."""
    ALWAYS_304 = "always_304"
    """304 to every request that carries a validator, whatever it says."""
    ALWAYS_200 = "always_200"
    """Validators are ignored."""


@dataclass(slots=True)
class Issue:
    """One state of a feed: what it lists until the next wave, rendered."""

    number: int
    articles: tuple[Article, ...]
    """Newest first."""
    etag: str
    last_modified: datetime
    not_modified: Reply
    plain: Reply
    compressed: Reply | None
    served: bool = False
    """True once some client has been sent all of it, or a 304 that says that it has it."""

    def mark_served(self) -> None:
        """Note that some client has it."""
        self.served = True


_FIXED_REPLIES = {
    FeedKind.ERROR_500: make_reply(HTTPStatus.INTERNAL_SERVER_ERROR, "The server is unwell.\n"),
    FeedKind.NOT_FOUND: make_reply(HTTPStatus.NOT_FOUND, "There is no such feed.\n"),
    FeedKind.GONE: make_reply(HTTPStatus.GONE, "The feed has ended.\n"),
    FeedKind.HTML: make_reply(HTTPStatus.OK, HTML_PAGE, content_type="text/html"),
}
_AILING = make_reply(HTTPStatus.INTERNAL_SERVER_ERROR, "The server is starting.\n")


class Site:
    """One feed: its current issue, all that it ever published, and how often it was asked."""

    def __init__(self, spec: FeedSpec, *, edition: str, now: datetime) -> None:
        self.spec = spec
        self.requests = 0
        self.published: dict[str, str] = {}
        """Title by URL of every article that was ever listed."""
        self._edition = edition
        opened_at = now.replace(microsecond=0)
        articles = [
            self._write(number, opened_at - _FIRST_AGE - _ARTICLE_SPACING * (spec.items - number))
            for number in range(spec.items)
        ]
        self.issue = self._make_issue(0, articles, opened_at - _FIRST_AGE)
        self.adopt(self.issue)

    def next_issue(self, now: datetime) -> Issue:
        """Return what the feed lists after one more wave; nothing has changed until it is adopted."""
        spec, number = self.spec, self.issue.number + 1
        published_at = now.replace(microsecond=0)
        first = spec.items + self.issue.number * spec.items_per_wave
        fresh = [self._write(first + offset, published_at) for offset in range(spec.items_per_wave)]
        # Two waves within a second still differ in Last-Modified: a 304 to the older one would be a lie.
        modified_at = max(published_at, self.issue.last_modified + timedelta(seconds=1))
        return self._make_issue(number, [*fresh, *self.issue.articles], modified_at)

    def adopt(self, issue: Issue) -> None:
        """Publish this issue."""
        self.issue = issue
        self.published.update({article.url: article.title for article in issue.articles})

    def answer(self, request: Request, freshness: Freshness) -> Reply:
        """Return the reply to one more request for this feed."""
        self.requests += 1
        issue = self.issue
        trouble = self._trouble(request.port)
        if trouble:
            return trouble
        if self.spec.kind is not FeedKind.NO_VALIDATORS and _is_not_modified(request.headers, issue, freshness):
            return issue.not_modified._replace(
                on_delivered=issue.mark_served if freshness is Freshness.HONEST else None
            )
        if issue.compressed and _accepts_gzip(request.headers.get("accept-encoding", "")):
            return issue.compressed._replace(on_delivered=issue.mark_served)
        return issue.plain._replace(on_delivered=issue.mark_served)

    def _trouble(self, port: int) -> Reply | None:
        """Return what this request gets instead of the feed, if anything."""
        spec, reply = self.spec, _FIXED_REPLIES.get(self.spec.kind)
        if spec.kind is FeedKind.MOVED:
            location = f"Location: http://{spec.moved_host}:{port}{spec.moved_path}"
            reply = make_reply(HTTPStatus.MOVED_PERMANENTLY, "The feed has moved.\n", location)
        elif self.requests <= spec.failures:
            if spec.kind is FeedKind.RECOVERS:
                reply = _AILING
            elif spec.kind is FeedKind.THROTTLED:
                retry_after = f"Retry-After: {spec.retry_after_seconds}"
                reply = make_reply(HTTPStatus.TOO_MANY_REQUESTS, "Not so fast.\n", retry_after)
            elif spec.kind is FeedKind.TRUNCATED:
                reply = self.issue.plain._replace(body_sent=len(self.issue.plain.body) // 2)
        return reply

    def _write(self, number: int, published_at: datetime) -> Article:
        is_shared = number == 0 and self.spec.kind is FeedKind.SHARED
        return write_article(
            self.spec.shared_group if is_shared else self.spec.name,
            number,
            published_at=published_at,
            text_length=self.spec.text_length,
            edition=self._edition,
        )

    def _make_issue(self, number: int, articles: list[Article], modified_at: datetime) -> Issue:
        spec = self.spec
        newest = sorted(articles, key=lambda article: article.published_at, reverse=True)[: spec.window]
        document = render(spec.format, spec.name, newest, modified_at)
        body = (spoil(document) if spec.kind is FeedKind.MALFORMED else document).encode()
        etag = f'"{number}-{zlib.crc32(body):08x}"'
        if spec.kind is FeedKind.GZIP:
            etag = f"W/{etag}"
        about = [f"ETag: {etag}", f"Last-Modified: {format_datetime(modified_at, usegmt=True)}"]
        if spec.kind is FeedKind.NO_VALIDATORS:
            about = []
        if spec.kind is FeedKind.GZIP:
            about.append("Vary: Accept-Encoding")
        content = [f"Content-Type: {CONTENT_TYPES[spec.format]}", *about]
        compressed = _compressed_reply(body, content) if spec.kind is FeedKind.GZIP else None
        return Issue(
            number=number,
            articles=tuple(newest),
            etag=etag,
            last_modified=modified_at,
            not_modified=Reply(HTTPStatus.NOT_MODIFIED.value, join_fields(*about)),
            plain=Reply(HTTPStatus.OK.value, join_fields(*content, f"Content-Length: {len(body)}"), body),
            compressed=compressed,
        )


def _compressed_reply(body: bytes, content: list[str]) -> Reply:
    packed = gzip.compress(body, compresslevel=6, mtime=0)
    fields = join_fields(*content, "Content-Encoding: gzip", f"Content-Length: {len(packed)}")
    return Reply(HTTPStatus.OK.value, fields, packed)


def _is_not_modified(headers: Mapping[str, str], issue: Issue, freshness: Freshness) -> bool:
    if_none_match = headers.get("if-none-match")
    if_modified_since = headers.get("if-modified-since")
    if freshness is not Freshness.HONEST:
        is_conditional = if_none_match is not None or if_modified_since is not None
        return is_conditional and freshness is Freshness.ALWAYS_304
    if if_none_match is not None:
        tag = issue.etag.removeprefix("W/")
        return if_none_match == "*" or tag in _ENTITY_TAG.findall(if_none_match)
    return if_modified_since is not None and issue.last_modified <= _parse_date(if_modified_since)


@lru_cache(maxsize=4096)
def _parse_date(text: str) -> datetime:
    """Return the moment, or the beginning of time if it is none: an unreadable condition is no condition."""
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@lru_cache(maxsize=256)
def _accepts_gzip(accept_encoding: str) -> bool:
    for offer in accept_encoding.lower().split(","):
        coding, _, parameters = offer.partition(";")
        if coding.strip() in {"gzip", "x-gzip", "*"}:
            return not re.fullmatch(r"q=0(\.0*)?", parameters.strip())
    return False
