"""The lenient tier: feedparser's tolerance for every kind of RSS, Atom, RDF and CDF.

Decoding, DOCTYPE and references are settled before feedparser sees the text (`charset`, `prolog`), and its parsers are
bounded (`guarded`). Relative URLs stay relative unless `xml:base` says otherwise, so that `entries` can resolve them;
embedded HTML is neither resolved nor sanitised: it becomes text.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from services.fetcher.parse.dates import EARLIEST, from_struct, parse_date
from services.fetcher.parse.guarded import MAX_ENTRIES, run_feedparser
from services.fetcher.parse.hints import read_hints
from services.fetcher.parse.model import NotAFeed, RawEnclosure, RawEntry, RawFeed, Text, Unparseable
from services.fetcher.parse.prolog import cut_markup, find_feed_root, read_prolog, settle_references, strip_illegal

_FEED_ROOTS = frozenset({"rss", "feed", "rdf", "channel"})
_HTML_ROOTS = frozenset({"html", "head", "body"})
_HTML_PIECES = frozenset({"b", "br", "center", "div", "font", "h1", "meta", "p", "script", "style", "table", "title"})
_ENTRY = re.compile(r"<(?:[\w.-]+:)?(?:item|entry)[\s/>]", re.IGNORECASE)
_LESSER_TEXTS = ("itunes_summary", "media_description", "dc_description", "subtitle")


def read_lenient(text: str) -> RawFeed:
    """Return the feed in `text`, well-formed or not.

    Raises:
        NotAFeed: there is no feed's root element: an HTML page, another XML, no markup at all.
        Unparseable: there is one, but the rest is too broken to give an entry.
    """
    source, warnings = _prepare(text)
    try:
        reader, problem = run_feedparser(source)
    except Exception as error:  # feedparser names no errors and has many; one odd body is a fact to record, no bug
        raise Unparseable(f"a feed on which feedparser fails with {type(error).__name__}") from error
    if problem and not reader.entries and (_ENTRY.search(source) or not _is_complete(source)):
        raise Unparseable(f"malformed XML without a readable entry ({problem})")
    if not reader.entries and not reader.version and not reader.feeddata:
        raise NotAFeed("XML without a channel or an entry")
    if problem:
        warnings.append(f"malformed XML ({problem}), read leniently")
    if len(reader.entries) >= MAX_ENTRIES:
        warnings.append(f"reading stopped at {MAX_ENTRIES} entries")
    return _raw_feed(reader, warnings)


def _is_complete(source: str) -> bool:
    """Return whether the last thing in `source` is the end tag of a feed's root: nothing after it was cut off."""
    last_tag = source.rpartition("<")[2].lower()
    return last_tag.startswith("/") and last_tag.strip("/> \t\r\n").rpartition(":")[2] in _FEED_ROOTS


def _prepare(text: str) -> tuple[str, list[str]]:
    """Return the document from its root element on, safe to parse, and what was put up with."""
    text, warnings = strip_illegal(text), list[str]()
    prolog = read_prolog(text)
    start = prolog.start
    if not prolog.root:
        raise NotAFeed("neither XML nor JSON" if text.strip() else "an empty body")
    if prolog.root in _HTML_ROOTS:
        raise NotAFeed("an HTML page")
    if prolog.root not in _FEED_ROOTS:
        start = find_feed_root(text, prolog.start)
        if start < 0:
            is_html = prolog.is_html or prolog.root in _HTML_PIECES
            raise NotAFeed("an HTML page" if is_html else f"XML with the root element <{prolog.root[:40]}>")
        warnings.append("something else stands before the feed")
    text, is_cut = cut_markup(text[start:])
    if is_cut:
        warnings.append("more markup than any feed needs: cut")
    return settle_references(text, prolog.declarations), warnings


