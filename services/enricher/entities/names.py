"""The list of entities, as it is searched: `list.tsv.gz`, which `make entity-list` builds."""

from __future__ import annotations

import gzip
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from services.enricher.entities.others import PREFIXED, UNSPACED, Others, one_of
from shared.wire.enrichment import EntityKind

LIST = Path(__file__).parent / "list.tsv.gz"
KINDS: dict[str, EntityKind] = {"P": "person", "O": "organisation", "L": "place", "T": "technology"}
ENDINGS = re.compile(
    "[аеиіуыюяойь]|[оеёаыи]м|ям|[оеєії]ю|[еоиії]й|[оеєё]в|[еоії]в|[ая]ми|[ая]х|ові|еві|ого|ому|ої|ії|ію|ією|ью"
)
"""What a Russian, Ukrainian or Bulgarian name may end in beside its stem."""
PARTICLES = re.compile(
    "(?:에(?:서|게|는|도|만|선)?(?:의|는|도|만)?|[의은는이가을를와과도만로]|으로|로(?:서|부터)|부터|까지|이나|처럼|보다|라는|이라는|[와과]의|이?며|이고|이다"
    "|[시군도구측산발행인계식판전내외간팀]|정부|당국|대표|감독|선수)(?![가-힣])"
)
"""What may follow a short Korean name in its word."""
LONGEST_SHORT = 3
LONGEST_ENDING = 4
SHORTEST_STEM = 4
_OTHERS = "\u0370-\u1dff\u2c00-\U0001efff\U00020000-\U0003ffff"
"""The letters of other scripts than Latin."""
MARGIN = 40
"""No form of another script has as many Latin letters in a row."""
NOT_LATIN = re.compile(f"[{_OTHERS}](?:[^{_OTHERS}]{{0,{2 * MARGIN}}}[{_OTHERS}])*")
WORD = re.compile(r"\w+")
CAPITAL = r"[^\W\d_a-zß-öø-ÿ]\w*"
"""A word that may begin with a capital letter."""


class Name(NamedTuple):
    """What a form of the list stands for."""

    kind: EntityKind
    name: str
    id: str | None = None
    common: frozenset[str] = frozenset()
    """Languages in which the form is also a common word."""
    is_stem: bool = False


Entry = tuple[Name, str]
"""What a form in another script stands for, and the script."""


class Span(NamedTuple):
    """Where a text has a form of the list."""

    start: int
    end: int
    name: Name


class Latin:
    """The forms in Latin letters, found by the words that they begin with.

    Few words of a text begin with a capital letter: with an automaton the part took more than twice as long.
    """

    def __init__(self, forms: Mapping[str, Name]) -> None:
        """Keep the forms; those that begin with no letter or digit are not found."""
        self._forms = forms
        self._lengths: defaultdict[str, set[int]] = defaultdict(set)
        for form in forms:
            if word := WORD.match(form):
                self._lengths[word[0]].add(len(form))
        small = sorted(word for word in self._lengths if not re.fullmatch(CAPITAL, word))
        first = one_of(word[0] for word in self._lengths.keys() - small)
        self._words = re.compile(rf"\b(?:{first}\w*|(?:{'|'.join(small)})\b)")

    def form(self, form: str) -> Name | None:
        """Return what a form stands for."""
        return self._forms.get(form)

    def find(self, text: str) -> Iterator[Span]:
        """Yield all forms that stand in the text as words of their own; they may overlap."""
        for word in self._words.finditer(text):
            lengths = self._lengths.get(word[0])
            if lengths is None:
                continue
            start = word.start()
            for length in lengths:
                end = start + length
                name = self._forms.get(text[start:end]) if end <= len(text) else None
                if name and not is_letter(text[end : end + 1]) and not is_letter(text[start - 1 : start]):
                    yield Span(start, end, name)


