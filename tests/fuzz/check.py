"""The promises of the reader for any bytes. Both the hypothesis tests and the fuzzers check them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from services.fetcher.parse import ParsedFeed, ParseError, parse_feed
from services.fetcher.parse.dates import EARLIEST
from services.fetcher.parse.dates.loose import FUTURE_TOLERANCE
from services.fetcher.parse.document import prepare
from services.fetcher.parse.formats import FORMAT_OF_ROOT
from services.fetcher.parse.formats.lenient import read_lenient
from services.fetcher.parse.formats.strict import read_strict
from services.fetcher.parse.model import Declined
from services.fetcher.parse.text.charset import decode
from shared.wire.results import Entry

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
URL = "https://example.org/feeds/news.xml"
_HARMFUL = re.compile(
    r"\x00|<(?:script|style|svg|iframe|form|object)|<[^<>]*\son\w+=|<[^<>]*\s(?:href|src)=\"(?!https?://)"
)


def check(body: bytes, content_type: str | None = None) -> ParsedFeed | None:
    """Read `body`; fail if it raises anything but a ParseError, or if its answer breaks a promise."""
    try:
        parsed = parse_feed(body, url=URL, content_type=content_type, now=NOW, keep_html=True)
    except ParseError:
        return None
    assert parsed.tier in {"strict", "lenient", "json", "salvage"}
    for entry in parsed.entries:
        assert entry.title == " ".join(entry.title.split())
        for url in (entry.url, *(enclosure.url for enclosure in entry.enclosures)):
            assert url.startswith(("http://", "https://")) or not url
        for moment in (entry.published_at, entry.updated_at):
            assert moment is None or EARLIEST <= moment <= NOW + FUTURE_TOLERANCE
        assert not entry.html or not _HARMFUL.search(entry.html)
        entry.model_dump_json().encode()
        assert Entry.model_validate(entry.model_dump()) == entry  # as it was made without a check
    return parsed


def check_tiers(body: bytes) -> bool:
    """Fail if the strict tier reads something else than the lenient one; return whether it read it at all."""
    text = decode(body, None).text.replace("\ufeff", "").lstrip("\x00 \t\r\n")
    try:
        document = prepare(text, FORMAT_OF_ROOT)
        strict = read_strict(document)
    except (ParseError, Declined):
        return False
    assert strict == read_lenient(document)
    return True
