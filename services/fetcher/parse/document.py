"""From a body's text to the XML document that the strict and the lenient tier read.

No tier sees a DOCTYPE: it is cut off here. So there is no external entity to fetch, no parameter entity, and no
expansion within a parser (CWE-611, CWE-776). A DTD may legitimately declare a short text for a name: that text is put
in here, if all of them together stay small.
"""

from __future__ import annotations

import html
import re
from collections.abc import Container
from dataclasses import dataclass
from html.entities import name2codepoint
from itertools import islice
from xml.sax.saxutils import escape

from services.fetcher.parse.model import Deadline, NotAFeed, check_time

MAX_EXPANSION_CHARS = 100_000
MAX_ENTITIES = 300
"""A document's own entities stay unexpanded if they exceed this total, or this number."""

MAX_TAGS = 800_000
MAX_REFERENCES = 1_000_000
"""A document is cut before its `<` or `&` of this number, which bounds a parse in memory. 10 MiB of the densest real
feed that we know would have 350,000 `<`."""

MAX_TAG_CHARS = 1_000_000
"""The rest of a longer tag is dropped."""

MAX_ATTRIBUTES = 256
"""The limit for one tag; further attributes are dropped. feedparser's time grows with the square of their number."""

_HTML_ROOTS = frozenset({"html", "head", "body"})
_HTML_PIECES = frozenset({"b", "br", "center", "div", "font", "h1", "meta", "p", "script", "style", "table", "title"})

_ILLEGAL_BYTES = bytes([*range(9), 0x0B, 0x0C, *range(0x0E, 0x20)])
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # XML 1.0, section 2.2
_NAME = re.compile(r"<([A-Za-z_][\w.:-]*)")
_NEXT = re.compile(r"<(?=[A-Za-z_?]|!--|!DOCTYPE)", re.IGNORECASE)
_FEED_ROOT = re.compile(r"<(rss(?=[\s>])|rdf:RDF(?=[\s>])|feed(?=\s[^<>]{0,500}?xmlns))", re.IGNORECASE)
_SUBSET_TOKEN = re.compile(r"\"[^\"]*\"|'[^']*'|<!--|[\[\]>]")
_ENTITY = re.compile(r"<!ENTITY\s+([A-Za-z_][\w.-]*)\s+(\"[^\"&%<]*\"|'[^'&%<]*'|\"&#\w{1,8};\"|'&#\w{1,8};')\s*>")
_ATTRIBUTE = r"\s++[^\s<>/=\"']++\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+')"
_HALF_OF_LONG_TAG = 5 * MAX_ATTRIBUTES // 2
"""A longer tag than twice this has this many characters from any position on, none of them a `<`."""
_MANY_ATTRIBUTES = re.compile(rf"(<[A-Za-z_][^\s<>/=]*+(?:{_ATTRIBUTE}){{{MAX_ATTRIBUTES}}}+)(?:{_ATTRIBUTE})++")
_LONG_TAG = re.compile(rf"(<[A-Za-z/][^<>]{{{MAX_TAG_CHARS}}})[^<>]+")
# The five names that XML itself knows are left to the parser, and nearly all numbers that XML allows.
_REFERENCE = re.compile(
    r"&(?!(?:lt|gt|amp|quot|apos|#(?:3[2-9]|[4-9][0-9]|[1-9][0-9]{2,3}|[12][0-9]{4}"
    r"|x(?:[2-9a-fA-F][0-9a-fA-F]|[1-9a-cA-C][0-9a-fA-F]{2,3})));)(#?\w{1,64});"
)
_CDATA = "<![CDATA["
# Looked for at the beginning of a name only: from each of its characters, 40 KB of letters took 5 s.
_ATTRIBUTE_VALUE = re.compile(
    r"(?<![\w:.-])([\w:.-]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|((?:[^\s\"'>/]|/(?!\Z))++))"
)


@dataclass(frozen=True, slots=True)
class Document:
    """A document from its root element on, safe to parse: no DTD, no illegal character, no reference by a name."""

    root: str
    """The name of the root element, in lower case and without prefix."""
    source: str
    warnings: tuple[str, ...] = ()
    """What is wrong with the document although it is read."""


def prepare(text: str, roots: Container[str], deadline: Deadline | None = None) -> Document:
    """Return the document in `text`.

    Args:
        text: the body.
        roots: the root elements of feeds, in lower case and without prefix.
        deadline: returns whether the time is up.

    Raises:
        NotAFeed: the text has no such root element: it is an HTML page, another XML, or no markup at all.
        OutOfTime: the deadline has passed.
    """
    text, warnings = strip_illegal(text), list[str]()
    prolog = read_prolog(text, deadline)
    root, start = prolog.root, prolog.start
    if not root:
        raise NotAFeed("neither XML nor JSON" if text.strip() else "an empty body")
    if root in _HTML_ROOTS:
        raise NotAFeed("an HTML page")
    if root not in roots:
        found = _FEED_ROOT.search(text, start)
        if not found:
            is_html = prolog.is_html or root in _HTML_PIECES
            raise NotAFeed("an HTML page" if is_html else f"XML with the root element <{root[:40]}>")
        root, start = found[1].rpartition(":")[2].lower(), found.start()
        warnings.append("something else stands before the feed")
    text, is_cut = cut_markup(text[start:])
    if is_cut:
        warnings.append("more markup than any feed needs: cut")
    return Document(root, resolve_references(text, prolog.declarations), tuple(warnings))


@dataclass(frozen=True, slots=True)
class Prolog:
    """The text before the root element."""

    root: str
    """The name of the root element, in lower case and without prefix; "" if there is no element."""
    start: int
    is_html: bool
    declarations: str


