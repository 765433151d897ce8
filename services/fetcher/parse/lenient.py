"""The lenient tier: feedparser's tolerance for every kind of RSS, Atom, RDF and CDF.

feedparser is taken by its two parsers and not by `feedparser.parse`, since that one does too much with what a stranger
wrote: it opens a string that looks like a file name or a URL, lets a DTD reach expat, and has steps that take the
square of the input's length (30 KB of letters as `<author>` cost 9 s). Decoding, DOCTYPE and references are settled
before (`charset`, `prolog`); `_Guards` bounds the rest. Relative URLs stay relative unless `xml:base` says otherwise,
so that `entries` can resolve them; embedded HTML is neither resolved nor sanitised: it becomes text.

Beyond feedparser: all of `skipHours` and `skipDays` (it keeps the last one of each), a guid that is never taken for a
link by itself, and `media:description`, `itunes:summary`, `dc:description` kept apart from the entry's own text.
"""

from __future__ import annotations

import xml.sax  # noqa: S406 - no DOCTYPE ever gets here, see prolog
import xml.sax.handler  # noqa: S406
from datetime import datetime
from typing import Any

import feedparser.api as feedparser
from feedparser.mixin import _FeedParserMixin

from services.fetcher.parse.dates import EARLIEST, from_struct, parse_date
from services.fetcher.parse.hints import read_hints
from services.fetcher.parse.model import NotAFeed, RawEnclosure, RawEntry, RawFeed, Text, Unparseable
from services.fetcher.parse.prolog import cut_markup, find_feed_root, read_prolog, settle_references, strip_illegal

MAX_ENTRIES = 20_000
"""Reading stops here: 10 MiB of `<item/>` alone would become a gigabyte of dictionaries."""

MAX_AUTHOR_CHARS = 500
MAX_TAGS = 100
"""Per entry: feedparser compares each with all before it."""

_FEED_ROOTS = frozenset({"rss", "feed", "rdf", "channel"})
_HTML_ROOTS = frozenset({"html", "head", "body"})
_LESSER_TEXTS = ("itunes_summary", "media_description", "dc_description", "subtitle")


class _Enough(Exception):  # noqa: N818 - no error: the reading ends here
    """More entries than anyone should send."""


class _Guards(_FeedParserMixin):  # type: ignore[misc]  # feedparser has no types
    """What both of feedparser's parsers do differently here."""

    resolve_relative_uris = False
    sanitize_html = False

    def _start_item(self, attrs_d: dict[str, str]) -> None:
        if len(self.entries) >= MAX_ENTRIES:
            raise _Enough
        super()._start_item(attrs_d)

    _start_entry = _start_item

    def _start_guid(self, attrs_d: dict[str, str]) -> None:
        self._save("guid_is_link", attrs_d.get("ispermalink", "true").strip().lower() != "false")
        self.guidislink = 0
        self.push("id", 1)

    _start_id = _start_guid

    def _sync_author_detail(self, key: str = "author") -> None:
        context = self._get_context()
        if isinstance(context.get(key), str):
            context[key] = context[key][:MAX_AUTHOR_CHARS]
        super()._sync_author_detail(key)

    def _add_tag(self, term: str | None, scheme: str | None, label: str | None) -> None:
        if len(self._get_context().get("tags", ())) < MAX_TAGS:
            super()._add_tag(term, scheme, label)

    def _end_hour(self) -> None:
        self.feeddata.setdefault("skipped_hours", []).append(self.pop("hour") or "")

    def _end_day(self) -> None:
        self.feeddata.setdefault("skipped_days", []).append(self.pop("day") or "")

    def _start_media_description(self, attrs_d: dict[str, str]) -> None:
        self.push_content("media_description", attrs_d, "text/plain", 1)

    def _end_media_description(self) -> None:
        self.pop_content("media_description")

    def _start_itunes_summary(self, attrs_d: dict[str, str]) -> None:
        self.push_content("itunes_summary", attrs_d, "text/plain", 1)

    def _end_itunes_summary(self) -> None:
        self.pop_content("itunes_summary")

    def _start_dc_description(self, attrs_d: dict[str, str]) -> None:
        self.push_content("dc_description", attrs_d, "text/html", 1)

    def _end_dc_description(self) -> None:
        self.pop_content("dc_description")


class _Strict(_Guards, feedparser.StrictFeedParser):  # type: ignore[misc]
    """Over expat; stops at the first thing that is not well-formed."""


class _Loose(_Guards, feedparser.LooseFeedParser):  # type: ignore[misc]
    """Over regular expressions; takes anything."""


