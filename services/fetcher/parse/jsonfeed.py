"""The JSON tier: JSON Feed 1.0 and 1.1 (https://www.jsonfeed.org/version/1.1/), told with some tolerance.

A member of the wrong type is skipped, with a warning where an entry is lost; ids may be numbers, an author a mere name,
and one author, tag or attachment may stand where a list of them should; 1.0's `author` and
1.1's `authors` both count, the feed's for entries that name none. `url` goes before `external_url`; the text is
`content_html`, else `content_text`, else `summary`. Dates are read as everywhere.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

from services.fetcher.parse.dates import Date, read_date
from services.fetcher.parse.extents import newest
from services.fetcher.parse.facts import MAX_HUBS
from services.fetcher.parse.links import own_address
from services.fetcher.parse.model import NotAFeed, RawEnclosure, RawEntry, RawFacts, RawFeed, Text, Unparseable

MAX_ENTRIES = 60_000
"""Of more, the newest are read."""

_DECODER = json.JSONDecoder(strict=False)  # line breaks within strings are put up with
_ITEMS = re.compile(r"\"items\"\s*+:\s*+\[")
_COMMA = re.compile(r"[\s,]*+")
_VERSION = "jsonfeed.org/version/"
_ABOUT = ("title", "home_page_url", "feed_url", "description")

Json = dict[str, Any]


def read_json(text: str) -> RawFeed:
    """Return the JSON Feed in `text`.

    Raises:
        NotAFeed: JSON, but without the version and the items of a JSON Feed.
        Unparseable: not JSON.
    """
    try:
        feed = _DECODER.decode(text)
    except ValueError as error:
        raise Unparseable(f"broken JSON ({error})") from error
    except RecursionError as error:
        raise Unparseable("JSON that is nested too deep") from error
    return _raw_feed(feed)


def save_json(text: str) -> RawFeed | None:
    """Return what stands before the break in a broken JSON Feed, item by item; None if that is not one item."""
    items = _ITEMS.search(text)
    if not items:
        return None
    found: list[Any] = []
    at = items.end()
    with suppress(ValueError, RecursionError):
        feed = _DECODER.decode(text[:at] + "]}")
        while True:  # until the text ends: what is found is smaller than it
            item, at = _DECODER.raw_decode(text, _COMMA.match(text, at).end())  # type: ignore[union-attr]
            found.append(item)
    if not any(isinstance(item, dict) for item in found):
        return None
    with suppress(NotAFeed):
        raw = _raw_feed(feed | {"items": found})
        return replace(raw, warnings=("broken JSON: the items before the break were saved", *raw.warnings))
    return None


def _raw_feed(feed: object) -> RawFeed:
    if not isinstance(feed, dict):
        raise NotAFeed("JSON that is no object")
    is_labelled = _VERSION in _string(feed, "version")
    if not is_labelled and not (isinstance(feed.get("items"), list) and any(_string(feed, name) for name in _ABOUT)):
        raise NotAFeed("JSON without version and items")
    warnings = [] if is_labelled else ["no JSON Feed version"]
    items = _list(feed, "items")
    if not isinstance(feed.get("items"), list):
        warnings.append("no list of items")
    objects = [item for item in items if isinstance(item, dict)]
    if len(objects) < len(items):
        warnings.append(f"items that are no objects: {len(items) - len(objects)}")
    if len(objects) > MAX_ENTRIES:
        warnings.append(f"entries beyond the newest {MAX_ENTRIES} not read: {len(objects) - MAX_ENTRIES}")
        dates = [_moment(item.get("date_published")) or _moment(item.get("date_modified")) for item in objects]
        objects = [objects[at] for at in newest(dates, MAX_ENTRIES)]
    return RawFeed(
        title=Text(_string(feed, "title")),
        link=_string(feed, "home_page_url"),
        language=_string(feed, "language"),
        authors=_authors(feed),
        entries=tuple(map(_raw_entry, objects)),
        warnings=tuple(warnings),
        facts=_facts(feed),
    )


def _facts(feed: Json) -> RawFacts:
    return RawFacts(
        self_url=_string(feed, "feed_url"),
        hubs=tuple(_string(hub, "url") for hub in _list(feed, "hubs")[:MAX_HUBS] if isinstance(hub, dict)),
        icon=_string(feed, "favicon") or _string(feed, "icon"),
        image=_string(feed, "icon"),
    )


def _raw_entry(item: Json) -> RawEntry:
    return RawEntry(
        guid=_id(item.get("id")),
        link=own_address({"href": _string(item, name)} for name in ("url", "external_url")),
        title=Text(_string(item, "title")),
        bodies=(
            Text(_string(item, "content_html"), is_html=True),
            Text(_string(item, "content_text")),
            Text(_string(item, "summary")),
        ),
        published_at=_moment(item.get("date_published")),
        updated_at=_moment(item.get("date_modified")),
        authors=_authors(item),
        categories=tuple(tag for tag in _some(item, "tags") if isinstance(tag, str)),
        enclosures=tuple(_enclosure(one) for one in _some(item, "attachments") if isinstance(one, dict)),
        language=_string(item, "language"),
    )


def _string(fields: Json, name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _list(fields: Json, name: str) -> list[Any]:
    value = fields.get(name)
    return value if isinstance(value, list) else []


def _some(fields: Json, name: str) -> list[Any]:
    """Return a list, or what stands in its place as the only one in it."""
    value = fields.get(name)
    return [value] if isinstance(value, dict | str) else _list(fields, name)


def _id(value: object) -> str:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _moment(value: object) -> Date:
    return read_date(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _authors(fields: Json) -> tuple[str, ...]:
    authors = [*_some(fields, "authors"), *_some(fields, "author")]
    names = (_string(author, "name") if isinstance(author, dict) else author for author in authors)
    return tuple(name for name in names if isinstance(name, str) and name)


def _enclosure(attachment: Json) -> RawEnclosure:
    size = attachment.get("size_in_bytes")
    length = str(int(size)) if isinstance(size, int | float) and 0 < size < 1e15 else ""
    length = length or _string(attachment, "size_in_bytes")
    return RawEnclosure(_string(attachment, "url"), _string(attachment, "mime_type"), length)
