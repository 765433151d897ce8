"""From fields, as feedparser names and nests them, to `RawFeed` and `RawEntry`. The same for strict and lenient."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from services.fetcher.parse.dates import Date, read_date
from services.fetcher.parse.hints import read_hints
from services.fetcher.parse.model import RawEnclosure, RawEntry, RawFeed, Text

Fields = dict[str, Any]

_SHORTER_TEXTS = ("summary", "itunes_summary", "media_description", "dc_description", "subtitle")
_DETAILS = {name: f"{name}_detail" for name in ("title", *_SHORTER_TEXTS)}


def raw_feed(
    feed: Fields,
    entries: Iterable[RawEntry],
    *,
    is_atom: bool,
    hours: Iterable[str],
    days: Iterable[str],
    warnings: Iterable[str],
) -> RawFeed:
    """Return the feed that these fields tell of."""
    return RawFeed(
        title=_text(feed, "title"),
        link=_string(feed, "link") or _alternate(_dicts(feed, "links")),
        language=_string(feed, "language"),
        authors=_authors(feed) if is_atom else (),
        hints=read_hints(
            ttl=_string(feed, "ttl"),
            period=_string(feed, "sy_updateperiod"),
            frequency=_string(feed, "sy_updatefrequency"),
            hours=hours,
            days=days,
        ),
        entries=tuple(entries),
        warnings=tuple(warnings),
    )


def raw_entry(entry: Fields) -> RawEntry:
    """Return the entry that these fields tell of."""
    contents = [_typed(content) for content in _dicts(entry, "content") if _is_text(content)]
    if len(contents) > 1:
        contents.sort(key=lambda text: len(text.value), reverse=True)
    links = _dicts(entry, "links")
    return RawEntry(
        _string(entry, "id"),
        entry.get("guid_is_link", True) is True,
        _string(entry, "link") or _alternate(links),
        _text(entry, "title"),
        (*contents, *[_text(entry, name) for name in _SHORTER_TEXTS if name in entry]),
        _moment(entry, "published") or _moment(entry, "created"),
        _moment(entry, "updated"),
        _authors(entry),
        tuple([str(tag.get("term") or tag.get("label") or "") for tag in _dicts(entry, "tags")]),
        _enclosures(links, _dicts(entry, "media_content")),
        _string(entry, "language") or _language(entry),
    )


def _string(fields: Fields, name: str) -> str:
    value = fields.get(name)  # an unknown element with attributes is a dict
    return value if isinstance(value, str) else ""


def _dicts(fields: Fields, name: str) -> Sequence[Fields]:
    value = fields.get(name)  # a feed may have an element of feedparser's own name, say `<links a="">`
    if value is None:
        return ()
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else ()


def _is_text(detail: Fields) -> bool:
    kind = str(detail.get("type") or "text/html")
    return kind.startswith("text/") or kind.endswith(("html", "xml"))


def _typed(detail: Fields) -> Text:
    return Text(str(detail.get("value") or ""), _is_html(detail.get("type")), str(detail.get("base") or ""))


def _text(fields: Fields, name: str) -> Text:
    detail = fields.get(_DETAILS[name])
    if not isinstance(detail, dict):
        return Text(_string(fields, name), is_html=True)
    return Text(_string(fields, name), _is_html(detail.get("type")), str(detail.get("base") or ""))


def _is_html(kind: object) -> bool:
    return kind == "text/html" or not str(kind or "").startswith("text/")


def _language(entry: Fields) -> str:
    for detail in (*_dicts(entry, "content"), entry.get("summary_detail"), entry.get("title_detail")):
        if isinstance(detail, dict) and (language := detail.get("language")):
            return str(language)
    return ""


def _alternate(links: Sequence[Fields]) -> str:
    alternates = (link.get("href") for link in links if link.get("rel") == "alternate")
    return next((str(href) for href in alternates if href), "")


def _moment(fields: Fields, name: str) -> Date:
    return read_date(_string(fields, name)) if name in fields else None


def _authors(fields: Fields) -> tuple[str, ...]:
    names = [str(author.get("name") or author.get("email") or "") for author in _dicts(fields, "authors")]
    return (*filter(None, names),) or (_string(fields, "author"),)


def _enclosures(links: Sequence[Fields], media: Sequence[Fields]) -> tuple[RawEnclosure, ...]:
    found = [
        (link.get("href"), link.get("type"), link.get("length")) for link in links if link.get("rel") == "enclosure"
    ]
    if media:
        found += [(one.get("url"), one.get("type"), one.get("filesize")) for one in media]
    if not found:
        return ()
    return tuple([RawEnclosure(str(url), str(kind or ""), str(length or "")) for url, kind, length in found if url])
