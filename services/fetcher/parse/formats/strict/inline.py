"""Texts of elements as feedparser returns them; the elements within become markup again."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from feedparser.html import _cp1252
from feedparser.mixin import _FeedParserMixin

from services.fetcher.parse.formats.lenient.guarded_feedparser import HANDLED
from services.fetcher.parse.formats.strict.tree import MAX_DEPTH, Attributes, attributes_of, local_name
from services.fetcher.parse.model import Declined

XHTML = "application/xhtml+xml"
_QUOTE = {'"': "&quot;"}
_FOREIGN = {"svg": "http://www.w3.org/2000/svg", "math": "http://www.w3.org/1998/Math/MathML"}
_C1_IN_UTF8 = re.compile(b"\xc2[\x80-\x9f]")


def leaf_text(element: Element) -> str:
    """Return the text of an element without white space around it; decline if there are elements within."""
    if len(element):
        raise Declined("elements within a text")
    return (element.text or "").strip()


def plain_text(element: Element) -> str:
    """Return the text of an element as `leaf_text` does, repaired."""
    if len(element):
        raise Declined("elements within a text")
    text = (element.text or "").strip()
    return text if text.isascii() else repaired(text)


def repaired(text: str) -> str:
    """Return `text` after correcting UTF-8 or windows-1252 that was decoded as Latin-1."""
    # U+0080 to U+00BF stand for the continuation bytes of UTF-8, and for all characters of windows-1252 in question.
    if text.isascii() or b"\xc2" not in (raw := text.encode("utf-8", "replace")):
        return text
    with suppress(UnicodeError):
        latin = text.encode("iso-8859-1")
        text, raw = latin.decode("utf-8"), latin
    return text.translate(_cp1252) if _C1_IN_UTF8.search(raw) else text


def looks_like_html(text: str) -> bool:
    """Return whether feedparser would take this plain text for HTML."""
    return ("</" in text or ("&" in text and ";" in text)) and bool(_FeedParserMixin.looks_like_html(text))


def inline(element: Element, kind: str, writer: MarkupWriter, *, is_atom10: bool) -> tuple[str, str]:
    """Return the content of `element`, whose declared media type is `kind`, and its true media type."""
    text = element.text or ""
    if kind == XHTML:
        text = escape(text)
    if not len(element):
        return text.strip(), kind
    if kind.endswith("xml") and kind != XHTML:
        raise Declined("XML as content")
    if kind != XHTML and (writer.names[element[0].tag] in {"div", "xhtml_div"} or "<div" in text):
        raise Declined("a <div> in content that is said to be text")
    pieces = writer.pieces = [text] if text else []
    for child in element:
        writer.write(child, 1)
    return "".join(_unwrapped(pieces) if is_atom10 else pieces).strip(), XHTML


def decoded_base64(element: Element, value: str) -> str:
    """Return `value` decoded from base64, or unchanged if it is not base64."""
    if len(element):
        raise Declined("elements within base64")
    try:
        return base64.decodebytes(value.encode()).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value


class MarkupWriter:
    """Writes the elements within a text as markup, as feedparser does.

    feedparser handles an end tag within a text like one outside of it, so elements that it handles are declined.
    Within an <svg> it does so only for the name of the text itself.
    """

    def __init__(self, names: Mapping[str, str], field: str, *, has_base: bool) -> None:
        self.names = names
        self.pieces: list[str] = []
        self._own_names = {field, "content", "summary", "description"}
        self._has_base = has_base
        """Whether a base is in force. If not, a base within the text holds beyond its element."""
        self._svg_depth = 0

    def write(self, element: Element, depth: int) -> None:
        """Write an element with its content, and the text behind it."""
        attributes, local = attributes_of(element), local_name(element)
        if depth > MAX_DEPTH:
            raise Declined("content that is nested too deep")
        name = self.names[element.tag]
        if name in HANDLED and (not self._svg_depth or name in self._own_names):
            raise Declined(f"<{local}> within content")
        if not self._has_base and ("xml:base" in attributes or "base" in attributes):
            raise Declined("an xml:base within content")
        if local in _FOREIGN:
            written = _with_namespace(element, attributes, name.removesuffix(local).removesuffix("_"))
        else:
            written = _written(attributes.items())
        self.pieces.append(f"<{local}{written}>")
        if element.text:
            self.pieces.append(escape(element.text))
        self._svg_depth += local == "svg"
        for child in element:
            self.write(child, depth + 1)
        self._svg_depth -= local == "svg"
        self.pieces.append(f"</{local}>")
        if element.tail:
            self.pieces.append(escape(element.tail))


def _written(attributes: Iterable[tuple[str, str]]) -> str:
    return "".join([f' {key}="{escape(value, _QUOTE)}"' for key, value in attributes])


def _with_namespace(element: Element, attributes: Attributes, prefix: str) -> str:
    """Return the attributes of an <svg> or <math> as markup, with its namespace: twice if it has a prefix."""
    uri, local, *given = (element.tag if " " in element.tag else f" {element.tag}").split(" ")
    if _FOREIGN[local.lower()] != uri:
        return _written(attributes.items())
    if prefix != "".join(given):
        raise Declined("a namespace with several prefixes")
    declared = [(key, value) for key, value in attributes.items() if key.startswith("xmlns:")]
    others = [(key, value) for key, value in attributes.items() if not key.startswith("xmlns:")]
    return _written([*declared, ("xmlns", uri), *others, *([("xmlns", uri)] if prefix else [])])


def _unwrapped(pieces: list[str]) -> list[str]:
    """Return the pieces without the <div> that encloses all of them (RFC 4287, section 3.1.1.3)."""
    while len(pieces) > 1 and not pieces[-1].strip():
        pieces.pop()
    while len(pieces) > 1 and not pieces[0].strip():
        pieces.pop(0)
    if not (pieces[0] == "<div>" or pieces[0].startswith("<div ")) or pieces[-1] != "</div>":
        return pieces
    depth = 0
    for piece in pieces[:-1]:
        if piece.startswith("</"):
            depth -= 1
            if not depth:
                return pieces
        elif piece.startswith("<") and not piece.endswith("/>"):
            depth += 1
    return pieces[1:-1]
