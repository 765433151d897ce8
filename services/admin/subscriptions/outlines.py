"""From the outline elements of an OPML file to its feeds; the names of the outlines around a feed become its tag.

An outline with the attribute `xmlUrl` is a feed. Readers and podcast apps differ in the case of attributes' names, and
some call it `feedUrl` or `url`. An outline within others without a URL is a folder; folders in folders become `a/b`.
OPML's `category` (tags between commas) counts as well. The `type` of nearly every outline is `rss`, whatever the feed's
format is; another one is the name of a source type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from services.admin.feeds.tags import MAX_TAGS, clean_tag, merge_tags
from services.admin.subscriptions.model import BadList, Flaws, Listed, clean_name
from shared.errors import ConfigurationError
from shared.wire.jobs import DEFAULT_SOURCE_TYPE

MAX_DEPTH = 256
"""Outlines within outlines. Readers have two or three."""

_FEED_TYPES = frozenset(
    {"", "rss", "rss1", "rss2", "atom", "rdf", "jsonfeed", "json", "feed", "xml", "podcast", "link"}
)
_SAY_FEED = ("type", "htmlurl", "description", "version")
"""An outline with one of these and without a URL was meant to be a feed; others are empty folders."""


@dataclass(slots=True)
class _Open:
    line: int
    name: str
    is_feed: bool
    said_feed: bool
    path: str
    """The names of the folders from the first one to this one."""
    has_children: bool = False


class Outlines:
    """Takes the beginnings and ends of outlines; collects feeds in `found`, for the caller to take away."""

    def __init__(self, flaws: Flaws) -> None:
        self.found: list[Listed] = []
        self._flaws = flaws
        self._open: list[_Open] = []

    def start(self, line: int, given: Mapping[str, str]) -> None:
        """Take the beginning of an outline. Raises BadList if too many are open."""
        if len(self._open) >= MAX_DEPTH:
            raise BadList(line, f"more than {MAX_DEPTH} outlines within each other")
        attributes = {name.lower(): value for name, value in given.items()}
        url = _url_of(attributes)
        name = clean_name(attributes.get("title") or attributes.get("text") or "", url, line, self._flaws)
        parent = self._open[-1] if self._open else None
        if parent:
            parent.has_children = True
        path = parent.path if parent else ""
        if url:
            self.found.append(self._feed(line, url, name, path, attributes))
        elif name:
            path = f"{path}/{name}" if path else name
        said_feed = any(attributes.get(key) for key in _SAY_FEED)
        self._open.append(_Open(line, name, bool(url), said_feed, path))

    def end(self) -> None:
        """Take the end of the outline that began last; without one, nothing happens."""
        if not self._open:
            return
        ended = self._open.pop()
        if ended.said_feed and not ended.is_feed and not ended.has_children:
            self.found.append(Listed(ended.line, "", ended.name))

    def _feed(self, line: int, url: str, name: str, path: str, attributes: Mapping[str, str]) -> Listed:
        kind = attributes.get("type", "").strip()
        return Listed(
            line,
            url,
            name,
            read_tags([path, *attributes.get("category", "").split(",")], line, self._flaws),
            attributes.get("htmlurl", "").strip(),
            DEFAULT_SOURCE_TYPE if kind.lower() in _FEED_TYPES else kind,
        )


def read_tags(texts: list[str], line: int, flaws: Flaws) -> tuple[str, ...]:
    """Return the tags that `texts` name; empty ones are none. What a feed can't have is left out and noted."""
    tags = []
    for text in texts:
        if not text.strip("/ \t\n"):
            continue
        try:
            tags.append(clean_tag(text))
        except ConfigurationError as error:
            flaws.note(f"a tag was left out: {error}", lambda: line)
    if len(set(map(str.lower, tags))) > MAX_TAGS:
        flaws.note(f"a feed has more than {MAX_TAGS} tags: the first ones were taken", lambda: line)
    return tuple(merge_tags((), tags))


def _url_of(attributes: Mapping[str, str]) -> str:
    url = attributes.get("xmlurl") or attributes.get("feedurl") or ""
    if not url and attributes.get("type", "").lower() in {"rss", "atom", "feed", "podcast"}:
        url = attributes.get("url", "")
    return url.strip()
