"""The strict tier: reads well-formed feeds at a tenth of the lenient tier's cost, with the same answer in each field.

expat builds a tree (`tree`). It gets no DTD, so that there is nothing to resolve or to open. Then each element is read
as feedparser reads it (`elements`, `inline`, `extras`). A document with anything else is declined, and the lenient tier
reads it. Elements that feedparser handles (`guarded_feedparser.HANDLED`) are declined unless a table here lists them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any
from xml.etree.ElementTree import Element

from services.fetcher.parse.document import Document
from services.fetcher.parse.fields import Fields, raw_entry, raw_feed
from services.fetcher.parse.formats.lenient.guarded_feedparser import APART
from services.fetcher.parse.formats.strict.elements import Elements, Handler
from services.fetcher.parse.formats.strict.extras import (
    OF_IMAGE,
    chapter,
    image_of_entry,
    itunes_category,
    media_category,
    nested_category,
    pass_person,
    place,
    read_author,
)
from services.fetcher.parse.formats.strict.handlers import Handlers, check_meaningless, plain_into, text_into
from services.fetcher.parse.formats.strict.inline import leaf_text, plain_text, repaired
from services.fetcher.parse.formats.strict.tree import Attributes, Tree, attributes_of
from services.fetcher.parse.model import Deadline, Declined, RawEntry, RawFeed, check_time

MAX_ENTRIES = 60_000
"""A feed with more is declined. `entries` keeps the newest of these."""

ENTRIES_BETWEEN_QUESTIONS = 8
"""The deadline is asked once for so many entries, since the answer takes longer than most elements."""


def read_strict(document: Document, deadline: Deadline | None = None) -> RawFeed:
    """Return the feed in `document`.

    Raises:
        Declined: it is not well-formed, or has elements that only the lenient tier reads.
        OutOfTime: the deadline has passed.
    """
    tree = Tree(document.source, deadline)
    reader = _Reader(tree, deadline)
    reader.read(tree.root)
    feed = raw_feed(
        reader.feed,
        reader.entries,
        is_atom=reader.is_atom,
        hours=reader.hours,
        days=reader.days,
        warnings=document.warnings,
    )
    scope = None if reader.is_leaky else tree.scope()
    return replace(feed, empty=reader.empty, places=tuple(reader.places), scope=scope)


def _version(tree: Tree) -> str:
    name = tree.names[tree.root.tag]
    if name == "rss":
        return "rss"
    return tree.version or ("atom" if name == "feed" else "")


class _Reader(Elements):
    """Reads the root element and the channel; hands each entry to `Elements`."""

    def __init__(self, tree: Tree, deadline: Deadline | None) -> None:
        self.version = _version(tree)
        super().__init__(tree.names, self.version)
        self._deadline = deadline
        self._outside, self._of_feed, self._of_entry = (
            Handlers(table, tree.names) for table in (_OUTSIDE, _FEED, _ENTRY)
        )
        self.feed: Fields = self.fields
        self.entries: list[RawEntry] = []
        self.empty = 0
        """The number of entries without content, which are not in `entries`."""
        self.places: list[int] = []
        self.is_leaky = False
        """Whether what stands before an entry, for example another entry, may have changed its meaning."""
        self.hours: list[str] = []
        self.days: list[str] = []
        self._has_channel = False

    def read(self, root: Element) -> None:
        """Read the whole document."""
        name, attributes = self.names[root.tag], attributes_of(root)
        self.enter(attributes)
        if self.language and name in {"feed", "rss"}:
            self.feed["language"] = self.language
        if name == "feed":
            _check_no_cdf(attributes)
            self.table = self._of_feed
        elif name in {"rss", "rdf_rdf"} and self.version:
            self.table = self._outside
        else:
            raise Declined(f"<{name}> as the root element")
        self.read_children(root, 1)

    def channel(self, element: Element, attributes: Attributes, depth: int) -> None:
        """Read the channel; a second one is declined."""
        _check_no_cdf(attributes)
        if self._has_channel:
            raise Declined("two channels")
        self._has_channel = True
        self.table = self._of_feed
        self.read_children(element, depth)
        self.table = self._outside

    def entry(self, element: Element, attributes: Attributes, depth: int) -> None:
        """Read an entry."""
        count = len(self.entries) + self.empty
        if not count % ENTRIES_BETWEEN_QUESTIONS:
            check_time(self._deadline)
        if count >= MAX_ENTRIES:
            raise Declined("more entries than anyone should send")
        self._check_leaks()
        about = ""
        if attributes:
            _check_no_cdf(attributes)
            about = attributes.get("rdf:about", "")
        if not (len(element) or about):
            self.empty += 1
            self.title_depth = -1
            return
        table, self.table = self.table, self._of_entry
        self.fields, self.depths, self.title_depth = {}, {}, -1
        if about:
            self.fields["id"] = about
        self.read_children(element, depth)
        self._add(raw_entry(self.fields))
        self.fields, self.depths, self.table, self.has_content = self.feed, None, table, False
        self._check_leaks()

    def _check_leaks(self) -> None:
        """Note a base or a state that holds beyond its element."""
        if self.has_content or (self.base and not self.outer_base):
            self.is_leaky = True

    def _add(self, entry: RawEntry) -> None:
        if entry.is_empty():
            self.empty += 1
        else:
            self.places.append(len(self.entries) + self.empty)
            self.entries.append(entry)

    def image(self, element: Element, _attributes: Attributes, depth: int) -> None:
        """Pass over an image or a search box; its title ends the feed's claim to be the first."""
        self.title_depth = -1
        known = OF_IMAGE if self.names[element.tag] == "image" else _OF_SEARCH_BOX
        for child in element:
            name, given = self.names[child.tag], attributes_of(child)
            if name not in known or (given and (name == "title" or "base" in given or "xml:base" in given)):
                raise Declined(f"<{name}> within an image")
            if leaf_text(child) and name == "title":
                self.title_depth = depth + 1

    def source(self, element: Element, _attributes: Attributes, depth: int) -> None:
        """Pass over the feed from which an entry was taken."""
        self.title_depth = -1
        for child in element:
            name, given = self.names[child.tag], attributes_of(child)
            if name not in _OF_SOURCE or "base" in given or "xml:base" in given:
                raise Declined(f"<{name}> within a source")
            if name in {"author", "contributor"}:
                pass_person(self, child, {}, depth + 1)
            elif leaf_text(child) and name == "title":
                self.title_depth = depth + 1

    def skipped(self, element: Element, attributes: Attributes, _depth: int) -> None:
        """Read the hours or the days at which the feed is not to be polled."""
        kind, found = ("hour", self.hours) if self.names[element.tag] == "skiphours" else ("day", self.days)
        for child in element:
            name, value = self.names[child.tag], leaf_text(child)
            if child.keys() or attributes:
                raise Declined("odd hours or days to skip")
            if name != kind:
                check_meaningless(name)
            elif value := repaired(value):
                found.append(value)

    def interval(self, element: Element, attributes: Attributes, depth: int) -> None:
        """Read `ttl` and its like; feedparser drops the text of one with attributes."""
        value = plain_text(element)
        self.fields[self.names[element.tag]] = "" if attributes else value


