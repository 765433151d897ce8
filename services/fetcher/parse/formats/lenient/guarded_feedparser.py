"""feedparser's two parsers, protected against hostile feeds.

`feedparser.parse` (6.0.14) is not used. It opens a string that looks like a file name or a URL, lets a DTD reach expat,
and has steps whose time grows with the square of the input (30 KB of letters as `<author>`: 9 s; 1 MB of `<category>`:
over a minute). Some of those steps are replaced here. In the others each callback asks the deadline, and what they keep
is bounded (`bounded_feedparser`).

Other differences from feedparser:
- All hours and days of `skipHours` and `skipDays` are kept, not only the last ones.
- A guid is never taken for a link.
- Elements of Dublin Core, Media RSS and iTunes become fields of their own, apart from the format's own elements.
- Authors and links are kept as they are written. feedparser cuts an e-mail address four letters after its last dot.
"""

from __future__ import annotations

import xml.sax
import xml.sax.handler
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import feedparser.api as feedparser

from services.fetcher.parse.formats.lenient.bounded_feedparser import BoundedParser, Enough
from services.fetcher.parse.model import Deadline, check_time
from services.fetcher.parse.text.links import without_other_schemes

MAX_ENTRIES = 20_000
"""They cost 6 s of CPU and 120 MB; 50,000 would exceed the setting `parse_seconds`. `extents` has cut
the older entries off by then. If feedparser still finds more, reading stops."""

MAX_TAGS = 100
"""Categories of one entry: feedparser compares each with all before it."""


class _Guards(BoundedParser):
    """The changes to both of feedparser's parsers."""

    resolve_relative_uris = False
    sanitize_html = False

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.skipped_hours: list[str] = []
        self.skipped_days: list[str] = []

    # feedparser calls one of these for each piece of the document, at the latest after a few milliseconds.

    def unknown_endtag(self, tag: str) -> None:
        check_time(self.deadline)
        super().unknown_endtag(tag)

    def handle_data(self, text: str, escape: int = 1) -> None:
        check_time(self.deadline)
        super().handle_data(text, escape)

    def handle_entityref(self, ref: str) -> None:
        check_time(self.deadline)
        super().handle_entityref(ref)

    def handle_charref(self, ref: str) -> None:
        check_time(self.deadline)
        super().handle_charref(ref)

    def _start_item(self, attrs_d: dict[str, str]) -> None:
        if len(self.entries) > MAX_ENTRIES:
            raise Enough
        super()._start_item(attrs_d)

    _start_entry = _start_item

    def _start_guid(self, attrs_d: dict[str, str]) -> None:
        self._save("guid_is_link", attrs_d.get("ispermalink", "true").strip().lower() != "false")
        self.guidislink = 0
        self.push("id", 1)

    _start_id = _start_guid

    # The text about an author is kept as it is written (`text.authors` reads it), beside name and address.

    def _end_author(self) -> None:
        text = self.pop("author")
        self.inauthor = 0
        authors = dict.get(self._get_context(), "authors")
        if text and isinstance(authors, list) and authors:
            authors[-1]["text"] = text

    _end_managingeditor = _end_author

    def _sync_author_detail(self, key: str = "author") -> None:
        pass

    def _save_author(self, key: str, value: str, prefix: str = "author") -> None:
        if prefix == "author":  # itunes:owner is no author
            super()._save_author(key, value)

    # All links are kept, not only the last one: `text.links` chooses.

    def _start_link(self, attrs_d: dict[str, str]) -> None:
        super()._start_link(without_other_schemes(attrs_d))

    def _end_link(self) -> None:
        if self.pop("link") and not (self.inentry and self.inimage):
            links = dict.get(self._get_context(), "links")
            if isinstance(links, list) and links:
                links[-1]["is_text"] = True

    def _add_tag(self, term: str | None, scheme: str | None, label: str | None) -> None:
        check_time(self.deadline)
        if len(self._get_context().get("tags", ())) < MAX_TAGS:
            super()._add_tag(term, scheme, label)

    def _end_hour(self) -> None:
        if value := self._pop_within("skiphours", "hour"):
            self.skipped_hours.append(value)

    def _end_day(self) -> None:
        if value := self._pop_within("skipdays", "day"):
            self.skipped_days.append(value)

    def _pop_within(self, parent: str, name: str) -> str:
        value = self.pop(name)
        return value if value and any(element[0] == parent for element in self.elementstack) else ""

    def _end_published(self) -> None:
        self._pop_filled("published", self.pop)

    _end_issued = _end_pubdate = _end_published

    def _end_updated(self) -> None:
        self._pop_filled("updated", self.pop)

    _end_modified = _end_lastbuilddate = _end_updated

    def _end_created(self) -> None:
        self._pop_filled("created", self.pop)

    def _pop_filled(self, key: str, pop: Callable[[str], Any], *, is_first: bool = False) -> None:
        """Set a field by `pop`. An empty value never replaces another; if `is_first`, no later value does."""
        context = self._get_context()
        kept = {name: dict.get(context, name) for name in (key, f"{key}_detail") if dict.__contains__(context, name)}
        depths = self.property_depth_map.get(context, {})
        depth = depths.get(key, -1)
        value = pop(key)
        if kept.get(key) and (not value or (is_first and depth <= self.depth)):
            context.update(kept)
            if depth >= 0:
                depths[key] = depth


