"""Small feeds for the reader's tests, and the call that reads them."""

from __future__ import annotations

from datetime import UTC, datetime

from services.fetcher.parse import ParsedFeed, parse_feed
from services.fetcher.parse.document import prepare
from services.fetcher.parse.lenient import read_lenient
from services.fetcher.parse.model import RawFeed
from services.fetcher.parse.strict import read_strict
from shared.messages import Entry

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
URL = "https://example.org/feeds/news.xml"


def read(body: str | bytes, content_type: str | None = None, max_entries: int = 5000) -> ParsedFeed:
    raw = body.encode() if isinstance(body, str) else body
    return parse_feed(raw, url=URL, content_type=content_type, now=NOW, max_entries=max_entries)


def rss(items: str, channel: str = "<title>News</title><link>https://example.org/</link>") -> str:
    return f'<?xml version="1.0"?><rss version="2.0"><channel>{channel}{items}</channel></rss>'


def item(inner: str) -> Entry:
    (entry,) = read(rss(f"<item>{inner}</item>")).entries
    return entry


def atom(inner: str, attributes: str = "") -> str:
    return f'<feed xmlns="http://www.w3.org/2005/Atom" {attributes}><title>News</title>{inner}</feed>'


def read_by_both(text: str) -> tuple[RawFeed, RawFeed]:
    """Return what the strict and the lenient tier read; raise Declined if the strict one declines."""
    document = prepare(text)
    return read_strict(document), read_lenient(document)