_OF_SEARCH_BOX = frozenset({"title", "link", "description", "name"})
_OF_SOURCE = frozenset(
    {"title", "id", "updated", "link", "author", "subtitle", "rights", "category", "generator", "icon", "logo"}
    | {"contributor", "published"}
)


def _check_no_cdf(attributes: Attributes) -> None:
    if "lastmod" in attributes or "href" in attributes:
        raise Declined("Channel Definition Format")


def _feed_author(reader: Elements, element: Element, attributes: Attributes, depth: int) -> None:
    """Read the author of an Atom feed; that of another format says nothing of the entries."""
    (read_author if reader.is_atom else pass_person)(reader, element, attributes, depth)


def _all(names: str, handler: Handler) -> dict[str, Any]:
    return dict.fromkeys(names.split(), handler)


_ENCODED = partial(Elements.content, default="text/html")

_COMMON: dict[str, Any] = {
    "title": Elements.title,
    **{name: text_into(name, kind) if kind else plain_into(name) for name, kind in APART.items()},
    "link": Elements.link,
    **_all("guid id", Elements.guid),
    **_all("subtitle tagline itunes_subtitle", text_into("subtitle", "text/plain")),
    **_all("rights copyright dc_rights", text_into("rights", "text/plain")),
    **_all("info feedburner_browserfriendly", text_into("info", "text/plain")),
    "language": Elements.language_of,
    "media_group": Elements.transparent,
    "media_content": Elements.media_content,
    "contributor": pass_person,
    **_all(
        "cloud generator webmaster dc_publisher dc_contributor expirationdate dcterms_valid width height url uri "
        "homepage email name itunes_name itunes_email itunes_image itunes_link itunes_block itunes_explicit "
        "media_thumbnail media_credit media_rating media_restriction media_license media_player cc_license "
        "creativecommons_license creativeCommons_license georss_point georss_line georss_polygon georss_box "
        "newlocation",
        Elements.ignored,
    ),
    **_all("where georss_where", place),
}