@dataclass(frozen=True)
class Names:
    """The list."""

    latin: Latin
    others: Others[Entry]
    """The forms in other scripts."""
    given: frozenset[str]
    family: frozenset[str]
    words: frozenset[str]
    """Common English words, in lower case."""
    places: frozenset[str]
    """Forms of one word that name a place."""
    taken: frozenset[str]
    """Forms of one word that name a place, an organisation or a technology rather than a person."""

    def find(self, text: str) -> Iterator[Span]:
        """Yield all forms that stand in the text as words of their own; they may overlap."""
        yield from self.latin.find(text)
        if not text.isascii():
            for others in NOT_LATIN.finditer(text):
                yield from self._find_others(text, max(others.start() - MARGIN, 0), others.end() + MARGIN)

    def _find_others(self, text: str, first: int, stop: int) -> Iterator[Span]:
        for last, start, (name, script) in self.others.find(text, first, min(stop, len(text))):
            end = last
            if script not in UNSPACED:
                if start and is_letter(text[start - 1]) and not _is_prefixed(text, start, script):
                    continue
                if end < len(text) and is_letter(text[end]):
                    if script == "HANGUL":
                        end = end if end - start > LONGEST_SHORT or PARTICLES.match(text, end) else 0
                    else:
                        end = _end_of_stem(text, end) if name.is_stem else 0
            if end:
                yield Span(start, end, name)


def is_letter(character: str) -> bool:
    """Tell if a character belongs to a word; none (an empty text) does not."""
    return character.isalnum() or character == "_" or (character > "\u02ff" and unicodedata.combining(character) > 0)


def _end_of_stem(text: str, end: int) -> int:
    """Return the end of the word whose stem ends there, 0 if its ending is none of a name's."""
    stop = end
    while stop < len(text) and stop - end < LONGEST_ENDING and is_letter(text[stop]):
        stop += 1
    return stop if ENDINGS.fullmatch(text, end, stop) else 0


def _is_prefixed(text: str, start: int, script: str) -> bool:
    """Tell if only prepositions (one or two letters) stand between the name and the beginning of its word."""
    letters = PREFIXED.get(script, "")
    if not letters:
        return False
    for at in range(start - 1, max(start - 3, -1), -1):
        if text[at] not in letters:
            return False
        if at == 0 or not is_letter(text[at - 1]):
            return True
    return text[start - 2 : start] == "ال"


def script_of(text: str) -> str:
    """Return the script of a text's first letter, as Unicode calls it."""
    first = text[:1] if text[:1].isalpha() else next((c for c in text if c.isalpha()), "")
    return _script_of_letter(first)


@lru_cache(5_000)
def _script_of_letter(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0] if letter else ""


def load_names() -> Names:
    """Read the list: half a second, about 50 MB."""
    others: dict[str, Entry] = {}
    latin: dict[str, Name] = {}
    sets: dict[str, frozenset[str]] = {}
    places, named = set(), set()
    for line in gzip.decompress(LIST.read_bytes()).decode("utf-8").splitlines():
        kind, *rest = line.split("\t")
        if kind not in KINDS:
            sets[kind] = frozenset(rest)
            continue
        wikidata, name, *forms = rest
        for marked in forms:
            form, _, common = marked.partition("~")
            found = Name(KINDS[kind], name, wikidata or None, frozenset(common.split(",")) if common else frozenset())
            if kind == "L" and " " not in form:
                places.add(form)
            if kind != "P" and " " not in form and (kind != "L" or "?" not in found.common):
                named.add(form)
            if not NOT_LATIN.search(form):
                latin.setdefault(form, found)
                continue
            for key, entry in _entries(form, found):
                others.setdefault(key, (entry, script_of(key)))
    unspaced = [form for form, (_, script) in others.items() if script in UNSPACED]
    given, family, words = (sets[kind] for kind in ("given", "family", "words"))
    return Names(Latin(latin), Others(others, unspaced), given, family, words, frozenset(places), frozenset(named))


def _entries(form: str, name: Name) -> Iterator[tuple[str, Name]]:
    if script_of(form) == "CYRILLIC" and " " not in form and not form.isupper():
        stem = form[:-1] if form[-1] in "аеиоуыэюяйьёєії" else form
        if len(stem) >= SHORTEST_STEM:
            yield stem, name._replace(is_stem=True)
            if stem == form:
                return
    yield form, name
