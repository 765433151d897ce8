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
from itertools import chain
from xml.parsers import expat

from services.admin.subscriptions.model import BadList, Flaws, Listed
from services.admin.subscriptions.outlines import Outlines
from services.fetcher.parse.document import read_attributes

MAX_TAG_BYTES = 1024 * 1024
"""A longer tag or comment is refused: expat reads it from its beginning again with each block."""

MAX_SALVAGED_CHARACTERS = 16_384
"""Of one tag, when each outline is read by itself."""

MAX_ELEMENTS_OPEN = 512

MAX_BAD_TAGS = 1000

MAX_KINDS = 50
"""Of flaws: an entity by its name is one."""

_DECLARATION = re.compile(r"[\s\ufeff]*(?:<\?xml\b[^>]*\?>)?")
_AMPERSAND = re.compile(r"&(?!(?:lt|gt|amp|quot|apos);)(?:#(\w{1,8});|(\w{1,32};))?")
_UNFINISHED = re.compile(r"&[#\w]{0,33}\Z")
_OUTLINE = re.compile(r"<(/?)outline(?![\w:.-])", re.IGNORECASE)
_REST_OF_TAG = re.compile(r"""((?:\s*+[\w:.-]++\s*+=\s*+(?:"[^"]*+"|'[^']*+'))*+[^<>]*+)>""")

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
    outlines = Outlines(flaws)
    parser = expat.ParserCreate("utf-8")
    opened = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal opened
        opened += 1
        if opened > MAX_ELEMENTS_OPEN:
            raise BadList(parser.CurrentLineNumber, f"more than {MAX_ELEMENTS_OPEN} elements within each other")
        if name.lower() == "outline":
            outlines.start(parser.CurrentLineNumber, attributes)

    def end(name: str) -> None:
        nonlocal opened
        opened -= 1
        if name.lower() == "outline":
            outlines.end()

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    fed = 0
    for block in repair(blocks, flaws):
        data = block.encode()
        fed += len(data)
        try:
            parser.Parse(data, False)
        except (expat.ExpatError, BadList) as error:
            yield from outlines.found
            raise error if isinstance(error, BadList) else _not_well_formed(error) from None
        yield from outlines.found
        outlines.found.clear()
        if fed - parser.CurrentByteIndex > MAX_TAG_BYTES:
            raise BadList(parser.CurrentLineNumber, f"a tag or comment with more than {MAX_TAG_BYTES:,} bytes")
    try:
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise _not_well_formed(error) from None


def _not_well_formed(error: expat.ExpatError) -> BadList:
    if error.code in _ENDS:
        return BadList(error.lineno, "the file is cut off: it ends within an element", salvageable=True)
    reason = expat.errors.messages[error.code]
    return BadList(error.lineno, f"not well-formed XML: {reason} (column {error.offset + 1})", salvageable=True)


def repair(blocks: Iterable[str], flaws: Flaws) -> Iterator[str]:
    """Yield the text without a declaration, and with references that XML knows only. Lines stay where they are."""
    line, rest, is_first = 1, "", True
    for block in blocks:
        text, rest = rest + block, ""
        if is_first and (found := _DECLARATION.match(text)):
            text = "\n" * found[0].count("\n") + text[found.end() :]
        is_first = False
        if unfinished := _UNFINISHED.search(text, max(len(text) - 40, 0)):
            text, rest = text[: unfinished.start()], unfinished[0]
        yield _repair_references(text, line, flaws)
        line += text.count("\n")
    yield _repair_references(rest, line, flaws)


def _repair_references(text: str, line: int, flaws: Flaws) -> str:
    def repair(found: re.Match[str]) -> str:
        number, name = found.groups()
        if number and _is_legal(number):
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

    return _AMPERSAND.sub(repair, text) if "&" in text else text


def _is_legal(number: str) -> bool:
    try:
        code = int(number[1:], 16) if number[0] in "xX" else int(number)
    except ValueError:
        return False
    return code in {9, 10, 13} or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000


def read_salvaged(blocks: Iterable[str], flaws: Flaws) -> Iterator[Listed]:
    """Yield the feeds of a file that is not well-formed: of every outline whose own tag can be read.

    Raises:
        BadList: hardly any tag can be read, or outlines are nested too deep.
    """
    outlines = Outlines(flaws)
    text, line, bad = "", 1, 0
    for block in chain(repair(blocks, flaws), [None]):
        text += block or ""
        at = 0
        while found := _OUTLINE.search(text, at):
            start = found.start()
            line += text.count("\n", at, start)
            at = start
            tag = _REST_OF_TAG.match(text, found.end(), found.end() + MAX_SALVAGED_CHARACTERS)
            if tag is None and block is not None and len(text) - start < MAX_SALVAGED_CHARACTERS:
                break
            end = tag.end() if tag else found.end()
            if tag is None:
                bad += 1
                flaws.note("an outline that can't be read was left out", partial(int, line))
                if bad > MAX_BAD_TAGS:
                    raise BadList(line, f"more than {MAX_BAD_TAGS} outlines can't be read")
            elif found[1]:
                outlines.end()
            else:
                outlines.start(line, read_attributes(tag[1]))
                if tag[1].endswith("/"):
                    outlines.end()
            line += text.count("\n", start, end)
            at = end
        else:
            keep = max(len(text) - len("</outline "), at)  # a tag may have begun
            line += text.count("\n", at, keep)
            at = keep
        yield from outlines.found
        outlines.found.clear()
        text = text[at:]
