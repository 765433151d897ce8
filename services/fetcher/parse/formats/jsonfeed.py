"""The JSON tier: JSON Feed 1.0 and 1.1 (https://www.jsonfeed.org/version/1.1/), read with some tolerance.

- A member of the wrong type is skipped; a lost entry makes a warning.
- An id may be a number, an author a mere name; a single author, tag or attachment may replace a list of them.
- Both `author` (1.0) and `authors` (1.1) count; the feed's authors are those of entries without an author.
- `url` has priority over `external_url`. The text is `content_html`, else `content_text`, else `summary`.
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
from services.fetcher.parse.model import (
    Deadline,
    FeedFacts,
    NotAFeed,
    RawEnclosure,
    RawEntry,
    RawFeed,
    Text,
    Unparseable,
    check_time,
)
from services.fetcher.parse.text.links import own_address

MAX_ENTRIES = 60_000
"""Of a larger feed the newest entries are kept."""

MAX_CONTAINERS = 400_000
MAX_MEMBERS = 800_000
"""The limits for a document, counted in its source. An object of seven characters takes 250 bytes when decoded."""

_TELLING = frozenset({"id", "url", "external_url", "title", "content_html", "content_text", "summary", "attachments"})
"""An item without any of these is empty."""

_DECODER = json.JSONDecoder(strict=False)  # which allows line breaks within strings
_ITEMS = re.compile(r"\"items\"\s*+:\s*+\[")
_SPACE = re.compile(r"[ \t\n\r]*+")
_COMMA = re.compile(r"[\s,]*+")
_VERSION = "jsonfeed.org/version/"
_ABOUT = ("title", "home_page_url", "feed_url", "description")

Json = dict[str, Any]


def read_json(text: str, deadline: Deadline | None = None) -> RawFeed:
    """Return the JSON Feed in `text`.

    Raises:
        NotAFeed: JSON, but without the version and the items of a JSON Feed.
        Unparseable: not JSON, or more of it than any feed needs.
        OutOfTime: the deadline has passed.
    """
    if text.count("{") + text.count("[") > MAX_CONTAINERS or text.count('":') > MAX_MEMBERS:
        raise Unparseable("JSON with more objects, lists or members than any feed has")
    items = _Items(deadline)
    try:
        feed = _decode(text, items)
    except ValueError as error:
        raise Unparseable(f"broken JSON ({error})") from error
    except RecursionError as error:
        raise Unparseable("JSON that is nested too deep") from error
    return _raw_feed(feed, items)


def save_json(text: str, deadline: Deadline | None = None) -> RawFeed | None:
    """Return the items before the break in a broken JSON Feed, or None if there are none."""
    start = _ITEMS.search(text)
    if not start or text.count("{") + text.count("[") > MAX_CONTAINERS or text.count('":') > MAX_MEMBERS:
        return None
    items = _Items(deadline)
    at = start.end()
    with suppress(ValueError, RecursionError):
        feed = _DECODER.decode(text[:at] + "]}")
        while True:  # until the text ends: what is found is smaller than it
            item, at = _DECODER.raw_decode(text, _COMMA.match(text, at).end())  # type: ignore[union-attr]
            items.add(item)
    if not (items.entries or items.empty):
        return None
    with suppress(NotAFeed):
        raw = _raw_feed(feed, items)
        return replace(raw, warnings=("broken JSON: the items before the break were saved", *raw.warnings))
    return None


class _Items:
    """The items of a feed. Each becomes an entry as soon as it is decoded, so that a million items fit into memory."""

    def __init__(self, deadline: Deadline | None) -> None:
        self._deadline = deadline
        self.clear()

    def clear(self) -> None:
        """Remove all: if a feed has the member `items` twice, the last one counts."""
        self.entries: list[RawEntry] = []
        self.places: list[int] = []
        self.empty = self.odd = self.beyond = 0

    def add(self, item: object) -> None:
        """Add the next item."""
        check_time(self._deadline)
        if not isinstance(item, dict):
            self.odd += 1
        elif _TELLING.isdisjoint(item):
            self.empty += 1
        else:
            self.places.append(len(self.entries) + self.empty)
            self.entries.append(_raw_entry(item))
            if len(self.entries) >= 2 * MAX_ENTRIES:
                self.drop_oldest()

    def drop_oldest(self) -> None:
        """Keep the newest `MAX_ENTRIES`."""
        if len(self.entries) > MAX_ENTRIES:
            self.beyond += len(self.entries) - MAX_ENTRIES
            dates = [entry.published_at or entry.updated_at for entry in self.entries]
            self.entries = [self.entries[at] for at in newest(dates, MAX_ENTRIES, self._deadline)]


def _decode(text: str, items: _Items) -> Any:
    """Return the value in `text` without the feed's items, which are added to `items` one at a time.

    Raises:
        ValueError: it is not JSON.
    """
    at = _skip(text, 0)
    if not text.startswith("{", at):
        return _DECODER.decode(text)
    feed: Json = {}
    at = _skip(text, at + 1)
    while not text.startswith("}", at):
        if feed:
            at = _past(text, ",", at)
        if not text.startswith('"', at):
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
        key, at = _DECODER.raw_decode(text, at)
        at = _past(text, ":", at)
        if key == "items" and text.startswith("[", at):
            feed[key], at = [], _read_items(text, at, items)
        else:
            feed[key], at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
    at = _skip(text, at + 1)
    if at < len(text):
        raise json.JSONDecodeError("Extra data", text, at)
    return feed


def _read_items(text: str, at: int, items: _Items) -> int:
    """Add the items of the list that begins at `at`; return where it ends."""
    items.clear()
    is_first, at = True, _skip(text, at + 1)
    while not text.startswith("]", at):
        at = at if is_first else _past(text, ",", at)
        item, at = _DECODER.raw_decode(text, at)
        items.add(item)
        is_first, at = False, _skip(text, at)
    return at + 1


def _skip(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]


def _past(text: str, mark: str, at: int) -> int:
    at = _skip(text, at)
    if not text.startswith(mark, at):
        raise json.JSONDecodeError(f"Expecting '{mark}' delimiter", text, at)
    return _skip(text, at + 1)


def _raw_feed(feed: object, items: _Items) -> RawFeed:
    if not isinstance(feed, dict):
        raise NotAFeed("JSON that is no object")
    is_labelled = _VERSION in _string(feed, "version")
    if not is_labelled and not (isinstance(feed.get("items"), list) and any(_string(feed, name) for name in _ABOUT)):
        raise NotAFeed("JSON without version and items")
    warnings = [] if is_labelled else ["no JSON Feed version"]
    if not isinstance(feed.get("items"), list):
        warnings.append("no list of items")
    if items.odd:
        warnings.append(f"items that are no objects: {items.odd}")
    items.drop_oldest()
    if items.beyond:
        warnings.append(f"entries beyond the newest {MAX_ENTRIES} not read: {items.beyond}")
    return RawFeed(
        format="json",
        title=Text(_string(feed, "title")),
        link=_string(feed, "home_page_url"),
        language=_string(feed, "language"),
        authors=_authors(feed),
        entries=tuple(items.entries),
        warnings=tuple(warnings),
        facts=_facts(feed),
        empty=items.empty,
        places=tuple(items.places),
        scope="",
    )


def _facts(feed: Json) -> FeedFacts:
    return FeedFacts(
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
    """Return a list; a single value in its place is the only one in it."""
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