def read_lenient(text: str) -> RawFeed:
    """Return the feed in `text`, well-formed or not.

    Raises:
        NotAFeed: there is no feed's root element: an HTML page, another XML, no markup at all.
        Unparseable: there is one, but the rest is too broken to give an entry.
    """
    source, warnings = _prepare(text)
    try:
        reader, problem = _parse(source)
    except Exception as error:  # noqa: BLE001 - feedparser promises none and raises many: one body, one fact
        raise Unparseable(f"a feed on which feedparser fails with {type(error).__name__}") from error
    if not reader.entries and problem and not source.rstrip().endswith(">"):
        raise Unparseable(f"malformed XML without a readable entry ({problem})")
    if not reader.entries and not reader.version and not reader.feeddata:
        raise NotAFeed("XML without a channel or an entry")
    if problem:
        warnings.append(f"malformed XML ({problem}), read leniently")
    if len(reader.entries) >= MAX_ENTRIES:
        warnings.append(f"reading stopped at {MAX_ENTRIES} entries")
    return _raw_feed(reader, warnings)


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
            raise NotAFeed("an HTML page" if prolog.is_html else f"XML with the root element <{prolog.root[:40]}>")
        warnings.append("something else stands before the feed")
    text, is_cut = cut_markup(settle_references(text[start:], prolog.declarations))
    if is_cut:
        warnings.append("more markup than any feed needs: cut")
    return text, warnings


def _parse(source: str) -> tuple[Any, str | None]:
    """Return the parser that read `source`, and what is not well-formed in it."""
    strict = _Strict("", None, "utf-8")
    expat = xml.sax.make_parser()  # noqa: S317
    expat.setFeature(xml.sax.handler.feature_namespaces, True)
    expat.setFeature(xml.sax.handler.feature_external_ges, False)
    expat.setFeature(xml.sax.handler.feature_external_pes, False)
    expat.setContentHandler(strict)
    expat.setErrorHandler(strict)
    try:
        expat.feed(source)  # type: ignore[attr-defined]  # whole: expat 2.5 reads a long token anew with each piece
        expat.close()  # type: ignore[attr-defined]
    except _Enough:
        return strict, None
    except (xml.sax.SAXException, feedparser.UndeclaredNamespace) as error:
        problem = error.getMessage() if isinstance(error, xml.sax.SAXException) else str(error)
    else:
        return strict, None
    if "junk after document element" in problem:
        return strict, problem
    loose = _Loose("", None, "utf-8", {})
    try:
        loose.feed(source)
    except _Enough:
        pass
    return loose, problem


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
            hours=feed.get("skipped_hours", ()),
            days=feed.get("skipped_days", ()),
        ),
        entries=tuple(_raw_entry(dict(entry)) for entry in reader.entries),
        warnings=tuple(warnings),
    )


def _raw_entry(entry: dict[str, Any]) -> RawEntry:
    # A plain dict: feedparser's own answers with `published` when asked for `updated`, and warns of it.
    contents = [_typed(content) for content in entry.get("content", ()) if _is_text(content)]
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
        categories=tuple(str(tag.get("term") or tag.get("label") or "") for tag in entry.get("tags", ())),
        enclosures=_enclosures(entry),
        language=_string(entry, "language") or _language(entry),
    )


def _string(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)  # an unknown element with attributes is a dict
    return value if isinstance(value, str) else ""


def _is_text(detail: dict[str, Any]) -> bool:
    kind = str(detail.get("type") or "text/html")
    return kind.startswith("text/") or kind.endswith(("html", "xml"))


def _typed(detail: dict[str, Any]) -> Text:
    kind = str(detail.get("type") or "text/html")
    return Text(str(detail.get("value") or ""), is_html=kind == "text/html" or not kind.startswith("text/"))


def _text(fields: dict[str, Any], name: str) -> Text:
    detail = fields.get(f"{name}_detail") or {}
    return _typed({"type": detail.get("type"), "value": _string(fields, name)})


def _language(entry: dict[str, Any]) -> str:
    for detail in (*entry.get("content", ()), entry.get("summary_detail") or {}, entry.get("title_detail") or {}):
        if detail.get("language"):
            return str(detail["language"])
    return ""


def _link(fields: dict[str, Any]) -> str:
    alternates = (link.get("href") for link in fields.get("links", ()) if link.get("rel") == "alternate")
    return _string(fields, "link") or next((str(href) for href in alternates if href), "")


def _moment(fields: dict[str, Any], name: str) -> datetime | None:
    moment = from_struct(fields.get(f"{name}_parsed"))
    if moment is None or moment < EARLIEST:  # feedparser takes Unix time for a year, month and day
        return parse_date(_string(fields, name)) or moment
    return moment


def _authors(fields: dict[str, Any]) -> tuple[str, ...]:
    names = tuple(str(author.get("name") or author.get("email") or "") for author in fields.get("authors", ()))
    return tuple(filter(None, names)) or (_string(fields, "author"),)


def _enclosures(entry: dict[str, Any]) -> tuple[RawEnclosure, ...]:
    links = [link for link in entry.get("links", ()) if link.get("rel") == "enclosure"]
    found = [(link.get("href"), link.get("type"), link.get("length")) for link in links]
    found += [(media.get("url"), media.get("type"), media.get("filesize")) for media in entry.get("media_content", ())]
    return tuple(RawEnclosure(str(url), str(kind or ""), str(length or "")) for url, kind, length in found if url)
