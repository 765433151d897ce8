"""From the fields of a feed and an entry to `RawFeed` and `RawEntry`: for the strict and the lenient tier.

Fields have feedparser's names. Their values are typed: a `Text` for each of `TITLES` and `SHORTER_TEXTS`, a list of
them as `content`, lists of dictionaries as `links`, `authors`, `tags` and `media_content`, else a string. `languages`
has the languages that texts declare, by the names of their fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from services.fetcher.parse.dates import Date, read_date
from services.fetcher.parse.facts import read_hints
from services.fetcher.parse.model import RawEnclosure, RawEntry, RawFeed, Text
from services.fetcher.parse.text.authors import MAX_AUTHOR_CHARS
from services.fetcher.parse.text.links import own_address

Fields = dict[str, Any]

# Of each list the first name with a value counts, in whatever order the elements stand: the format's own elements, then
# other elements about the entry, then those about a part of it. Authors and categories of all elements are collected.
TITLES = ("title", "itunes_title", "dc_title", "media_title")
SHORTER_TEXTS = ("summary", "itunes_summary", "media_description", "dc_description", "subtitle")
PUBLISHED = ("published", "dcterms_issued", "created", "dcterms_created")
UPDATED = ("updated", "dcterms_modified", "dc_date")
_LANGUAGES = ("language", "dc_language")
_STRINGS = ("id", *PUBLISHED, *UPDATED, *_LANGUAGES, "ttl", "sy_updateperiod", "sy_updatefrequency")
_NO_TITLE = Text(is_html=True)


def raw_feed(
    feed: Fields,
    entries: Iterable[RawEntry],
    *,
    is_atom: bool,
    hours: Iterable[str],
    days: Iterable[str],
    warnings: Iterable[str],
) -> RawFeed:
    """Return the feed that has these fields."""
    language = _language(feed)
    return RawFeed(
        title=_title(feed),
        link=own_address(feed.get("links", ()), language),
        language=language,
        authors=_authors(feed) if is_atom else (),
        hints=read_hints(
            ttl=feed.get("ttl", ""),
            period=feed.get("sy_updateperiod", ""),
            frequency=feed.get("sy_updatefrequency", ""),
            hours=hours,
            days=days,
        ),
        entries=tuple(entries),
        warnings=tuple(warnings),
    )


def raw_entry(entry: Fields) -> RawEntry:
    """Return the entry that has these fields."""
    contents = entry.get("content", ())
    if len(contents) > 1:
        contents = sorted(contents, key=lambda text: len(text.value), reverse=True)
    links = entry.get("links", ())
    language = _language(entry) or _language_of_texts(entry)
    return RawEntry(
        entry.get("id", ""),
        entry.get("guid_is_link", True),
        own_address(links, language),
        _title(entry),
        (*contents, *[entry[name] for name in SHORTER_TEXTS if name in entry]),
        first_date(entry, PUBLISHED),
        first_date(entry, UPDATED),
        _authors(entry),
        tuple([str(tag.get("term") or tag.get("label") or "") for tag in entry["tags"]]) if "tags" in entry else (),
        _enclosures(links, entry.get("media_content", ())),
        language,
    )


def _title(fields: Fields) -> Text:
    found = fields.get("title", _NO_TITLE)
    if not found.value:
        found = next(filter(itemgetter(0), [fields[name] for name in TITLES if name in fields]), found)
    return found  # type: ignore[no-any-return]


def _language(fields: Fields) -> str:
    return fields.get("language") or fields.get("dc_language") or ""


def _language_of_texts(entry: Fields) -> str:
    if "languages" not in entry:
        return ""
    languages = entry["languages"]
    return next(filter(None, map(languages.get, ("content", "summary", *TITLES))), "")


def first_date(fields: Mapping[str, Any], names: Sequence[str]) -> Date:
    """Return the first of these fields that is a date."""
    for name in names:
        value = fields.get(name)
        if value and (date := read_date(value)):
            return date
    return None


def _authors(fields: Fields) -> tuple[str, ...]:
    if "authors" not in fields:
        return ()
    texts = [str(one.get("name") or one.get("text") or one.get("email") or "") for one in fields["authors"]]
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


def from_feedparser(given: Fields) -> Fields:
    """Return feedparser's fields of a feed or an entry as typed ones.

    A feed may have elements of feedparser's own names: `<links a="">` is a dictionary then, and no list.
    """
    found: Fields = {name: value for name in _STRINGS if isinstance(value := given.get(name), str)}
    found |= {name: _text(given, name) for name in (*TITLES, *SHORTER_TEXTS) if name in given}
    found |= {name: _dicts(given, name) for name in ("links", "authors", "tags", "media_content")}
    contents = _dicts(given, "content")
    found["content"] = [_typed(one, str(one.get("value") or "")) for one in contents if is_text(one.get("type"))]
    found["guid_is_link"] = given.get("guid_is_link", True) is True
    details = {name: detail for name in ("summary", *TITLES) if isinstance(detail := given.get(f"{name}_detail"), dict)}
    spoken = {name: str(language) for name, detail in details.items() if (language := detail.get("language"))}
    of_contents = next(filter(None, [one.get("language") for one in contents]), "")
    found["languages"] = {**spoken, "content": str(of_contents)}
    return found


def _dicts(fields: Fields, name: str) -> list[Fields]:
    value = fields.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(fields: Fields, name: str) -> Text:
    value, detail = fields[name], fields.get(f"{name}_detail")
    return _typed(detail if isinstance(detail, dict) else {}, value if isinstance(value, str) else "")


def _typed(detail: Fields, value: str) -> Text:
    return Text(value, is_html(str(detail.get("type") or "")), str(detail.get("base") or ""))


def is_html(kind: str) -> bool:
    """Return whether a text of this media type is HTML, and not plain."""
    return kind == "text/html" or (kind != "text/plain" and not kind.startswith("text/"))


def is_text(kind: object) -> bool:
    """Return whether content of this media type is a text."""
    kind = str(kind or "text/html")
    return kind.startswith("text/") or kind.endswith(("html", "xml"))
