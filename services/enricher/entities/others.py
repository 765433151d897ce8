"""The forms of the list in other scripts than Latin, found by the characters that they begin with."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
"""Scripts that write no spaces between words."""
PREFIXED = {"HEBREW": "בלמהוכש", "ARABIC": "وبلكف"}
"""Scripts that write prepositions together with the name, and the letters of those."""
PREFIXES = frozenset("".join(PREFIXED.values()))
T = TypeVar("T")


class Others(Generic[T]):
    """Forms, each with its entry.

    An automaton (pyahocorasick) took a microsecond a character: it searches the 2,200 characters that forms begin with
    one after the other.
    """

    def __init__(self, entries: Mapping[str, T], unspaced: Iterable[str]) -> None:
        """Keep the forms, each of two characters at least; `unspaced` are those that may stand within a word."""
        self._entries = entries
        anywhere = frozenset(unspaced)
        within, beginning = defaultdict[str, set[int]](set), defaultdict[str, set[int]](set)
        for form in entries:
            (within if form in anywhere else beginning)[form[:2]].add(len(form))
        self._within = {pair: sorted(lengths) for pair, lengths in within.items()}
        self._beginning = {pair: sorted(lengths) for pair, lengths in beginning.items()}
        self._runs = re.compile(f"{one_of(pair[0] for pair in within)}+")
        self._starts = re.compile(rf"(?<!\w){one_of({*PREFIXES, *(pair[0] for pair in beginning)})}")

    def __contains__(self, form: str) -> bool:
        return form in self._entries

    def find(self, text: str, first: int, stop: int) -> list[tuple[int, int, T]]:
        """Return end, start and entry of what stands between two places, by end and start.

        A form that is spaced is found only where a word begins, or behind one or two letters of prepositions.
        """
        anywhere = (place for run in self._runs.finditer(text, first, stop) for place in range(*run.span()))
        found = [
            (start + length, start, self._entries[form])
            for places, table in ((anywhere, self._within), (self._places(text, first, stop), self._beginning))
            for start in places
            for length in table.get(text[start : start + 2], ())
            if (form := text[start : start + length]) in self._entries and start + length <= stop
        ]
        found.sort(key=lambda each: each[:2])
        return found

    def _places(self, text: str, first: int, stop: int) -> Iterator[int]:
        """Yield where words begin, or go on behind prepositions."""
        for match in self._starts.finditer(text, first, stop):
            start = match.start()
            yield start
            if text[start] in PREFIXES:
                yield start + 1
                if text[start + 1 : start + 2] in PREFIXES:
                    yield start + 2


def one_of(characters: Iterable[str]) -> str:
    """Return a regular expression for one of these characters."""
    return f"[{''.join(map(re.escape, sorted(set(characters))))}]"
