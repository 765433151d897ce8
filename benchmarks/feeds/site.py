"""One feed of the benchmarks: its entries, what it prints at the moment, and its answers."""

from __future__ import annotations

import gzip
from datetime import datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from random import Random

from benchmarks.feeds.styles import Page, Style
from local.farm.articles import Article, write_article
from local.farm.http import Reply, Request, join_fields

SPACING = timedelta(hours=3)
LENGTHS = (0.4, 0.7, 0.7, 1.0, 1.0, 1.0, 1.6, 2.4)
"""The lengths of articles, relative to the feed's mean."""


class Site:
    """A feed that lists its `entries` newest articles. It answers honestly to ETag and Last-Modified.

    Args:
        text_length: characters of text in an article, on average.
        edition: a part of every link and entry id.
        opened_at: the feed's last change before the first `publish`.
    """

    def __init__(
        self, name: str, style: Style, *, entries: int, text_length: int, edition: str, opened_at: datetime
    ) -> None:
        self._name = name
        self._style = style
        self._text_length = text_length
        self._edition = edition
        self._changed_at = opened_at
        self._tick = self._published = 0
        self._listed: list[Article] = []
        self.urls: list[str] = []
        """The links of all articles so far."""
        self.publish(entries, first=True)

    def publish(self, number: int, *, first: bool = False) -> None:
        """List so many new articles; afterwards the oldest ones are gone from the feed."""
        new = [self._write(number - place if first else 0) for place in range(number)]
        self.urls += [article.url for article in new]
        self._listed = [*reversed(new), *self._listed][: max(number, len(self._listed))]
        self._change()

    def tick(self) -> None:
        """Print something else in every entry. No article changes by it."""
        self._tick += 1
        self._change()

    def answer(self, request: Request) -> Reply:
        """Return the feed, or 304."""
        asked = request.headers.get("if-none-match")
        if asked == self._etag or (asked is None and request.headers.get("if-modified-since") == self._last_modified):
            return self._not_modified
        return self._compressed if "gzip" in request.headers.get("accept-encoding", "") else self._plain

    def _write(self, age: int) -> Article:
        number = self._published
        self._published += 1
        return write_article(
            self._name,
            number,
            published_at=self._changed_at - age * SPACING,
            text_length=int(self._text_length * Random(f"{self._name}/{number}").choice(LENGTHS)),
            edition=self._edition,
        )

    def _change(self) -> None:
        self._changed_at += timedelta(minutes=1)
        page = Page(self._name, self._listed, self._changed_at, self._tick)
        body = self._style.render(page, self._style.name).encode()
        self._etag = f'"{self._published}-{self._tick}"'
        self._last_modified = format_datetime(self._changed_at, usegmt=True)
        about = [f"ETag: {self._etag}", f"Last-Modified: {self._last_modified}", "Vary: Accept-Encoding"]
        content = [f"Content-Type: {self._style.content_type}", *about]
        packed = gzip.compress(body, compresslevel=6, mtime=0)
        self._not_modified = Reply(HTTPStatus.NOT_MODIFIED, join_fields(*about))
        self._plain = Reply(HTTPStatus.OK, join_fields(*content, f"Content-Length: {len(body)}"), body)
        fields = join_fields(*content, "Content-Encoding: gzip", f"Content-Length: {len(packed)}")
        self._compressed = Reply(HTTPStatus.OK, fields, packed)
