"""OPML to feeds, by expat, in one pass and bounded memory.

Repaired on the way, since no feed can be lost by it: references that XML does not define (`&nbsp;`), an `&` that is
not escaped, references to characters that XML does not allow, white space before the declaration, and a wrong
declaration of the encoding. As every reference by a name becomes text here, a DTD's entities never expand.

Everything else that is not well-formed (a cut file, wrong nesting, `<` in an attribute) is refused, since feeds may be
missing or in a wrong folder. `read_salvaged` reads on: it takes each outline by itself.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from functools import partial
from html.entities import html5
from typing import NoReturn
from xml.parsers import expat

from services.admin.subscriptions.model import BadList, Flaws, Listed
from services.admin.subscriptions.outlines import Outlines
from services.fetcher.parse.document import is_legal, read_attributes

MAX_TAG_BYTES = 1024 * 1024
"""A longer tag or comment is refused: expat reads it from its beginning again with each block."""

MAX_SALVAGED_CHARACTERS = 16_384
"""Of one tag, when each outline is read by itself."""

MAX_ELEMENTS_OPEN = 512

MAX_NAMES = 10_000
"""Of elements and attributes. expat keeps all of them."""

MAX_BAD_TAGS = 1000

MAX_REPAIRS = 1_000_000

MAX_KINDS = 50
"""Of flaws: an entity by its name is one."""

_DECLARATION = re.compile(r"[\s\ufeff]*(?:<\?xml\b[^>]*\?>)?")
_AMPERSAND = re.compile(r"&(?!(?:lt|gt|amp|quot|apos);)(?:#(\w{1,8});|(\w{1,32};))?")
_UNFINISHED = re.compile(r"&[#\w]{0,33}\Z")
_OUTLINE = re.compile(r"<(/?)outline(?![\w:.-])", re.IGNORECASE)
_OTHER = r"<(?!/?outline(?![\w:.-]))"
"""A `<` within a value, unless another outline begins there: then a quote is missing."""
_VALUE = rf""""(?:[^"<]++|{_OTHER})*+"|'(?:[^'<]++|{_OTHER})*+'"""
_REST_OF_TAG = re.compile(rf"((?:\s*+[\w:.-]++\s*+=\s*+(?:{_VALUE}))*+[^<>]*+)>", re.IGNORECASE)

_ENDS = {
    expat.errors.codes[text]
    for text in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
    )
}


def read_opml(blocks: Iterable[str], flaws: Flaws) -> Iterator[Listed]:
    """Yield the feeds of an OPML file.

    Raises:
        BadList: it is not well-formed, or exceeds a bound.
    """
    parser = _Parser(flaws)
    for block in repair(blocks, flaws):
        try:
            parser.read(block.encode())
        finally:  # those before a bad place are counted
            yield from parser.outlines.found
        parser.outlines.found.clear()
    parser.end()


class _Parser:
    """expat, with bounds for what it would keep in memory or read more than once."""

    def __init__(self, flaws: Flaws) -> None:
        self.outlines = Outlines(flaws)
        self._names: dict[str, str] = {}
        self._expat = parser = expat.ParserCreate("utf-8", None, self._names)
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._start_doctype
        parser.EndDoctypeDeclHandler = self._end_doctype
        self._bytes = 0
        self._open = 0
        self._doctype: int | None = None
        """Where the DOCTYPE begins that is not over yet."""

    def read(self, data: bytes) -> None:
        """Read the next piece. Raises BadList."""
        self._parse(data)
        self._bytes += len(data)
        begun = self._expat.CurrentByteIndex if self._doctype is None else self._doctype
        if self._bytes - begun > MAX_TAG_BYTES:
            self._refuse(f"a tag, comment or DOCTYPE with more than {MAX_TAG_BYTES:,} bytes")
        if len(self._names) > MAX_NAMES:
            self._refuse(f"more than {MAX_NAMES:,} names of elements and attributes")

    def end(self) -> None:
        """Take note that the file ends. Raises BadList."""
        self._parse(b"", is_last=True)

    def _parse(self, data: bytes, *, is_last: bool = False) -> None:
        try:
            self._expat.Parse(data, is_last)
        except expat.ExpatError as error:
            raise _not_well_formed(error) from None

    def _refuse(self, reason: str) -> NoReturn:
        raise BadList(self._expat.CurrentLineNumber, reason)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._open += 1
        if self._open > MAX_ELEMENTS_OPEN:
            self._refuse(f"more than {MAX_ELEMENTS_OPEN} elements within each other")
        if name.lower() == "outline":
            self.outlines.start(self._expat.CurrentLineNumber, attributes)

    def _end(self, name: str) -> None:
        self._open -= 1
        if name.lower() == "outline":
            self.outlines.end()

    def _start_doctype(self, *_: object) -> None:
        self._doctype = self._expat.CurrentByteIndex

    def _end_doctype(self) -> None:
        self._doctype = None


