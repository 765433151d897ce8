"""The reader: from the bytes of a feed to its entries. Pure: no I/O, no network, no clock (`now` is an argument).

    bytes -> text (text/charset) -> RawFeed (formats) -> ParsedFeed (entries)

Whatever the bytes are, the answer is a `ParsedFeed` or a `ParseError`. `formats` lists the formats and the tiers that
read them; a new format is added there. `entries` states the rules by which an entry becomes an article. `known` leaves
out what need not be read again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial

from services.fetcher.parse.entries import build_entries, read_info
from services.fetcher.parse.formats import read_feed
from services.fetcher.parse.known import Found, Reading, Rules, read_unknown
from services.fetcher.parse.model import (
    Deadline,
    FeedFacts,
    NotAFeed,
    OutOfTime,
    ParsedFeed,
    ParseError,
    RawFeed,
    Unparseable,
)
from services.fetcher.parse.text.charset import decode
from services.fetcher.parse.text.links import absolute
from shared.wire.jobs import DateOrder

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
    known: bytes | None = None,
    date_order: DateOrder | None = None,
) -> ParsedFeed:
    """Return the feed in `body`.

    Args:
        body: the decompressed body. The caller bounds its length, since time and memory grow with it.
        url: the address of the feed. Relative links are resolved against it if the feed gives no other base.
        content_type: the HTTP header. Its charset counts; its media type does not, since servers often get it wrong.
        now: the time of the fetch, aware. Dates in the far future become this one.
        max_entries: of a larger feed the newest entries are kept.
        keep_html: HTML bodies are also returned as HTML that is safe to show (`text.markup`).
        deadline: returns whether the time is up. A thread can't be stopped, so the reader asks often and stops itself.
        known: digests from an earlier reading (`FetchFeed.known`); these entries are left out if that changes nothing
            else (package `known`). None: all entries are read, and no digests are returned.
        date_order: what is known to stand first in dates such as 03/04/2026 (`FetchFeed.date_order`).

    Raises:
        NotAFeed: the body is something else; the message says what.
        Unparseable: the feed can't be read, or not in time; the message says why.
    """
    decoded = decode(body, content_type)
    text = decoded.text
    if "\ufeff" in text:  # files put together have marks in the middle
        text = text.replace("\ufeff", "")
    text = text.lstrip("\x00 \t\r\n")
    if not text:
        raise NotAFeed("an empty body")
    finish = partial(
        _finish,
        url=url,
        now=now,
        max_entries=max_entries,
        keep_html=keep_html,
        deadline=deadline,
        date_order=date_order,
    )
    if known is None:
        reading = Reading(finish(*read_feed(text, deadline)), b"", b"")
    else:
        reading = read_unknown(text, known, finish, Rules(url, max_entries, keep_html), deadline)
    tier, raw, about, built = reading.found
    return ParsedFeed(
        feed=about,
        hints=raw.hints,
        format=raw.format,
        tier=tier,
        entries=built.entries,
        warnings=(*decoded.warnings, *raw.warnings, *built.warnings),
        facts=_absolute_facts(raw.facts, tuple(filter(None, (url, about.site_url)))),
        known=reading.known,
        digests=reading.digests,
        date_order=built.date_order,
    )


def _finish(
    tier: str,
    raw: RawFeed,
    *,
    url: str,
    now: datetime,
    max_entries: int,
    keep_html: bool,
    deadline: Deadline | None,
    date_order: DateOrder | None,
) -> Found:
    about = read_info(raw, url)
    built = build_entries(
        raw,
        bases=tuple(filter(None, (about.site_url, url))),
        language=about.language,
        now=now,
        max_entries=max_entries,
        keep_html=keep_html,
        deadline=deadline,
        date_order=date_order,
    )
    return Found(tier, raw, about, built)


def _absolute_facts(facts: FeedFacts, bases: tuple[str, ...]) -> FeedFacts:
    """Return the facts with absolute addresses. An address that is not http(s) becomes ""."""
    return replace(
        facts,
        self_url=absolute(facts.self_url, *bases),
        hubs=tuple(filter(None, (absolute(hub, *bases) for hub in facts.hubs))),
        icon=absolute(facts.icon, *bases),
        image=absolute(facts.image, *bases),
    )
