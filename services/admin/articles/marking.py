"""Pure: cuts texts into pieces, by what is named in them and by what differs from another text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

MOST_WORDS = 500
"""The beginnings of two texts are compared."""


@dataclass(frozen=True)
class Piece:
    """A part of a text."""

    text: str
    entity: Mapping[str, Any] | None = None
    """Who or what it names."""
    differs: bool = False
    """Whether the other text has it not."""


def mark_entities(text: str, field: str, entities: Sequence[Mapping[str, Any]]) -> list[Piece]:
    """Return the text in pieces: the mentions of entities, and what is between them.

    Args:
        text: of the article.
        field: `title` or `body`.
        entities: of the article. Mentions outside of the text, or within another one, are left out.
    """
    pieces, at = [], 0
    for start, end, entity in sorted(_mentions(field, entities), key=lambda mention: (mention[0], -mention[1])):
        if not at <= start < end <= len(text):
            continue
        if start > at:
            pieces.append(Piece(text[at:start]))
        pieces.append(Piece(text[start:end], entity))
        at = end
    return [*pieces, Piece(text[at:])] if at < len(text) else pieces


def _mentions(field: str, entities: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    for entity in entities:
        for mention in entity.get("mentions") or ():
            if mention.get("field") == field:
                yield int(mention.get("start", 0)), int(mention.get("end", 0)), entity


def mark_differences(ours: str, other: str) -> tuple[list[Piece], list[Piece]]:
    """Return the beginnings of both texts in pieces: those that both have, and those that only one has."""
    words, others = _words(ours), _words(other)
    pieces: list[Piece] = []
    pieces_of_other: list[Piece] = []
    # Words that are frequent in a long text are no anchors: a hostile text, of few words, would take many seconds.
    matcher = SequenceMatcher(None, [word.strip() for word in words], [word.strip() for word in others], autojunk=True)
    for kind, start, end, start_of_other, end_of_other in matcher.get_opcodes():
        _append(pieces, words[start:end], differs=kind != "equal")
        _append(pieces_of_other, others[start_of_other:end_of_other], differs=kind != "equal")
    return pieces, pieces_of_other


def _words(text: str) -> list[str]:
    """Return words, each with the space behind it; of a script without spaces, characters."""
    found = re.findall(r"\S+\s*", text)
    if len(found) * 20 < len(text):
        found = list(text)
    return found[:MOST_WORDS]


def _append(pieces: list[Piece], words: Sequence[str], *, differs: bool) -> None:
    if words:
        pieces.append(Piece("".join(words), differs=differs))
