"""The elements of one piece of broken markup that have a name that feeds use, whether they are closed or not."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from string import ascii_lowercase, ascii_uppercase

from services.fetcher.parse.document import read_attributes
from services.fetcher.parse.model import Text
from services.fetcher.parse.text.links import own_address

MAX_ELEMENTS = 200
"""The limit for one piece; further elements are ignored."""

MAX_SHORT_CHARS = 10_000
"""An element without a text for people ends within so many characters, or where the next one begins."""

_KINDS = {
    **dict.fromkeys(["title", "itunes:title", "dc:title", "media:title"], "title"),
    **dict.fromkeys(["link", "atom:link"], "link"),
    **dict.fromkeys(["guid", "id"], "guid"),
    **dict.fromkeys(["pubdate", "published", "issued", "created", "dcterms:issued", "dcterms:created"], "published"),
    **dict.fromkeys(["updated", "modified", "dcterms:modified", "dc:date"], "updated"),
    **dict.fromkeys(["content:encoded", "content"], "content"),
    **dict.fromkeys(["description", "summary", "itunes:summary"], "summary"),
    **dict.fromkeys(["author", "dc:creator", "managingeditor"], "author"),
    **dict.fromkeys(["category", "dc:subject"], "category"),
    **dict.fromkeys(["language", "dc:language"], "language"),
    **{name: name for name in ("name", "enclosure", "ttl", "sy:updateperiod", "sy:updatefrequency")},
}
_OTHER = ("dc:", "dcterms:", "itunes:", "media:")
"""Prefixes of elements that the format's own elements have priority over."""
_LONG = frozenset({"title", "content", "summary"})
_START = re.compile(
    rf"<({'|'.join(sorted(_KINDS, key=len, reverse=True))})(?![\w.:-])([^<>]*+)>", re.IGNORECASE | re.ASCII
)
_TAG = re.compile(r"<[A-Za-z/!?][^<>]*+>")
_CDATA = re.compile(r"\s*+<!\[CDATA\[")
_CDATA_MARKS = re.compile(r"<!\[CDATA\[|\]\]>")
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)

Element = tuple[dict[str, str], str]
"""An element's attributes, and the markup within."""


@dataclass
class Piece:
    """The elements found, by kind, in order."""

    own: dict[str, list[Element]] = field(default_factory=dict)
    other: dict[str, list[Element]] = field(default_factory=dict)
    """Elements of Dublin Core, iTunes and Media RSS."""

    def elements(self, kind: str) -> list[Element]:
        """Return the elements of this kind, the format's own first."""
        return [*self.own.get(kind, ()), *self.other.get(kind, ())]

    def text(self, kind: str) -> Text:
        """Return the first text of this kind that is not empty."""
        for attributes, markup in self.elements(kind):
            if markup.strip():
                return Text(_unwrap(markup), is_html=attributes.get("type") != "text" or "<" in markup)
        return Text()

    def all_plain(self, kind: str) -> tuple[str, ...]:
        """Return all values of this kind without markup."""
        elements = self.elements(kind)
        found = (_plain(markup) or attributes.get("term", "") for attributes, markup in elements)
        return tuple(filter(None, found))

    def plain(self, kind: str) -> str:
        """Return the first value of this kind without markup, or ""."""
        return next(iter(self.all_plain(kind)), "")

    def attribute(self, kind: str, name: str) -> str:
        """Return an attribute of the first element of this kind, or ""."""
        return next((attributes.get(name, "") for attributes, _ in self.elements(kind)), "")

    def link(self) -> str:
        """Return the address that the links give, or ""."""
        links = self.elements("link")
        texts = [{**attributes, "href": text, "is_text": True} for attributes, m in links if (text := _plain(m))]
        return own_address([*texts, *[attributes for attributes, _ in links]])

    def enclosures(self) -> list[tuple[str, str, str]]:
        """Return address, media type and length of each enclosure."""
        links = [a for a, _ in self.elements("link") if a.get("rel", "").lower() == "enclosure"]
        found = [a for a, _ in self.elements("enclosure")] + links
        return [(a.get("url") or a.get("href", ""), a.get("type", ""), a.get("length", "")) for a in found]


def read_piece(source: str) -> Piece:
    """Return the known elements of `source`."""
    piece, at = Piece(), 0
    ends = _Ends(source)
    for _ in range(MAX_ELEMENTS):
        found = _START.search(source, at)
        if not found:
            break
        name = found[1].lower()
        kind, at = _KINDS[name], found.end()
        attributes = read_attributes(found[2])
        markup = ""
        if not found[2].endswith("/"):
            end = ends.find(name, at, is_long=kind in _LONG)
            markup, at = source[at:end], end
        found_as = piece.other if name.startswith(_OTHER) else piece.own
        found_as.setdefault(kind, []).append((attributes, markup))
    return piece


class _Ends:
    """Finds where elements end: a text for people at its end tag, others there or where the next element begins."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lower = source.translate(_LOWER) if not source.isascii() else source.lower()
        self._last: dict[str, int] = {}

    def find(self, name: str, start: int, *, is_long: bool) -> int:
        """Return where the element ends whose content begins at `start`."""
        tag = f"</{name}"
        if is_long:
            if name not in self._last:
                self._last[name] = self._lower.rfind(tag)
            if self._last[name] >= start:
                return self._lower.find(tag, self._past_cdata(start, self._last[name]))
            end = -1
        else:
            end = self._lower.find(tag, start, start + MAX_SHORT_CHARS)
        following = _START.search(self._source, start, end if end >= 0 else len(self._source))
        if following:
            return following.start()
        return end if end >= 0 else len(self._source)

    def _past_cdata(self, start: int, last: int) -> int:
        if not _CDATA.match(self._source, start):
            return start
        return max(self._source.find("]]>", start, last), start)


def _unwrap(markup: str) -> str:
    """Return HTML: the content of CDATA unchanged, other text unescaped once, unless it is markup already."""
    if "<![CDATA[" in markup:
        return _CDATA_MARKS.sub("", markup)
    return markup if "<" in markup else html.unescape(markup)


def _plain(markup: str) -> str:
    return html.unescape(_TAG.sub(" ", _CDATA_MARKS.sub("", markup))).strip()
