"""An entry's body as HTML that is safe to show, for those who want more than its text.

What is safe is nh3's judgement (ammonia over html5ever): known elements, known attributes, http and https. But it
builds a tree as browsers do, and that grows with the square of a hostile source: 40 KB of `<p><b id=1><b id=2>…<p>x…`
cost nh3 0.3.7 9.9 s and 2 GB, 900 KB of attributes on one tag 17 s, 100,000 levels 29 s, and no deadline ends that. So
a pass of our own goes before it, which reads the source once and writes it anew: what is opened is closed, in order and
few levels deep; no block stands within a paragraph, no link within a link, nothing in a table outside of its cells; a
tag has few attributes, their addresses absolute. There is nothing left to repair on which a tree could grow.
"""

from __future__ import annotations

import html

import nh3

from services.fetcher.parse.document import read_attributes
from services.fetcher.parse.model import Deadline, check_time
from services.fetcher.parse.text import split_tags
from services.fetcher.parse.text.links import MAX_URL_CHARS, absolute

MAX_HTML_CHARS = 1_000_000
GROWTH = 4
SMALL_CHARS = 10_000
"""HTML is also cut at `GROWTH` times its source, and so many characters: each `<a href=x>` could carry a long base."""

MAX_DEPTH = 100
"""Tags that are deeper are left out, their text stays."""

MAX_ATTRIBUTE_CHARS = 1_000

_REL = "noopener noreferrer nofollow"
_VOID = frozenset({"br", "hr", "img", "wbr"})
_SECTIONS = frozenset({"thead", "tbody", "tfoot"})
_CELLS = frozenset({"td", "th", "caption"})
_OF_TABLE = _SECTIONS | _CELLS | {"tr"}
_BLOCK_NAMES = (
    "address article aside blockquote dd details div dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 header hr li "
    "main nav ol p pre section summary table ul"
)
_INLINE_NAMES = (
    "a abbr b bdi bdo big br cite code del dfn em i img ins kbd mark q rp rt ruby s samp small span strike strong sub "
    "sup time tt u var wbr"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_ALLOWED = _BLOCKS | _OF_TABLE | frozenset(_INLINE_NAMES.split())

_ANYWHERE = frozenset({"dir", "lang", "title"})
_ATTRIBUTES = {
    "a": frozenset({"href"}),
    "blockquote": frozenset({"cite"}),
    "del": frozenset({"cite", "datetime"}),
    "img": frozenset({"alt", "height", "src", "width"}),
    "ins": frozenset({"cite", "datetime"}),
    "ol": frozenset({"start"}),
    "q": frozenset({"cite"}),
    "td": frozenset({"colspan", "rowspan"}),
    "th": frozenset({"colspan", "rowspan"}),
    "time": frozenset({"datetime"}),
}
_ADDRESSES = frozenset({"cite", "href", "src"})
_NEEDED = {"a": "href", "img": "src"}
"""Without it the tag means nothing."""

# What an element closes that is still open, the innermost of those; and beyond what it does not look.
_SIBLINGS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "a": (frozenset({"a"}), _CELLS),
    "li": (frozenset({"li"}), frozenset({"ol", "ul"}) | _CELLS),
    **dict.fromkeys(["dd", "dt"], (frozenset({"dd", "dt"}), _CELLS | {"dl"})),
    **dict.fromkeys(["rp", "rt"], (frozenset({"rp", "rt"}), _CELLS | {"ruby"})),
    **dict.fromkeys(["td", "th"], (_CELLS, frozenset({"table"}))),
    "tr": (_CELLS | {"tr"}, frozenset({"table"})),
    **dict.fromkeys(_SECTIONS, (_OF_TABLE, frozenset({"table"}))),
}

_CLEANER = nh3.Cleaner(
    tags=set(_ALLOWED),
    attributes={"*": set(_ANYWHERE)} | {name: set(known) for name, known in _ATTRIBUTES.items()},
    url_schemes={"http", "https"},
    url_relative="deny",
    link_rel=_REL,
)


def safe_html(source: str, *bases: str, deadline: Deadline | None = None) -> tuple[str, bool]:
    """Return the HTML of `source` that is safe to show, and whether it was cut; "" if there is no markup in it.

    Addresses are absolute, resolved against the first of `bases` that makes them so (`links.absolute`). Scripts,
    styles, forms, frames and what is embedded are gone. What is cut is balanced all the same.

    Raises:
        OutOfTime: the deadline has passed.
    """
    if "<" not in source:
        return "", False
    writer = _Writer(bases, min(MAX_HTML_CHARS, GROWTH * len(source) + SMALL_CHARS))
    for count, (text, tag, name) in enumerate(split_tags(source)):
        if not count % 256:
            check_time(deadline)
        writer.write_text(text)
        if tag.startswith("</"):
            writer.end(name.lower())
        elif name.lower() in _ALLOWED:
            writer.start(name.lower(), tag[len(name) + 1 : -1])
        if writer.is_cut:
            break
    check_time(deadline)
    found = _CLEANER.clean(writer.close()).strip()
    return (found if "<" in found else ""), writer.is_cut


