"""Small feeds for the reader's tests, and the call that reads them."""

from __future__ import annotations

from datetime import UTC, datetime

from services.fetcher.parse import ParsedFeed, parse_feed
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
