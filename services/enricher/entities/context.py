"""People, organisations and places told by what stands beside them: a role, an abbreviation, a dateline, a club."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from services.enricher.entities.names import Name, Names, Span
from services.enricher.entities.style import Style
from services.enricher.entities.vocabulary import (
    CLUBS,
    GENITIVE,
    GERMAN_ROLES,
    INFLECTING,
    OF_CLUBS,
    OF_ORGANISATIONS,
    OF_PLACES,
    ROLES,
)
from shared.wire.enrichment import EntityKind

ABBREVIATION = re.compile(r" \(([^\W\d_a-zß-ÿа-я][^\W\d_]{1,9})\)")
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
BEFORE = re.compile(r"([^\W\d_][\w'’-]*)[ \u00a0]$")
DATELINE = re.compile(
    r"^[ \t]*([^\W\d_a-zß-ÿ][^\W\d_a-zß-ÿ]+(?:[ -][^\W\d_a-zß-ÿ]{2,}){0,2})(?=,| ?\(| ?[–—/]| - |\.- | \d)", re.MULTILINE
)
LONGEST = 12
"""So many words before an abbreviation may be what it stands for."""
MOST = 20
"""So many abbreviations and lines of a text are looked at."""
FARTHEST = 30


def find(style: Style, names: Names, words: Sequence[re.Match[str]], listed: frozenset[int]) -> Iterator[Span]:
    """Yield what context tells.

    Args:
        style: the text.
        names: the list.
        words: the capitalised words of the text.
        listed: the places of the text where words of the list begin that are no person's.
    """
    yield from _abbreviated(style.text)
    yield from _datelines(style.text, names)
    if style.is_upper_case:
        return
    for place, word in enumerate(words):
        if not style.is_title_case:
            yield from _person(style, names, words, place, listed)
        after = words[place + 1] if place + 1 < len(words) and words[place + 1].start() - word.end() == 1 else None
        if after:
            yield from _club(style.text, names, word, after)
            if after[0] in OF_PLACES and style.language != "de" and word[0].lower() not in names.words:
                yield _span(style.text, word.start(), after.end(), "place")
        if style.language in GENITIVE and word[0][-1] == "s" and (name := names.latin.form(word[0][:-1])):
            if name.kind == "place" and not name.common and len(word[0]) > 4:
                yield Span(word.start(), word.end() - 1, name)


def _person(
    style: Style, names: Names, words: Sequence[re.Match[str]], place: int, listed: frozenset[int]
) -> Iterator[Span]:
    """Yield the person whose role stands before this word: `coach Hansi Flick`."""
    word, text = words[place], style.text
    before = BEFORE.search(text, max(word.start() - FARTHEST, 0), word.start())
    if not before or not _is_role(before[1], style.language):
        return
    end = place
    while end + 1 < len(words) and end - place < 2 and text[words[end].end() : words[end + 1].start()] == " ":
        end += 1
    chosen = [
        match
        for match in words[place : end + 1]
        if match.start() not in listed and match[0] not in names.places and not match[0].isupper()
    ]
    if len(chosen) != end + 1 - place or any(match[0].lower() in names.words for match in chosen):
        return
    last = chosen[-1][0]
    if len(chosen) == 1 and (style.language in INFLECTING or len(last) < 3 or last.rstrip("s") in names.places):
        return
    if last in OF_PLACES or last.lower() in OF_ORGANISATIONS or chosen[0][0] in names.taken:
        return
    stop = chosen[-1].end() - (2 if last.endswith(("'s", "’s")) else 0)
    yield _span(text, chosen[0].start(), stop, "person")


def _is_role(word: str, language: str | None) -> bool:
    if language == "de":
        return word[0].isupper() and word.lower().endswith(GERMAN_ROLES)
    return word in ROLES


def _club(text: str, names: Names, word: re.Match[str], after: re.Match[str]) -> Iterator[Span]:
    """Yield the club: `Dynamo Dresden`, `Leeds United`."""
    is_first = word[0] in CLUBS and (after[0] in names.places or word[0].isupper() or word[0].startswith(("Vf", "TS")))
    if (is_first and text[word.end()] == " ") or (after[0] in OF_CLUBS and word[0] in names.places):
        yield _span(text, word.start(), after.end(), "organisation")


def _abbreviated(text: str) -> Iterator[Span]:
    """Yield organisations that are named in full before their abbreviation: `Organisation for … Europe (OSCE)`."""
    for match in islice(ABBREVIATION.finditer(text), MOST):
        letters = match[1]
        if sum(map(str.isupper, letters)) * 2 < len(letters):
            continue
        before = list(WORD.finditer(text, max(match.start() - 120, 0), match.start()))[-LONGEST:]
        start = _beginning(before, letters.lower())
        if start is None:
            continue
        said = text[start : match.start()]
        if re.search(r"[.,;:!?()\n]", said) or OF_ORGANISATIONS.isdisjoint(said.lower().split()):
            continue
        name = Name("organisation", said, None, frozenset())
        for again in islice(re.finditer(rf"\b{re.escape(letters)}\b", text), MOST):
            yield Span(again.start(), again.end(), name)
        yield Span(start, match.start(), name)


def _beginning(words: Sequence[re.Match[str]], letters: str) -> int | None:
    """Return where the words begin that these are the first letters of; small words in between may have none."""
    left = letters
    for word in reversed(words):
        if word[0][0].lower() == left[-1]:
            left = left[:-1]
            if not left:
                return word.start() if word[0][0].isupper() else None
        elif len(word[0]) > 3 and word[0][0].isupper():
            return None
    return None


def _datelines(text: str, names: Names) -> Iterator[Span]:
    """Yield the places in capitals that lines begin with: `LONDON (Reuters) -`."""
    for match in islice(DATELINE.finditer(text), MOST):
        name = names.latin.form(match[1].title())
        if name and name.kind == "place" and len(match[1]) > 3:
            yield Span(match.start(1), match.end(1), name)


def _span(text: str, start: int, end: int, kind: EntityKind) -> Span:
    return Span(start, end, Name(kind, text[start:end], None, frozenset()))