def _not_well_formed(error: expat.ExpatError) -> BadList:
    if error.code in _ENDS:
        return BadList(error.lineno, "the file is cut off: it ends within an element", salvageable=True)
    reason = expat.errors.messages[error.code]
    return BadList(error.lineno, f"the XML is broken: {reason} (column {error.offset + 1})", salvageable=True)


def repair(blocks: Iterable[str], flaws: Flaws) -> Iterator[str]:
    """Yield the text without a declaration, and with references that XML knows only. Lines stay where they are."""
    line, rest, is_first, repaired = 1, "", True, 0
    for block in blocks:
        text, rest = rest + block, ""
        if is_first and (found := _DECLARATION.match(text)):
            text = "\n" * found[0].count("\n") + text[found.end() :]
        is_first = False
        if unfinished := _UNFINISHED.search(text, max(len(text) - 40, 0)):
            text, rest = text[: unfinished.start()], unfinished[0]
        clean, references = _repair_references(text, line, flaws)
        repaired += references
        yield clean
        line += text.count("\n")
        if repaired > MAX_REPAIRS:
            raise BadList(line, f"more than {MAX_REPAIRS:,} references that XML does not define")
    yield _repair_references(rest, line, flaws)[0]


def _repair_references(text: str, line: int, flaws: Flaws) -> tuple[str, int]:
    def repair(found: re.Match[str]) -> str:
        number, name = found.groups()
        if number and is_legal(number):
            return found[0]
        known = name and html5.get(name)
        if number:
            what = f"&#{number}; stands for no character: left out"
        elif known:
            what = f"&{name} is not defined in XML: read as in HTML"
        elif name:
            what = "an & that is not escaped, or an entity that is not defined: read as plain text"
        else:
            what = "an & that is not escaped: read as &amp;"
        what = what if len(flaws.by_text) < MAX_KINDS else "more references that XML does not define"
        flaws.note(what, lambda: line + text.count("\n", 0, found.start()))
        return "" if number else html.escape(known) if known else f"&amp;{name or ''}"

    return _AMPERSAND.subn(repair, text) if "&" in text else (text, 0)


def read_salvaged(blocks: Iterable[str], flaws: Flaws) -> Iterator[Listed]:
    """Yield the feeds of a file that is not well-formed: of every outline whose own tag can be read.

    Raises:
        BadList: hardly any tag can be read, or outlines are nested too deep.
    """
    salvage = _Salvage(flaws)
    for block in repair(blocks, flaws):
        salvage.read(block)
        yield from salvage.outlines.found
        salvage.outlines.found.clear()
    salvage.read("", is_last=True)
    yield from salvage.outlines.found


class _Salvage:
    """Reads the tags of outlines out of text that comes in pieces, and passes over everything else."""

    def __init__(self, flaws: Flaws) -> None:
        self.outlines = Outlines(flaws)
        self._flaws = flaws
        self._text = ""
        self._line = 1
        self._bad = 0

    def read(self, block: str, *, is_last: bool = False) -> None:
        self._text += block
        at = 0
        while found := _OUTLINE.search(self._text, at):
            at = self._pass(at, found.start())
            tag = _REST_OF_TAG.match(self._text, found.end(), found.end() + MAX_SALVAGED_CHARACTERS)
            if tag is None and not is_last and len(self._text) - at < MAX_SALVAGED_CHARACTERS:
                break  # its end may come
            self._take(is_end=bool(found[1]), attributes=tag and tag[1])
            at = self._pass(at, tag.end() if tag else found.end())
        else:
            at = self._pass(at, max(len(self._text) - len("</outline "), at))  # a tag may have begun
        self._text = self._text[at:]

    def _pass(self, start: int, end: int) -> int:
        self._line += self._text.count("\n", start, end)
        return end

    def _take(self, *, is_end: bool, attributes: str | None) -> None:
        if attributes is None:
            self._bad += 1
            self._flaws.note("an outline that can't be read was left out", partial(int, self._line))
            if self._bad > MAX_BAD_TAGS:
                raise BadList(self._line, f"more than {MAX_BAD_TAGS} outlines can't be read")
        elif is_end:
            self.outlines.end()
        else:
            self.outlines.start(self._line, read_attributes(attributes))
            if attributes.endswith("/"):
                self.outlines.end()
