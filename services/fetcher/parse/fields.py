"""From fields, as feedparser names and nests them, to `RawFeed` and `RawEntry`. The same for strict and lenient."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.fetcher.parse.dates import Date, read_date
from services.fetcher.parse.facts import read_hints
from services.fetcher.parse.model import RawEnclosure, RawEntry, RawFeed, Text
from services.fetcher.parse.text.authors import MAX_AUTHOR_CHARS
from services.fetcher.parse.text.links import own_address

Fields = dict[str, Any]

# Of each list the first with a value counts, wherever it stands: the format's own elements, then others about the
# entry, then those about a part of it. Authors and categories are no such list: they add up.
TITLES = ("title", "itunes_title", "dc_title", "media_title")
SHORTER_TEXTS = ("summary", "itunes_summary", "media_description", "dc_description", "subtitle")
PUBLISHED = ("published", "dcterms_issued", "created", "dcterms_created")
UPDATED = ("updated", "dcterms_modified", "dc_date")
_LANGUAGES = ("language", "dc_language")
_DETAILS = {name: f"{name}_detail" for name in (*TITLES, *SHORTER_TEXTS)}


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
    language = _first(feed, _LANGUAGES)
    return RawFeed(
        title=_title(feed),
        link=own_address(_dicts(feed, "links"), language),
        language=language,
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
    language = _first(entry, _LANGUAGES) or _language(entry)
    return RawEntry(
        _string(entry, "id"),
        entry.get("guid_is_link", True) is True,
        own_address(links, language),
        _title(entry),
        (*contents, *[_text(entry, name) for name in SHORTER_TEXTS if name in entry]),
        first_date(entry, PUBLISHED),
        first_date(entry, UPDATED),
        _authors(entry),
        tuple([str(tag.get("term") or tag.get("label") or "") for tag in _dicts(entry, "tags")]),
        _enclosures(links, _dicts(entry, "media_content")),
        language,
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
    details = (entry.get(_DETAILS[name]) for name in ("summary", *TITLES))
    for detail in (*_dicts(entry, "content"), *details):
        if isinstance(detail, dict) and (language := detail.get("language")):
            return str(language)
    return ""


def _title(fields: Fields) -> Text:
    return _text(fields, next((name for name in TITLES if _string(fields, name)), "title"))


def _first(fields: Fields, names: Sequence[str]) -> str:
    return next(filter(None, (_string(fields, name) for name in names)), "")


def first_date(fields: Mapping[str, Any], names: Sequence[str]) -> Date:
    """Return the first of these dates that can be read."""
    for name in names:
        value = fields.get(name)
        if value and isinstance(value, str) and (date := read_date(value)):
            return date
    return None


def _authors(fields: Fields) -> tuple[str, ...]:
    authors = _dicts(fields, "authors")
    texts = [str(one.get("name") or one.get("text") or one.get("email") or "") for one in authors]
    return tuple([text[:MAX_AUTHOR_CHARS] for text in texts if text])


def _enclosures(links: Sequence[Fields], media: Sequence[Fields]) -> tuple[RawEnclosure, ...]:
    found = [
        (link.get("href"), link.get("type"), link.get("length")) for link in links if link.get("rel") == "enclosure"
    ]
    if media:
        found += [(one.get("url"), one.get("type"), one.get("filesize")) for one in media]
    if not found:
        return ()
    return tuple([RawEnclosure(str(url), str(kind or ""), str(length or "")) for url, kind, length in found if url])
