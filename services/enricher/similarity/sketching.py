"""Pure: the sketch of a text.

It holds hashes of word 3-shingles: all of the text's beginning, since feeds cut one text at different lengths, and the
smallest ones of the rest, since a sample of two texts by the same order tells how much of one is in the other. Beside
them stand the numbers and the names, each with the words around it: two texts of a template differ in them. They differ
in what the title names, too: so a bit is kept for each word, and which of the title's words the text begins with.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from services.enricher.similarity.words import CALENDAR, SPACELESS, Words, is_spaceless, without_stamp, words_of
from services.enricher.text import Text
from shared.wire.enrichment import Sketch, filter_bits

VERSION = 2
"""1: a word had one bit in the filter, a road's number was two words, a letter of Thai was a word."""

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

BITS = 1024
"""Of the filter of words. One word in 700 passes that of a text of 40 words by chance, one in 7 that of 250."""

BEGINNING_WORDS = 25
BEGINNING_CHARACTERS = 60
"""Where a text names what its title names; the latter in scripts without spaces."""

MOST_TOLD = 32

NAMING_LETTERS = 4
"""Shorter words seldom name anything, unless both title and text begin with one."""

STEM_LETTERS = 5
STEM_SYLLABLES = 2
"""Of a word, by which it is known whatever ending it has; the latter of Korean."""

_DATES = frozenset(CALENDAR.values())


def load_sketches() -> Callable[[Sequence[Text], Sequence[str | None]], list[Sketch | None]]:
    """Return the part of the enricher that sketches texts."""
    return lambda texts, languages: [
        sketch(text.title, text.body, language) for text, language in zip(texts, languages, strict=True)
    ]


def sketch(title: str, body: str, language: str | None = None) -> Sketch | None:
    """Return the sketch of a text; None if it has no words. Its language tells which words are numbers."""
    body = without_stamp(body[:MOST_BODY])
    heading, words = words_of(title, language), words_of(body, language)
    heading_hashes = _hashes(heading.texts)
    titled, stems = _stems(heading), _stems(words)
    told, distinct = _told(heading, titled, words, stems), {*titled, *stems} - {""}
    if len(words.texts) < BODY_WORDS:
        words = words_of(f"{title}. {body}", language)
        heading_numbers = b""
    else:
        heading_numbers = _slots(heading_hashes, heading.numbers, kind=1)
    hashes = _hashes(words.texts)
    shingles = _shingles(hashes)
    title_hashes = heading_hashes[:TITLE_WORDS]
    if not title_hashes and not shingles:
        return None
    return Sketch(
        version=VERSION,
        count=len(shingles),
        head=_pack(shingles[:HEAD]),
        rest=_pack(sorted(shingles[HEAD:])[:REST]),
        numbers=(heading_numbers + _slots(hashes, words.numbers))[: 4 * SLOTS],
        names=b"" if _is_capitalised(words) else _slots(hashes, words.names),
        title=_pack(title_hashes),
        words=_filter(distinct),
        told=struct.pack(f"<{len(told)}H", *told),
        is_telling=len(title_hashes) >= TELLING_WORDS and _DATES.isdisjoint(heading.texts),
    )


def _hashes(words: Sequence[str]) -> list[int]:
    return [crc32(word.encode()) for word in words]  # no word has surrogates


def _told(title: Words, titled: Sequence[str], body: Words, stems: Sequence[str]) -> list[int]:
    """Return the digests of what the title names and the text begins with.

    Args:
        title: its words.
        titled: their stems.
        body: its words.
        stems: their stems.
    """
    spaceless = sum(map(is_spaceless, body.texts[:BEGINNING_WORDS]))
    until = BEGINNING_CHARACTERS if spaceless * 2 > BEGINNING_WORDS else BEGINNING_WORDS
    beginning = {*stems[:until]} - {""}
    named = [stem for stem in titled if stem][:1] if title.texts[:1] == body.texts[:1] else []
    named += _stems(title, NAMING_LETTERS)
    return _digests([stem for stem in dict.fromkeys(named) if stem in beginning][:MOST_TOLD])


def _filter(stems: Iterable[str]) -> bytes:
    """Return the filter that has the bits of each stem."""
    flags: Any = np.zeros(BITS, np.uint8)
    digests: Any = np.array(_digests(stems), np.int64)
    for bits in filter_bits(digests):
        flags[bits] = 1
    return bytes(np.packbits(flags, bitorder="little"))


def _digests(stems: Iterable[str]) -> list[int]:
    """Return 16 bits for each."""
    return [crc32(stem.encode()) & 0xFFFF for stem in stems]


def _stems(words: Words, least: int = 1) -> list[str]:
    """Return the stem of each word of at least so many letters; in scripts without spaces, each two characters.

    Shorter words, numbers and the first of such characters have an empty one.
    """
    texts = words.texts
    if max(texts, default="") < SPACELESS:
        stems = [word[:STEM_LETTERS] if len(word) >= least else "" for word in texts]
    else:
        stems, before = [], ""
        for word in texts:
            if word >= SPACELESS and is_spaceless(word):
                stems.append(before + word if before else "")
                before = word
            else:
                end = STEM_SYLLABLES if "가" <= word < "\ud7b0" else STEM_LETTERS
                stems.append(word[:end] if len(word) >= least else "")
                before = ""
    for place in words.numbers:
        stems[place] = ""
    return stems


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