def read_prolog(text: str, deadline: Deadline | None = None) -> Prolog:
    """Return the prolog of `text`, in time proportional to its length.

    Raises:
        OutOfTime: the deadline has passed.
    """
    at, is_html, declarations, is_whole = 0, False, "", True
    while at >= 0 and (opening := _NEXT.search(text, at)):
        check_time(deadline)
        at = opening.start()
        if found := _NAME.match(text, at):
            return Prolog(found[1].rpartition(":")[2].lower(), at, is_html, declarations)
        if text.startswith("<!--", at):
            at = text.find("-->", at)
        elif text.startswith("<?", at):
            at = text.find("?>", at)
        else:
            end = _end_of_doctype(text, at, deadline) if is_whole else -1
            is_whole = end >= 0  # if not, the text was read to its end, which must not happen again
            end = end if is_whole else text.find(">", at)
            declarations = text[at:end] if end > 0 else ""
            is_html = declarations[9:].lstrip()[:4].lower() == "html"
            at = end
    return Prolog("", len(text), is_html, declarations)


def _end_of_doctype(text: str, start: int, deadline: Deadline | None) -> int:
    """Return where the `>` of the DOCTYPE stands, past its internal subset; -1 if that never ends."""
    depth, at = 0, start + 9
    while token := _SUBSET_TOKEN.search(text, at):
        check_time(deadline)
        at = token.end()
        if token[0] == "<!--":
            at = text.find("-->", at)
            if at < 0:
                break
        elif token[0] == "[":
            depth = 1
        elif token[0] == "]":
            depth = 0
        elif token[0] == ">" and not depth:
            return token.start()
    return -1


def strip_illegal(text: str) -> str:
    """Return `text` without the characters that XML does not allow, NUL among them."""
    try:
        raw = text.encode()  # the expression alone takes ten times as long
    except UnicodeEncodeError:
        return _ILLEGAL.sub("", text)
    is_legal = len(raw.translate(None, _ILLEGAL_BYTES)) == len(raw) and "\ufffe" not in text and "\uffff" not in text
    return text if is_legal else _ILLEGAL.sub("", text)


def resolve_references(text: str, declarations: str) -> str:
    """Return `text` with named references replaced by characters; unknown ones become plain text.

    Known names are those of HTML 4, and the plain texts that `declarations` (a DTD) declares. Numeric references to
    characters that XML does not allow become U+FFFD.
    """
    if "&" not in text:
        return text
    names = _declared(text, declarations)

    def resolve(match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("#"):
            return match[0] if is_legal(name[1:]) else "\ufffd"
        if name in names:
            return names[name]
        return chr(name2codepoint[name]) if name in name2codepoint else f"&amp;{name};"

    pieces: list[str] = []
    at = 0
    while (start := text.find(_CDATA, at)) >= 0:
        end = text.find("]]>", start)
        end = end + 3 if end >= 0 else len(text)
        pieces += (_REFERENCE.sub(resolve, text[at:start]), text[start:end])
        at = end
    return "".join([*pieces, _REFERENCE.sub(resolve, text[at:])])


def _declared(text: str, declarations: str) -> dict[str, str]:
    names: dict[str, str] = {}
    for name, value in _ENTITY.findall(declarations):
        names.setdefault(name, escape(html.unescape(value[1:-1])))
    if not names or len(names) > MAX_ENTITIES:
        return {}
    size = sum(len(names[found[1]]) for found in _REFERENCE.finditer(text) if found[1] in names)
    return names if size <= MAX_EXPANSION_CHARS else {}


def is_legal(number: str) -> bool:
    """Return whether XML allows the character that `&#number;` stands for."""
    try:
        code = int(number[1:], 16) if number[0] in "xX" else int(number)
    except ValueError:
        return False
    return code in {9, 10, 13} or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000


def cut_before(text: str, mark: str, limit: int) -> str:
    """Return `text` up to the first `mark` (one character) beyond `limit`."""
    if len(text) <= limit or text.count(mark) <= limit:
        return text
    return text[: next(islice(re.finditer(mark, text), limit, None)).start()]


def cut_markup(text: str) -> tuple[str, bool]:
    """Return `text` within the bounds of this module, and whether anything was cut."""
    length = len(text)
    text = cut_before(cut_before(text, "<", MAX_TAGS), "&", MAX_REFERENCES)
    if len(text) > MAX_TAG_CHARS:
        text = _LONG_TAG.sub(r"\1", text)
    if text.count("=") > MAX_ATTRIBUTES:
        text = _cut_attributes(text)
    return text, len(text) < length


def _cut_attributes(text: str) -> str:
    """Return `text` without a tag's attributes beyond the limit.

    Only where no `<` stands for long enough is looked at: that takes a tenth of the time of an expression.
    """
    kept: list[str] = []
    done = at = 0
    while 0 <= at < len(text):
        end = at + _HALF_OF_LONG_TAG
        if text.find("<", at, end) >= 0:
            at = end
            continue
        start = text.rfind("<", done, at)
        if start >= 0 and (found := _MANY_ATTRIBUTES.match(text, start)):
            kept.append(text[done : found.end(1)])
            done = found.end()
        at = text.find("<", end)
    return "".join([*kept, text[done:]]) if kept else text


def read_attributes(markup: str) -> dict[str, str]:
    """Return the first attributes of a tag by their names in lower case, unescaped."""
    found = (match.groups("") for match in islice(_ATTRIBUTE_VALUE.finditer(markup), MAX_ATTRIBUTES))
    return {name.lower(): html.unescape(a or b or c) for name, a, b, c in found}
