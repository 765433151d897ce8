"""Pure: the sketch of a text.

It holds hashes of word 3-shingles: all of the text's beginning, since feeds cut one text at different lengths, and the
smallest ones of the rest, since a sample of two texts by the same order tells how much of one is in the other. Beside
them stand the numbers and the names, each with the words around it: two texts of a template differ in them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from services.enricher.parts import Missing
from services.enricher.similarity.words import CALENDAR, Words, words_of
from services.enricher.text import Text
from shared.wire.enrichment import Sketch

try:
    import numpy as np
except ImportError:  # the extra `enrich` is not installed
    np = None  # type: ignore[assignment]

HEAD = 96
"""Shingles of the beginning that are kept: as long as a feed's summary is."""

REST = 48
"""Hashes of the other shingles that are kept."""

SLOTS = 32
"""Numbers, and names, that are kept."""

MOST_BODY = 2_500
"""Characters of the body that are read: some 400 words."""

TITLE_WORDS = 16

BODY_WORDS = 20
"""The title is left out of the shingles if the body has as many words: agencies' clients write titles of their own."""

TELLING_WORDS = 6
"""A title of so many words hardly stands over two stories, unless it is one of a series."""

_DATES = frozenset(CALENDAR.values())


def load_sketches() -> Callable[[Sequence[Text]], list[Sketch | None]]:
    """Return the part of the enricher that sketches texts.

    Raises:
        Missing: numpy is not installed.
    """
    if np is None:
        raise Missing("numpy is not installed: pip install 'feedmill[enrich]'")
    return lambda texts: [sketch(text.title, text.body) for text in texts]


def sketch(title: str, body: str) -> Sketch | None:
    """Return the sketch of a text; None if it has no words."""
    body = body[:MOST_BODY]
    heading, words = words_of(title), words_of(body)
    if len(words.texts) < BODY_WORDS:
        words = words_of(f"{title}. {body}")
        heading_numbers = b""
    else:
        heading_numbers = _slots(_hashes(heading.texts), heading.numbers, kind=1)
    hashes = _hashes(words.texts)
    shingles = _shingles(hashes)
    titled = _hashes(heading.texts[:TITLE_WORDS])
    if not titled and not shingles:
        return None
    return Sketch(
        count=len(shingles),
        head=_pack(shingles[:HEAD]),
        rest=_pack(sorted(shingles[HEAD:])[:REST]),
        numbers=(heading_numbers + _slots(hashes, words.numbers))[: 4 * SLOTS],
        names=b"" if _is_capitalised(words) else _slots(hashes, words.names),
        title=_pack(titled),
        is_telling=len(titled) >= TELLING_WORDS and _DATES.isdisjoint(heading.texts),
    )


def _hashes(words: Sequence[str]) -> list[int]:
    return [crc32(word.encode("utf-8", "surrogatepass")) for word in words]


def _shingles(hashes: Sequence[int]) -> list[int]:
    """Return the hashes of each three words in a row, each once."""
    if len(hashes) < 3:
        return []
    words: Any = np.array(hashes, np.uint32)
    mixed = words[:-2] * np.uint32(0x9E3779B1) + words[1:-1]
    mixed ^= mixed >> np.uint32(15)
    mixed = mixed * np.uint32(0x85EBCA77) + words[2:]
    mixed ^= mixed >> np.uint32(16)
    mixed *= np.uint32(0x7FEB352D)
    mixed ^= mixed >> np.uint32(15)
    mixed *= np.uint32(0x846CA68B)
    mixed ^= mixed >> np.uint32(16)
    return list(dict.fromkeys(mixed.tolist()))


def _slots(hashes: Sequence[int], places: Sequence[int], kind: int = 0) -> bytes:
    """Return the words at these places, each with a digest of the words beside it. Those in a row are one.

    Words of one kind are not beside those of another: a number of a title may be another one than that of the text.
    """
    slots: list[int] = []
    first = 0
    while first < len(places) and len(slots) < SLOTS:
        end = first + 1
        while end < len(places) and places[end] == places[end - 1] + 1:
            end += 1
        before, after = places[first] - 1, places[end - 1] + 1
        beside = kind + (hashes[before] * 31 if before >= 0 else 0) + (hashes[after] if after < len(hashes) else 0)
        value = 0
        for place in places[first:end]:
            value = value * 31 + hashes[place]
        slots.append(_mix(beside) >> 14 | _mix(value) >> 18 << 18)
        first = end
    return _pack(slots)


def _mix(number: int) -> int:
    """Return a hash in 32 bits, whose upper ones are as good as its lower ones."""
    return (number ^ number >> 31) * 0x9E3779B1 & 0xFFFFFFFF


def _is_capitalised(words: Words) -> bool:
    """Whether most words are capitalised, as in a headline: then that tells no names."""
    return len(words.names) * 2 > len(words.texts)


def _pack(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)