def _raw_feed(reader: Any, warnings: list[str]) -> RawFeed:
    feed: dict[str, Any] = dict(reader.feeddata)
    is_atom = str(reader.version).startswith("atom")
    return RawFeed(
        title=_text(feed, "title"),
        link=_link(feed),
        language=_string(feed, "language"),
        authors=_authors(feed) if is_atom else (),
        hints=read_hints(
            ttl=_string(feed, "ttl"),
            period=_string(feed, "sy_updateperiod"),
            frequency=_string(feed, "sy_updatefrequency"),
            hours=reader.skipped_hours,
            days=reader.skipped_days,
        ),
        entries=tuple(_raw_entry(dict(entry)) for entry in reader.entries),
        warnings=tuple(warnings),
    )


def _raw_entry(entry: dict[str, Any]) -> RawEntry:
    # A plain dict: feedparser's own answers with `published` when asked for `updated`, and warns of it.
    contents = [_typed(content) for content in _dicts(entry, "content") if _is_text(content)]
    contents.sort(key=lambda text: len(text.value), reverse=True)
    return RawEntry(
        guid=_string(entry, "id"),
        guid_is_link=entry.get("guid_is_link", True) is True,
        link=_link(entry),
        title=_text(entry, "title"),
        bodies=(*contents, *(_text(entry, name) for name in ("summary", *_LESSER_TEXTS))),
        published_at=_moment(entry, "published") or _moment(entry, "created"),
        updated_at=_moment(entry, "updated"),
        authors=_authors(entry),
        categories=tuple(str(tag.get("term") or tag.get("label") or "") for tag in _dicts(entry, "tags")),
        enclosures=_enclosures(entry),
        language=_string(entry, "language") or _language(entry),
    )


def _string(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)  # an unknown element with attributes is a dict
    return value if isinstance(value, str) else ""


def _dicts(fields: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = fields.get(name)  # a feed may have an element of feedparser's own name, say `<links a="">`
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _is_text(detail: dict[str, Any]) -> bool:
    kind = str(detail.get("type") or "text/html")
    return kind.startswith("text/") or kind.endswith(("html", "xml"))


def _typed(detail: dict[str, Any]) -> Text:
    kind = str(detail.get("type") or "text/html")
    return Text(str(detail.get("value") or ""), is_html=kind == "text/html" or not kind.startswith("text/"))


def _text(fields: dict[str, Any], name: str) -> Text:
    detail = fields.get(f"{name}_detail")
    return _typed({"type": detail.get("type") if isinstance(detail, dict) else None, "value": _string(fields, name)})


def _language(entry: dict[str, Any]) -> str:
    details = (*_dicts(entry, "content"), entry.get("summary_detail"), entry.get("title_detail"))
    found = (detail.get("language") for detail in details if isinstance(detail, dict))
    return next((str(language) for language in found if language), "")


def _link(fields: dict[str, Any]) -> str:
    alternates = (link.get("href") for link in _dicts(fields, "links") if link.get("rel") == "alternate")
    return _string(fields, "link") or next((str(href) for href in alternates if href), "")


def _moment(fields: dict[str, Any], name: str) -> datetime | None:
    moment = from_struct(fields.get(f"{name}_parsed"))
    if moment is None or moment < EARLIEST:  # feedparser takes Unix time for a year, month and day
        return parse_date(_string(fields, name)) or moment
    return moment


def _authors(fields: dict[str, Any]) -> tuple[str, ...]:
    names = tuple(str(author.get("name") or author.get("email") or "") for author in _dicts(fields, "authors"))
    return tuple(filter(None, names)) or (_string(fields, "author"),)


def _enclosures(entry: dict[str, Any]) -> tuple[RawEnclosure, ...]:
    links = [link for link in _dicts(entry, "links") if link.get("rel") == "enclosure"]
    found = [(link.get("href"), link.get("type"), link.get("length")) for link in links]
    found += [(media.get("url"), media.get("type"), media.get("filesize")) for media in _dicts(entry, "media_content")]
    return tuple(RawEnclosure(str(url), str(kind or ""), str(length or "")) for url, kind, length in found if url)
