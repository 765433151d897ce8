"""Bounds on feedparser's state: what it keeps, and what it repeats for each element."""

from __future__ import annotations

import re
from typing import Any

from feedparser.mixin import _FeedParserMixin
from feedparser.sgml import EndBracketMatch, sgmllib

from services.fetcher.parse.model import Deadline, Unparseable, check_time
from services.fetcher.parse.text.links import MAX_BASE_CHARS, is_resolvable

MAX_ELEMENTS = 300_000
"""The limit for a document. Markup within texts does not count. Each element takes half a kilobyte at most."""

MAX_OPEN = 50_000
"""Elements that are open at the same time, for example since their end tags are missing."""

MAX_KINDS = 1_000
"""The limit for the names of elements in one entry, and for the namespaces of a document."""

MAX_NAMESPACE_CHARS = 1_000
"""expat copies a namespace's URI for each element that is in it."""

MAX_SCOPE_CHARS = {"xml:base": MAX_BASE_CHARS, "base": MAX_BASE_CHARS, "xml:lang": 100, "lang": 100}
"""Attributes that hold for the elements within. Longer values are ignored."""


class Enough(Exception):
    """The document has more entries or elements than are read; what was read counts."""


class _TagEnd:
    """The loose parser's expression for the end of a tag, made possessive.

    feedparser's own keeps a backtracking position for each character, 150 MB for a tag of 1 MB. None of them could lead
    to another match.
    """

    _EXPRESSION = re.compile(r"""(?:[^'"<>]++|"[^"]*+"(?=>|/|\s|\w+=)|'[^']*+'(?=>|/|\s|\w+=))*+(?=[<>])|.*?(?=[<>])""")

    def search(self, target: str, index: int = 0) -> EndBracketMatch | None:
        """Return where the tag ends whose name begins at `index`."""
        found = self._EXPRESSION.match(target, index)
        return EndBracketMatch(found) if found else None


sgmllib.endbracket = _TagEnd()


class BoundedParser(_FeedParserMixin):  # type: ignore[misc]  # feedparser has no types
    """A parser of feedparser's that asks the deadline at each start tag, and stops at more than any feed needs."""

    def __init__(self, *args: object) -> None:
        self._base, self._bases = "", dict[str, str]()
        super().__init__(*args)
        self.deadline: Deadline | None = None
        self._elements = 0

    def unknown_starttag(self, tag: str, attrs: list[tuple[str, str]]) -> None:
        """Read a start tag.

        Raises:
            OutOfTime: the deadline has passed.
            Unparseable: elements are nested too deep, or of too many kinds.
        """
        check_time(self.deadline)
        self._count_element()
        attrs = [(name, value) for name, value in attrs if len(value) <= MAX_SCOPE_CHARS.get(name.lower(), len(value))]
        super().unknown_starttag(tag, attrs)

    def _count_element(self) -> None:
        if max(self.depth, len(self.elementstack)) >= MAX_OPEN:
            raise Unparseable("elements that are nested too deep")
        if not self.incontent:
            self._elements += 1
            if self._elements > MAX_ELEMENTS:
                raise Enough
            if len(self._get_context()) > MAX_KINDS:
                raise Unparseable("more kinds of elements than any feed has")

    def track_namespace(self, prefix: str | None, uri: str) -> None:
        """Register a namespace. Raises Unparseable if there are too many, or this one is too long."""
        if len(self.namespaces_in_use) >= MAX_KINDS or len(uri) > MAX_NAMESPACE_CHARS:
            raise Unparseable("more namespaces, or longer ones, than any feed has")
        super().track_namespace(prefix, uri)

    @property
    def baseuri(self) -> str:
        """The base in force. Equal bases share one object, whose length is bounded."""
        return self._base

    @baseuri.setter
    def baseuri(self, base: str) -> None:
        if len(base) <= MAX_BASE_CHARS:
            self._base = self._bases.setdefault(base, base)

    def resolve_uri(self, uri: str) -> str:
        """Return an address resolved against the base, or as it is if that would take long."""
        return str(super().resolve_uri(uri)) if is_resolvable(uri) else uri

    def pop(self, element: str, strip_whitespace: int = 1) -> Any:
        """Return the text of the innermost open element, if it is this one, and store it."""
        name, _, pieces = self.elementstack[-1] if self.elementstack else ("", 0, [])
        if name == element and self.contentparams.get("type") == "application/xhtml+xml":
            start = next((at for at, piece in enumerate(pieces) if piece.strip()), len(pieces))
            if start > 1:  # feedparser drops white space a piece at a time, and moves all others each time
                pieces[:start] = [_joined(pieces[:start])]
        return super().pop(element, strip_whitespace)

    # Fields that nobody here uses, and that feedparser would spend much time on.

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


def _joined(pieces: list[str | bytes]) -> str:
    return "".join([piece.decode() if isinstance(piece, bytes) else piece for piece in pieces])
