"""The reader: takes the bytes of a feed, gives its entries. Pure: no I/O, no network, no clock (`now` is given).

A tier is a function to `RawFeed`; `_read` is the one place that chooses. Tiers change speed, never the answer: what
the strict tier does not read exactly as the lenient one does, it declines; what neither can read goes to salvage.
Whatever the bytes are, the answer is a `ParsedFeed` or a `ParseError`. What becomes of an entry is told in `entries`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from services.fetcher.parse.document import prepare
from services.fetcher.parse.entries import MAX_TITLE_CHARS, build_entries, read_language
from services.fetcher.parse.facts import read_facts
from services.fetcher.parse.formats.jsonfeed import read_json, save_json
from services.fetcher.parse.formats.lenient import read_lenient
from services.fetcher.parse.formats.salvage import read_salvage
from services.fetcher.parse.formats.strict import read_strict
from services.fetcher.parse.model import (
    Deadline,
    Declined,
    FeedFacts,
    NotAFeed,
    OutOfTime,
    ParsedFeed,
    ParseError,
    RawFacts,
    RawFeed,
    Unparseable,
    check_time,
)
from services.fetcher.parse.text import clean_title
from services.fetcher.parse.text.charset import decode
from services.fetcher.parse.text.links import absolute
from shared.wire.results import FeedInfo

__all__ = ["Deadline", "FeedFacts", "NotAFeed", "OutOfTime", "ParseError", "ParsedFeed", "Unparseable", "parse_feed"]


def parse_feed(
    body: bytes,
    *,
    url: str,
    content_type: str | None,
    now: datetime,
    max_entries: int = 5000,
    keep_html: bool = False,
    deadline: Deadline | None = None,
) -> ParsedFeed:
    """Return the feed in `body`.

    Args:
        body: decompressed, and within the fetcher's limit: time and memory grow with its length.
        url: where it came from; the last resort for relative links.
        content_type: the HTTP header; its charset counts, its media type does not (servers get it wrong).
        now: aware; what a date in the far future is clamped to.
        max_entries: of more than these the newest are kept.
        keep_html: bodies that are HTML are given as that, too, safe to show (`markup`).
        deadline: says whether the time is up; asked all along. A thread can't be stopped, so the reader stops itself.

    Raises:
        NotAFeed: it is something else; the message says what.
        Unparseable: it is a feed that cannot be read, or not in time; the message says why.
    """
    decoded = decode(body, content_type)
    text = decoded.text
    if "\ufeff" in text:  # files put together have marks in the middle
        text = text.replace("\ufeff", "")
    text = text.lstrip("\x00 \t\r\n")
    if not text:
        raise NotAFeed("an empty body")
    tier, raw = _read(text, deadline)
    about = _about(raw, url)
    bases = tuple(filter(None, (about.site_url, url)))
    entries, notes = build_entries(
        raw,
        bases=bases,
        language=about.language,
        now=now,
        max_entries=max_entries,
        keep_html=keep_html,
        deadline=deadline,
    )
    return ParsedFeed(
        feed=about,
        hints=raw.hints,
        tier=tier,
        entries=entries,
        warnings=(*decoded.warnings, *raw.warnings, *notes),
        facts=_settle_facts(raw.facts, bases[::-1]),
    )


def _about(raw: RawFeed, url: str) -> FeedInfo:
    title = clean_title(raw.title)[:MAX_TITLE_CHARS]
    site_url = absolute(raw.link, url)
    return FeedInfo(title=title or None, site_url=site_url or None, language=read_language(raw.language))


def _read(text: str, deadline: Deadline | None) -> tuple[str, RawFeed]:
    """Return the name of the tier that read this text, and what it read."""
    if text[0] in "{[":
        return _read_json(text, deadline)
    try:
        return _read_document(text, deadline)
    except OutOfTime:
        raise
    except ParseError:
        saved = read_salvage(text, lambda source: _read_document(source, deadline)[1], deadline)
        if saved is None:
            raise
        return "salvage", saved


def _read_json(text: str, deadline: Deadline | None) -> tuple[str, RawFeed]:
    try:
        return "json", read_json(text, deadline)
    except OutOfTime:
        raise
    except Unparseable:
        saved = save_json(text, deadline)
        if saved is None:
            raise
        return "salvage", saved


def _read_document(text: str, deadline: Deadline | None) -> tuple[str, RawFeed]:
    document = prepare(text, deadline)
    check_time(deadline)
    try:
        tier, raw = "strict", read_strict(document, deadline)
    except Declined:
        check_time(deadline)
        tier, raw = "lenient", read_lenient(document, deadline)
    return tier, replace(raw, facts=read_facts(document.source))


def _settle_facts(facts: RawFacts, bases: tuple[str, ...]) -> FeedFacts:
    """Return the facts with absolute addresses; one that is no http(s) address is left out."""
    return replace(
        facts,
        self_url=absolute(facts.self_url, *bases),
        hubs=tuple(filter(None, (absolute(hub, *bases) for hub in facts.hubs))),
        icon=absolute(facts.icon, *bases),
        image=absolute(facts.image, *bases),
    )
