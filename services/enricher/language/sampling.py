"""Pure: the pieces of an entry's text that its language is told by, without what no language is written in."""

from __future__ import annotations

import html
import re

from services.enricher.text import Text

_TITLE = 80
_BODY = 80
_MIDDLE = 60
"""Characters that are read: of the title, of the body's beginning, and of its middle, where it is long."""

_PIECE = 80
"""Characters of a piece. Several pieces show whether a text is in two languages."""

_TAG = re.compile(r"</?[a-zA-Z!][^<>]{0,300}(?:>|$)")
_ADDRESS = re.compile(r"[a-zA-Z0-9-]{2,}(?:\.[a-zA-Z0-9-]{2,})+(?:/.*)?\W?", re.ASCII)
_NO_WORD = re.compile(r"[@#]|://|[a-zA-Z0-9]\.[a-zA-Z0-9]", re.ASCII)
_SYMBOLS = dict.fromkeys(map(ord, "{}()[]<>=;_|\\$^~`*+&"))
_MOST_SYMBOLS = 0.1
"""Symbols per character of which code, tables and formulas have more."""

_SURROGATES = re.compile("[\ud800-\udfff]")


def pieces(text: Text) -> list[str]:
    """Return what there is to read, in pieces; none of what looks like code."""
    title, body, middle = text.title[:_TITLE], text.body[:_BODY], ""
    if len(text.body) > _BODY + _MIDDLE:
        middle = text.body[len(text.body) // 2 :][:_MIDDLE]
    read = [word for part in (title, body, middle) if part for word in _words(part)]
    found, piece, length = list[str](), list[str](), 0
    for word in read:
        piece.append(word)
        length += len(word) + 1
        if length > _PIECE:
            found.append(" ".join(piece))
            piece, length = [], 0
    if not piece:
        return found
    if found and length < _PIECE // 2:  # too short to stand alone
        found[-1] += " " + " ".join(piece)
    else:
        found.append(" ".join(piece))
    return found


def _words(part: str) -> list[str]:
    """Return the words of a part of a text, without addresses, hashtags and left-overs of HTML."""
    if "&" in part:
        part = html.unescape(part)
    if "<" in part:
        part = _TAG.sub(" ", part)
    if not part.isascii():
        part = _SURROGATES.sub("", part)
    if len(part.translate(_SYMBOLS)) < (1 - _MOST_SYMBOLS) * len(part):
        return []
    if part.isupper():
        part = part.lower()
    words = part.split()
    return [word for word in words if _is_word(word)] if _NO_WORD.search(part) else words


def _is_word(word: str) -> bool:
    if "@" in word or "://" in word or word[0] == "#":
        return False
    return "." not in word or not _ADDRESS.fullmatch(word)
