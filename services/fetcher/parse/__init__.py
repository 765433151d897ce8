"""The reader: takes the bytes of a feed, gives its entries. Pure: no I/O, no network, no clock (`now` is given).

A tier is a function to `RawFeed`; `_read` is the one place that chooses. Tiers change speed, never the answer: what
the strict tier does not read exactly as the lenient one does, it declines; what neither can read goes to salvage.
Whatever the bytes are, the answer is a `ParsedFeed` or a `ParseError`. What becomes of an entry is told in `entries`.
"""

from __future__ import annotations

from datetime import datetime

from services.fetcher.parse.charset import decode
from services.fetcher.parse.document import prepare
from services.fetcher.parse.entries import MAX_TITLE_CHARS, build_entries, read_language
from services.fetcher.parse.jsonfeed import read_json
from services.fetcher.parse.lenient import read_lenient
from services.fetcher.parse.links import absolute
from services.fetcher.parse.model import Declined, NotAFeed, ParsedFeed, ParseError, RawFeed, Unparseable
from services.fetcher.parse.salvage import read_salvage
from services.fetcher.parse.strict import read_strict
from services.fetcher.parse.text import clean_title
from shared.messages import FeedInfo

__all__ = ["NotAFeed", "ParseError", "ParsedFeed", "Unparseable", "parse_feed"]


def parse_feed(
    body: bytes, *, url: str, content_type: str | None, now: datetime, max_entries: int = 5000
) -> ParsedFeed:
    """Return the feed in `body`.

    Args:
        body: decompressed, and within the fetcher's limit: time and memory grow with its length.
        url: where it came from; the last resort for relative links.
        content_type: the HTTP header; its charset counts, its media type does not (servers get it wrong).
        now: aware; what a date in the far future is clamped to.
        max_entries: of more than these the newest are kept.

    Raises:
        NotAFeed: it is something else; the message says what.
        Unparseable: it is a feed that cannot be read; the message says why.
    """
    decoded = decode(body, content_type)
    text = decoded.text.lstrip("\ufeff\x00 \t\r\n")
    if not text:
        raise NotAFeed("an empty body")
    tier, raw = _read(text)
    site_url = absolute(raw.link, url)
    language = read_language(raw.language)
    entries, notes = build_entries(
        raw, bases=tuple(filter(None, (site_url, url))), language=language, now=now, max_entries=max_entries
    )
    title = clean_title(raw.title)[:MAX_TITLE_CHARS]
    return ParsedFeed(
        feed=FeedInfo(title=title or None, site_url=site_url or None, language=language),
        hints=raw.hints,
        tier=tier,
        entries=entries,
        warnings=(*decoded.warnings, *raw.warnings, *notes),
    )


def _read(text: str) -> tuple[str, RawFeed]:
    """Return the name of the tier that read this text, and what it read."""
    if text[0] in "{[":
        return "json", read_json(text)
    try:
        return _read_document(text)
    except ParseError:
        saved = read_salvage(text, lambda source: _read_document(source)[1])
        if saved is None:
            raise
        return "salvage", saved


def _read_document(text: str) -> tuple[str, RawFeed]:
    document = prepare(text)
    try:
        return "strict", read_strict(document)
    except Declined:
        return "lenient", read_lenient(document)
