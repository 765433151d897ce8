"""Texts of elements as feedparser hands them on, markup within them written out as markup again."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from contextlib import suppress
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from feedparser.html import _cp1252
from feedparser.mixin import _FeedParserMixin

from services.fetcher.parse.guarded import HANDLED
from services.fetcher.parse.model import Declined
from services.fetcher.parse.tree import MAX_DEPTH, attributes_of, local_name

XHTML = "application/xhtml+xml"
_QUOTE = {'"': "&quot;"}
_C1 = re.compile("[\x80-\x9f]")


def leaf_text(element: Element) -> str:
    """Return the text of an element that has no element within, without white space around it."""
    if len(element):
        raise Declined("elements within a text")
    return (element.text or "").strip()


def repaired(text: str) -> str:
    """Return `text` with UTF-8 that was taken for Latin-1, and windows-1252 beyond it, put right."""
    # U+0080 to U+00BF: the bytes that continue a character in UTF-8, and all that windows-1252 could mean.
    if text.isascii() or b"\xc2" not in text.encode("utf-8", "replace"):
        return text
    with suppress(UnicodeError):
        text = text.encode("iso-8859-1").decode("utf-8")
    return text.translate(_cp1252) if _C1.search(text) else text


def looks_like_html(text: str) -> bool:
    """Return whether plain text is so much like HTML that feedparser takes it for that."""
    return ("</" in text or "&" in text) and bool(_FeedParserMixin.looks_like_html(text))


def inline(element: Element, kind: str, names: Mapping[str, str], *, is_atom10: bool) -> tuple[str, str]:
    """Return the content of `element`, whose declared media type is `kind`, and what its type really is."""
    text = element.text or ""
    if kind == XHTML:
        text = escape(text)
    if not len(element):
        return text.strip(), kind
    if kind.endswith("xml") and kind != XHTML:
        raise Declined("XML as content")
    if kind != XHTML and (names[element[0].tag] in {"div", "xhtml_div"} or "<div" in text):
        raise Declined("a <div> in content that is said to be text")
    pieces = [text] if text else []
    for child in element:
        _write(child, names, pieces, 1)
    return "".join(_unwrapped(pieces) if is_atom10 else pieces).strip(), XHTML


def decoded_base64(element: Element, value: str) -> str:
    """Return the text that `value` is in base64, or `value` if it is none."""
    if len(element):
        raise Declined("elements within base64")
    try:
        return base64.decodebytes(value.encode()).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value


def _write(element: Element, names: Mapping[str, str], pieces: list[str], depth: int) -> None:
    attributes, local = attributes_of(element), local_name(element)
    if depth > MAX_DEPTH:
        raise Declined("content that is nested too deep")
    if names[element.tag] in HANDLED or local in {"svg", "math"} or "xml:base" in attributes or "base" in attributes:
        raise Declined(f"<{local}> within content")
    written = "".join([f' {key}="{escape(value, _QUOTE)}"' for key, value in attributes.items()])
    pieces.append(f"<{local}{written}>")
    if element.text:
        pieces.append(escape(element.text))
    for child in element:
        _write(child, names, pieces, depth + 1)
    pieces.append(f"</{local}>")
    if element.tail:
        pieces.append(escape(element.tail))


def _unwrapped(pieces: list[str]) -> list[str]:
    """Return the pieces without the one <div> that is around all of them (RFC 4287, section 3.1.1.3)."""
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
