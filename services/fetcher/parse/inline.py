"""Texts of elements as feedparser hands them on, markup within them written out as markup again."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any
from xml.sax.saxutils import escape

from feedparser.html import _cp1252
from feedparser.mixin import _FeedParserMixin

from services.fetcher.parse.guarded import HANDLED
from services.fetcher.parse.model import Declined
from services.fetcher.parse.names import Names

XHTML = "application/xhtml+xml"
_MAX_DEPTH = 100
_C1 = re.compile("[\x80-\x9f]")
_MARKUP = re.compile(r"</\w|&#?\w")


def leaf_text(element: Any) -> str:
    """Return the text of an element that has no element within, without white space around it."""
    if len(element):
        raise Declined("elements within a text")
    return (element.text or "").strip()


def repaired(text: str) -> str:
    """Return `text` with UTF-8 that was taken for Latin-1, and windows-1252 beyond it, put right."""
    if text.isascii():
        return text
    try:
        text = text.encode("iso-8859-1").decode("utf-8")
    except UnicodeError:
        return text.translate(_cp1252) if _C1.search(text) else text
    return text.translate(_cp1252)


def looks_like_html(text: str) -> bool:
    """Return whether plain text is so much like HTML that feedparser takes it for that."""
    return bool(_MARKUP.search(text) and _FeedParserMixin.looks_like_html(text))


def inline(element: Any, kind: str, names: Names, *, is_atom10: bool) -> tuple[str, str]:
    """Return the content of `element`, whose declared media type is `kind`, and what its type really is."""
    if not len(element):
        text = element.text or ""
        return (escape(text) if kind == XHTML else text).strip(), kind
    if kind.endswith("xml") and kind != XHTML:
        raise Declined("XML as content")
    if kind != XHTML and (names[element[0].tag] in {"div", "xhtml_div"} or "<div" in (element.text or "")):
        raise Declined("a <div> in content that is said to be text")
    pieces: list[str] = []
    if element.text:
        pieces.append(escape(element.text) if kind == XHTML else element.text)
    for child in element:
        _write(child, names, pieces, 0)
    return "".join(_unwrapped(pieces) if is_atom10 else pieces).strip(), XHTML


def decoded_base64(element: Any, value: str) -> str:
    """Return the text that `value` is in base64, or `value` if it is none."""
    if len(element):
        raise Declined("elements within base64")
    try:
        return base64.decodebytes(value.encode()).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value


def _write(element: Any, names: Names, pieces: list[str], depth: int) -> None:
    name = names[element.tag]
    local = element.tag.rpartition("}")[2].lower()
    attributes = names.attributes(element)
    if name in HANDLED or local in {"svg", "math"} or "xml:base" in attributes or "base" in attributes:
        raise Declined(f"<{local}> within content")
    if depth > _MAX_DEPTH:
        raise Declined("content that is nested too deep")
    written = "".join(f' {key}="{escape(value, {chr(34): "&quot;"})}"' for key, value in attributes.items())
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
