"""feedparser, without what a stranger's feed could do to it.

It is taken by its two parsers (6.0.14) and not by `feedparser.parse`, since that one does too much: it opens a string
that looks like a file name or a URL, lets a DTD reach expat, and takes steps that cost the square of what a feed sends
(30 KB of letters as `<author>`: 9 s; 1 MB of `<category>`: over a minute). What is left of those is bounded in time:
its callbacks ask the caller's deadline.

Beyond feedparser: all of `skipHours` and `skipDays` (it keeps the last one of each), a guid that is never taken for a
link by itself, and `media:description`, `itunes:summary`, `dc:description` kept apart from the entry's own text.
"""

from __future__ import annotations

import xml.sax
import xml.sax.handler
from contextlib import suppress
from typing import Any

import feedparser.api as feedparser
from feedparser.mixin import _FeedParserMixin

from services.fetcher.parse.model import Deadline, check_time

MAX_ENTRIES = 20_000
"""They cost 6 s of CPU and 120 MB; 50,000 would cost more time than a body has (`parse_seconds`). `extents` chooses the
newest, and what it takes for no entry and feedparser for one ends the reading."""

MAX_AUTHOR_CHARS = 500
MAX_TAGS = 100
"""Per entry: feedparser compares each with all before it."""


class _Enough(Exception):
    """More entries than anyone should send."""


class _Guards(_FeedParserMixin):  # type: ignore[misc]  # feedparser has no types
    """What both of feedparser's parsers do differently here."""

    resolve_relative_uris = False
    sanitize_html = False

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.deadline: Deadline | None = None
        self.skipped_hours: list[str] = []
        self.skipped_days: list[str] = []

    # Whatever feedparser is given comes by one of these; a few microseconds to a few milliseconds lie between two.

    def unknown_starttag(self, tag: str, attrs: list[tuple[str, str]]) -> None:
        check_time(self.deadline)
        super().unknown_starttag(tag, attrs)

    def unknown_endtag(self, tag: str) -> None:
        check_time(self.deadline)
        super().unknown_endtag(tag)

    def handle_data(self, text: str, escape: int = 1) -> None:
        check_time(self.deadline)
        super().handle_data(text, escape)

    def handle_entityref(self, ref: str) -> None:
        check_time(self.deadline)
        super().handle_entityref(ref)

    def _start_item(self, attrs_d: dict[str, str]) -> None:
        if len(self.entries) > MAX_ENTRIES:
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
        if value := self._pop_within("skiphours", "hour"):
            self.skipped_hours.append(value)

    def _end_day(self) -> None:
        if value := self._pop_within("skipdays", "day"):
            self.skipped_days.append(value)

    def _pop_within(self, parent: str, name: str) -> str:
        value = self.pop(name)
        return value if value and any(element[0] == parent for element in self.elementstack) else ""

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
    """Over regular expressions; takes anything, also a prefix of RSS or Atom that is nowhere declared."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.namespacemap.update({"rss": "", "atom": ""})


HANDLED = frozenset(
    name.removeprefix(prefix) for name in dir(_Guards) for prefix in ("_start_", "_end_") if name.startswith(prefix)
)
"""The elements that feedparser does something about, by its names for them."""


def run_feedparser(source: str, deadline: Deadline | None = None) -> tuple[Any, str | None]:
    """Return the parser that read `source`, and what is not well-formed in it.

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
    loose.deadline = deadline
    with suppress(_Enough):
        loose.feed(source)
    return loose, problem
