"""feedparser, without what a stranger's feed could do to it.

It is taken by its two parsers (6.0.14) and not by `feedparser.parse`, since that one does too much: it opens a string
that looks like a file name or a URL, lets a DTD reach expat, and takes steps that cost the square of what a feed sends
(30 KB of letters as `<author>`: 9 s; 1 MB of `<category>`: over a minute). What is left of those is bounded in time:
its callbacks ask the caller's deadline. What is left of them in memory is bounded in number: open elements, elements of
an entry, namespaces; and a base or a language that all that stands within would repeat.

Beyond feedparser: all of `skipHours` and `skipDays` (it keeps the last one of each), a guid that is never taken for a
link by itself, and `media:description`, `itunes:summary`, `dc:description` kept apart from the entry's own text.
"""

from __future__ import annotations

import re
import xml.sax
import xml.sax.handler
from contextlib import suppress
from typing import Any

import feedparser.api as feedparser
from feedparser.mixin import _FeedParserMixin
from feedparser.sgml import EndBracketMatch, sgmllib

from services.fetcher.parse.links import MAX_BASE_CHARS, is_resolvable
from services.fetcher.parse.model import Deadline, Unparseable, check_time

MAX_ENTRIES = 20_000
"""They cost 6 s of CPU and 120 MB; 50,000 would cost more time than a body has (`parse_seconds`). `extents` chooses the
newest, and what it takes for no entry and feedparser for one ends the reading."""

MAX_ELEMENTS = 300_000
"""Outside of content in markup; half a kilobyte each, at most."""

MAX_OPEN = 50_000
"""Elements that are open at a time, for want of an end tag or not."""

MAX_KINDS = 1_000
"""Elements of different names in one entry, and namespaces of a document."""

MAX_NAMESPACE_CHARS = 1_000
"""expat copies a namespace's URI for each element that is in it."""

MAX_SCOPE_CHARS = {"xml:base": MAX_BASE_CHARS, "base": MAX_BASE_CHARS, "xml:lang": 100, "lang": 100}
"""Attributes that hold for what stands within; longer ones are no such thing."""

MAX_AUTHOR_CHARS = 500
MAX_TAGS = 100
"""Per entry: feedparser compares each with all before it."""


class _Enough(Exception):
    """More entries or elements than anyone should send."""


class _TagEnd:
    """Where a tag ends for the loose parser: feedparser's expression, which keeps a way back from each character.

    There is none that could lead elsewhere; without them a tag of 1 MB no longer takes 150 MB.
    """

    _EXPRESSION = re.compile(r"""(?:[^'"<>]++|"[^"]*+"(?=>|/|\s|\w+=)|'[^']*+'(?=>|/|\s|\w+=))*+(?=[<>])|.*?(?=[<>])""")

    def search(self, target: str, index: int = 0) -> EndBracketMatch | None:
        """Return where the tag ends whose name begins at `index`."""
        found = self._EXPRESSION.match(target, index)
        return EndBracketMatch(found) if found else None


sgmllib.endbracket = _TagEnd()


def _joined(pieces: list[str | bytes]) -> str:
    return "".join([piece.decode() if isinstance(piece, bytes) else piece for piece in pieces])


class _Guards(_FeedParserMixin):  # type: ignore[misc]  # feedparser has no types
    """What both of feedparser's parsers do differently here."""

    resolve_relative_uris = False
    sanitize_html = False

    def __init__(self, *args: object) -> None:
        self._base, self._bases = "", dict[str, str]()
        super().__init__(*args)
        self.deadline: Deadline | None = None
        self.elements = 0
        self.skipped_hours: list[str] = []
        self.skipped_days: list[str] = []

    # Whatever feedparser is given comes by one of these; a few microseconds to a few milliseconds lie between two.

    def unknown_starttag(self, tag: str, attrs: list[tuple[str, str]]) -> None:
        check_time(self.deadline)
        self._count_element()
        attrs = [(name, value) for name, value in attrs if len(value) <= MAX_SCOPE_CHARS.get(name.lower(), len(value))]
        super().unknown_starttag(tag, attrs)

    def _count_element(self) -> None:
        if max(self.depth, len(self.elementstack)) >= MAX_OPEN:
            raise Unparseable("elements that are nested too deep")
        if not self.incontent:
            self.elements += 1
            if self.elements > MAX_ELEMENTS:
                raise _Enough
            if len(self._get_context()) > MAX_KINDS:
                raise Unparseable("more kinds of elements than any feed has")

    def track_namespace(self, prefix: str | None, uri: str) -> None:
        if len(self.namespaces_in_use) >= MAX_KINDS or len(uri) > MAX_NAMESPACE_CHARS:
            raise Unparseable("more namespaces, or longer ones, than any feed has")
        super().track_namespace(prefix, uri)

    @property
    def baseuri(self) -> str:
        """The base in force: the same object wherever it is the same, and of bounded length."""
        return self._base

    @baseuri.setter
    def baseuri(self, base: str) -> None:
        if len(base) <= MAX_BASE_CHARS:
            self._base = self._bases.setdefault(base, base)

    def resolve_uri(self, uri: str) -> str:
        return str(super().resolve_uri(uri)) if is_resolvable(uri) else uri

    def pop(self, element: str, strip_whitespace: int = 1) -> Any:
        name, _, pieces = self.elementstack[-1] if self.elementstack else ("", 0, [])
        if name == element and self.contentparams.get("type") == "application/xhtml+xml":
            start = next((at for at, piece in enumerate(pieces) if piece.strip()), len(pieces))
            if start > 1:  # feedparser drops white space a piece at a time, and moves all others each time
                pieces[:start] = [_joined(pieces[:start])]
        return super().pop(element, strip_whitespace)

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
        check_time(self.deadline)
        if len(self._get_context().get("tags", ())) < MAX_TAGS:
            super()._add_tag(term, scheme, label)

    # What nobody here asks for and feedparser takes apart at length: its own reading of dates, spans and coordinates.

    def _end_published(self) -> None:
        self.pop("published")

    _end_issued = _end_pubdate = _end_published

    def _end_updated(self) -> None:
        self.pop("updated")

    _end_modified = _end_lastbuilddate = _end_updated

    def _end_created(self) -> None:
        self.pop("created")

    def _end_expirationdate(self) -> None:
        self.pop("expired")

    def _end_dcterms_valid(self) -> None:
        self.pop("validity")

    def _end_georss_point(self) -> None:
        self.pop("geometry")

    _end_georss_line = _end_georss_polygon = _end_georss_box = _end_georss_point

    def _end_gml_pos(self) -> None:
        self.pop("pos")

    _end_gml_poslist = _end_gml_pos

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