_ENTRY: dict[str, Any] = {
    **_COMMON,
    "description": partial(Elements.summary, default="text/html"),
    "summary": Elements.summary,
    "abstract": text_into("summary", "text/plain"),
    "content": Elements.content,
    **_all("content_encoded fullitem", _ENCODED),
    **_all("body xhtml_body", Elements.full_text),
    **_all("published issued pubdate", plain_into("published")),
    **_all("updated modified lastbuilddate", plain_into("updated")),
    "created": plain_into("created"),
    **_all("author managingeditor dc_author dc_creator itunes_author", read_author),
    **_all("category keywords dc_subject", Elements.category),
    "media_category": media_category,
    "itunes_category": itunes_category,
    "itunes_keywords": partial(Elements.keywords, scheme="http://www.itunes.com/"),
    "media_keywords": partial(Elements.keywords, scheme=None),
    "tags": lambda reader, element, _attributes, _depth: reader.keywords(element, {}, 0, scheme=None),
    "psc_chapters": Elements.transparent,
    "psc_chapter": chapter,
    "itunes_owner": pass_person,
    "enclosure": Elements.enclosure,
    "source": _Reader.source,
    "image": image_of_entry,
}

_OUTSIDE: dict[str, Any] = {
    "channel": _Reader.channel,
    **_all("item entry", _Reader.entry),
    **_all("image textinput", _Reader.image),
}

_FEED: dict[str, Any] = {
    **_COMMON,
    **_all("item entry", _Reader.entry),
    **_all("image textinput", _Reader.image),
    "description": text_into("subtitle", "text/html"),
    "abstract": text_into("subtitle", "text/plain"),
    **_all("skiphours skipdays", _Reader.skipped),
    **_all("ttl sy_updateperiod sy_updatefrequency", _Reader.interval),
    **_all(
        "published issued pubdate dcterms_issued updated modified lastbuilddate dc_date dcterms_modified created "
        "dcterms_created category keywords dc_subject media_category itunes_keywords media_keywords tags",
        Elements.ignored,
    ),
    "summary": Elements.summary,
    "content": Elements.content,
    **_all("content_encoded fullitem", _ENCODED),
    "enclosure": Elements.enclosure,
    "itunes_category": nested_category,
    **_all("author managingeditor dc_author dc_creator itunes_author", _feed_author),
    "itunes_owner": pass_person,
}