TITLES = frozenset({"dc_title", "itunes_title", "media_title"})
APART = {
    **dict.fromkeys([*sorted(TITLES), "media_description", "itunes_summary"], "text/plain"),
    "dc_description": "text/html",
    **dict.fromkeys(["dc_date", "dc_language", "dcterms_created", "dcterms_issued", "dcterms_modified"], ""),
}
"""Elements that become fields of their own, and never replace the format's own elements. The value is the media type of
texts for people, and "" for others."""


def _read_apart(name: str, kind: str) -> None:
    def start(self: _Guards, attrs_d: dict[str, str]) -> None:
        if kind:
            self.push_content(name, attrs_d, kind, 1)
        else:
            self.push(name, 1)

    def end(self: _Guards) -> None:
        self._pop_filled(name, self.pop_content if kind else self.pop, is_first=name in TITLES)

    setattr(_Guards, f"_start_{name}", start)
    setattr(_Guards, f"_end_{name}", end)


for _name, _kind in APART.items():
    _read_apart(_name, _kind)


class _Strict(_Guards, feedparser.StrictFeedParser):  # type: ignore[misc]
    """Over expat; stops at the first error."""


class _Loose(_Guards, feedparser.LooseFeedParser):  # type: ignore[misc]
    """Over regular expressions; accepts anything, also an undeclared prefix `rss:` or `atom:`."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.namespacemap.update({"rss": "", "atom": ""})


HANDLED = frozenset(
    name.removeprefix(prefix) for name in dir(_Guards) for prefix in ("_start_", "_end_") if name.startswith(prefix)
)
"""The elements that feedparser handles, by its names for them."""


def run_feedparser(source: str, deadline: Deadline | None = None) -> tuple[Any, str | None]:
    """Return the parser that read `source`, and why `source` is not well-formed (None if it is).

    Raises:
        OutOfTime: the deadline has passed.
    """
    strict = _Strict("", None, "utf-8")
    strict.deadline = deadline
    expat = xml.sax.make_parser()  # noqa: S317
    expat.setFeature(xml.sax.handler.feature_namespaces, True)
    expat.setFeature(xml.sax.handler.feature_external_ges, False)
    expat.setFeature(xml.sax.handler.feature_external_pes, False)
    expat.setContentHandler(strict)
    expat.setErrorHandler(strict)
    try:
        expat.feed(source)  # type: ignore[attr-defined]  # in one piece: expat 2.5 reads a long token again with each piece
        expat.close()  # type: ignore[attr-defined]
    except Enough:
        return strict, None
    except (xml.sax.SAXException, feedparser.UndeclaredNamespace) as error:
        problem = error.getMessage() if isinstance(error, xml.sax.SAXException) else str(error)
    else:
        return strict, None
    if "junk after document element" in problem:
        return strict, problem
    loose = _Loose("", None, "utf-8", {})
    loose.deadline = deadline
    with suppress(Enough):
        loose.feed(source)
    return loose, problem