class _Writer:
    """Writes HTML that needs no repair, up to a number of characters."""

    def __init__(self, bases: tuple[str, ...], limit: int) -> None:
        self.is_cut = False
        self._bases = bases
        self._left = limit
        self._pieces: list[str] = []
        self._open: list[str] = []

    def write_text(self, source: str) -> None:
        """Write text; directly within a table it opens a cell."""
        if not source:
            return
        if source.isspace() or self._is_in_cell():
            text = _escaped(source)
            if len(text) > self._left:
                self.is_cut = True
                text = _without_half_a_reference(text[: self._left])
            self._add(text, len(text))

    def start(self, name: str, markup: str) -> None:
        """Write a start tag, and before it the end tags that it implies."""
        written = _written(name, markup, self._bases)
        if written is None:
            return
        if name in _OF_TABLE:
            if not self._is_in_table(name):
                return
        elif not self._is_in_cell():
            return
        else:
            self._close(*_SIBLINGS.get(name, (frozenset(), frozenset())))
        if name in _BLOCKS:
            self._close(frozenset({"p"}), _CELLS)
        self._start(name, written)

    def end(self, name: str) -> None:
        """Write the end tag of the innermost element of this name, and of what is open within it."""
        self._close(frozenset({name}), frozenset() if name in _OF_TABLE or name == "table" else _CELLS)

    def close(self) -> str:
        """Return all that was written, with the end tags of what is still open."""
        self._close_from(0)
        return "".join(self._pieces)

    def _start(self, name: str, written: str = "") -> bool:
        start, end = f"<{name}{written}>", "" if name in _VOID else f"</{name}>"
        if self.is_cut or len(start) + len(end) > self._left:
            self.is_cut = True
            return False
        if name not in _VOID:
            if len(self._open) >= MAX_DEPTH:
                return False
            self._open.append(name)
        self._add(start, len(start) + len(end))
        return True

    def _add(self, written: str, cost: int) -> None:
        self._pieces.append(written)
        self._left -= cost

    def _part(self) -> str:
        """Return the innermost part of a table that is open, or ""."""
        return next((name for name in reversed(self._open) if name in _OF_TABLE or name == "table"), "")

    def _is_in_cell(self) -> bool:
        """Return whether text may stand here. Within a table it opens a cell for it: browsers would move it away."""
        part = self._part()
        if not part or part in _CELLS:
            return True
        return self._is_in_row(part) and self._start("td")

    def _is_in_row(self, part: str) -> bool:
        """Return whether a cell may stand within this part, once section and row are open that browsers would add."""
        if part == "tr":
            return True
        return (part in _SECTIONS or (part == "table" and self._start("tbody"))) and self._start("tr")

    def _is_in_table(self, name: str) -> bool:
        """Return whether this part of a table may stand here, once what it ends is closed and its row is open."""
        while self._close(*(_SIBLINGS.get(name) or (_OF_TABLE, frozenset({"table"})))):
            pass
        part = self._part()
        if name in {"td", "th"}:
            return self._is_in_row(part)
        return part in _SECTIONS or (part == "table" and self._start("tbody")) if name == "tr" else part == "table"

    def _close(self, names: frozenset[str], beyond: frozenset[str]) -> bool:
        """Close the innermost open element that is one of `names`, if it is not beyond one of the others."""
        for at in range(len(self._open) - 1, -1, -1):
            if self._open[at] in names:
                self._close_from(at)
                return True
            if self._open[at] in beyond:
                return False
        return False

    def _close_from(self, at: int) -> None:
        while len(self._open) > at:
            self._pieces.append(f"</{self._open.pop()}>")


def _written(name: str, markup: str, bases: tuple[str, ...]) -> str | None:
    """Return the attributes of a tag that are kept, or None if it lacks what it needs."""
    needed = _NEEDED.get(name)
    if "=" not in markup:
        return None if needed else ""
    known = _ATTRIBUTES.get(name, frozenset()) | _ANYWHERE
    kept: dict[str, str] = {}
    for key, value in read_attributes(markup).items():
        if key not in known:
            continue
        if key in _ADDRESSES:
            kept[key] = absolute(value, *bases) if len(value) <= MAX_URL_CHARS else ""
        else:
            kept[key] = value[:MAX_ATTRIBUTE_CHARS]
    if needed and not kept.get(needed):
        return None
    if name == "a":
        kept["rel"] = _REL
    return "".join([f' {key}="{html.escape(value)}"' for key, value in kept.items() if value or key == "alt"])


def _escaped(source: str) -> str:
    """Return text as nh3 writes it, so that what is counted here holds."""
    return html.escape(html.unescape(source), quote=False).replace("\xa0", "&nbsp;")


def _without_half_a_reference(text: str) -> str:
    head, mark, tail = text.rpartition("&")
    return head if mark and ";" not in tail else text
