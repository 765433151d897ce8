"""The salvage tier: titles, links, dates and texts by expressions, out of what no other tier takes.

Two kinds of wreck come here. A *page around a feed* (a browser's view that was saved, an error handler that puts
everything into `<pre>`) is unwrapped, unescaped if need be, and what stands in it, XML or JSON, is read by the other
tiers. *Pieces* are all else: markup beyond a parser's patience. It is cut at each `<item>` or `<entry>`, and in each
piece the elements with a known name are looked for (`pieces`).

Everything here takes time in proportion to what it reads: quantifiers are possessive, or end where the next one can't
begin, and an end is looked for either once or within a bound.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from services.fetcher.parse.dates import read_date
from services.fetcher.parse.document import MAX_REFERENCES, cut_before, strip_illegal
from services.fetcher.parse.extents import find_entries, trim
from services.fetcher.parse.facts import read_facts, read_hints
from services.fetcher.parse.formats.jsonfeed import read_json, save_json
from services.fetcher.parse.formats.lenient.guarded_feedparser import MAX_ENTRIES
from services.fetcher.parse.formats.salvage.pieces import Piece, read_piece
from services.fetcher.parse.model import (
    Deadline,
    NotAFeed,
    OutOfTime,
    ParseError,
    RawEnclosure,
    RawEntry,
    RawFeed,
    Text,
    check_time,
)
from services.fetcher.parse.text import html_to_text

_NAMES = r"(?:rdf:rdf|rss|feed|channel)"
_ROOT = re.compile(rf"</?({_NAMES})(?=[\s>])", re.IGNORECASE)
_ESCAPED_ROOT = re.compile(rf"&(?:lt|#60|#x3c);/?{_NAMES}(?=[\s&])", re.IGNORECASE)
_PAGE = re.compile(r"\s*+(?:<\?xml[^<>]*+>\s*+)?+<(?:!doctype\s++html|html|head|body|pre)(?=[\s>])", re.IGNORECASE)
_JSON = re.compile(r"<(?:body|pre)(?=[\s>])[^<>]*+>\s*+(?=\{)", re.IGNORECASE)
_WRAPPED = "the feed is escaped, or stands within an HTML page"
_ENTRY_END = re.compile(r"</(?:[\w.-]++:)?+(?:item|entry)\s*+>", re.IGNORECASE)


def read_salvage(
    text: str, read_document: Callable[[str], RawFeed], deadline: Deadline | None = None
) -> RawFeed | None:
    """Return what can be saved of `text`, or None if nothing in it looks like the entries of a feed.

    `read_document` reads a whole document; it is asked about a feed that a page is wrapped around.
    """
    text = strip_illegal(text)
    is_wrapped = bool(_PAGE.match(text))
    opening = _JSON.search(text) if is_wrapped else None
    if opening and (raw := _unwrapped_json(text, opening, deadline)):
        return raw
    if not _ROOT.search(text) and _ESCAPED_ROOT.search(text):
        text, is_wrapped = html.unescape(cut_before(text, "&", MAX_REFERENCES)), True
    root = _ROOT.search(text)
    if not root:
        return None
    return _unwrapped(text, root, read_document, deadline) if is_wrapped else _pieces(text, deadline)


def _unwrapped_json(text: str, opening: re.Match[str], deadline: Deadline | None) -> RawFeed | None:
    """Return the JSON Feed that a page consists of. A browser escapes what it shows; then there is no `<` in it."""
    if html_to_text(text[: opening.start()]):
        return None
    source = text[opening.end() : text.rfind("}") + 1]
    source = source if "<" in source else html.unescape(cut_before(source, "&", MAX_REFERENCES))
    try:
        raw: RawFeed | None = read_json(source, deadline)
    except OutOfTime:
        raise
    except NotAFeed:
        return None
    except ParseError:
        raw = save_json(source, deadline)
    return replace(raw, warnings=(_WRAPPED, *raw.warnings)) if raw and raw.entries else None


def _unwrapped(
    text: str, root: re.Match[str], read_document: Callable[[str], RawFeed], deadline: Deadline | None
) -> RawFeed | None:
    """Return the feed that a page consists of. A page that shows anything before it is a page *about* feeds."""
    if html_to_text(text[: root.start()]):
        return None
    end = text.rfind(f"</{root[1]}", root.start())
    source = text[root.start() : text.find(">", end) + 1] if end >= 0 else text[root.start() :]
    try:
        raw = read_document(source)
    except OutOfTime:
        raise
    except ParseError:
        return _pieces(source, deadline)
    if not raw.entries:
        return None
    return replace(raw, warnings=(_WRAPPED, *raw.warnings))


def _pieces(text: str, deadline: Deadline | None) -> RawFeed | None:
    trimmed = trim(text, MAX_ENTRIES, deadline)
    text = trimmed.source
    starts, _, end = find_entries(text)
    entries: list[RawEntry] = []
    for start, bound in pairwise([*starts, end]):
        check_time(deadline)
        closed = _ENTRY_END.search(text, start, bound)
        entry = _entry(read_piece(text[start : closed.start() if closed else bound]))
        if entry.title.value.strip() or entry.link:
            entries.append(entry)
    if not entries:
        return None
    channel = read_piece(text[: starts[0]])
    return RawFeed(
        title=channel.text("title"),
        link=channel.link(),
        language=channel.plain("language"),
        hints=read_hints(
            ttl=channel.plain("ttl"),
            period=channel.plain("sy:updateperiod"),
            frequency=channel.plain("sy:updatefrequency"),
        ),
        entries=tuple(entries),
        warnings=("beyond parsing: entries were saved piece by piece", *trimmed.warnings),
        facts=read_facts(text),
    )


def _entry(piece: Piece) -> RawEntry:
    bodies = tuple(text for text in map(piece.text, ("content", "summary")) if text.value)
    return RawEntry(
        guid=piece.plain("guid"),
        guid_is_link=piece.attribute("guid", "ispermalink").lower() != "false",
        link=piece.link(),
        title=piece.text("title"),
        bodies=bodies or (Text(),),
        published_at=read_date(piece.plain("published")),
        updated_at=read_date(piece.plain("updated")),
        authors=piece.all_plain("author") or piece.all_plain("name"),
        categories=piece.all_plain("category"),
        enclosures=tuple(RawEnclosure(*found) for found in piece.enclosures()),
        language=piece.plain("language"),
    )
