"""People, organisations and places told by what stands beside them: a role, an abbreviation, a dateline, a club."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from services.enricher.entities.names import Name, Names, Span
from services.enricher.entities.style import Style, without_genitive
from services.enricher.entities.vocabulary import (
    CLUBS,
    GENITIVE,
    GERMAN_ROLES,
    INFLECTING,
    OF_CLUBS,
    OF_ORGANISATIONS,
    OF_PLACES,
    OF_TOWNS,
    ROLES,
)
from shared.wire.enrichment import EntityKind

ABBREVIATION = re.compile(r" \(([^\W\d_a-zß-ÿа-я][^\W\d_]{1,9})\)")
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
DATELINE = re.compile(
    r"^[ \t]*([^\W\d_a-zß-ÿ][^\W\d_a-zß-ÿ]+(?:[ -][^\W\d_a-zß-ÿ]{2,}){0,2})(?=,| ?\(| ?[–—/]| - |\.- | \d)",
    re.MULTILINE,
)
GO = re.compile(
    r"\bGo(?= (?:programming|language|code|developers?|modules?|runtime|compiler|toolchain|1\.\d)"
    r"|, (?:Rust|Python|Java)\b)"
    r"|(?:(?<=[Ww]ritten in )|(?<=Rust and )|(?<=Python and )|(?<=Rust, )|(?<=Java, )|(?<=or Rust or ))Go\b"
)
"""The programming language."""
SPACES = (" ", "\u00a0")
BEHIND = OF_CLUBS | OF_TOWNS | OF_PLACES
LONGEST = 12
"""So many words before an abbreviation may be what it stands for."""
MOST = 20
"""So many abbreviations and lines of a text are looked at."""
GOLANG = Name("technology", "Go")
GERMAN_ENDS = frozenset(role[-2:] for role in GERMAN_ROLES)
FARTHEST = 30
"""No role has so many letters."""


def find(
    style: Style, names: Names, words: Sequence[re.Match[str]], said: Sequence[str], listed: frozenset[int]
) -> Iterator[Span]:
    """Yield what context tells.

    Args:
        style: the text.
        names: the list.
        words: the capitalised words of the text.
        said: the same as strings.
        listed: the places of the text where words of the list begin that are no person's.
    """
    text = style.text
    if "(" in text:
        yield from _abbreviated(text)
    yield from _datelines(text, names)
    if "Go" in text:
        yield from (Span(m.start(), m.end(), GOLANG) for m in islice(GO.finditer(text), MOST))
    if not words or style.is_upper_case:
        return
    yield from _named_by_role(style, names, words, listed)
    if style.language in GENITIVE:
        yield from _genitives(names, words, said)
    if style.language == "de" or not (CLUBS.isdisjoint(said) and BEHIND.isdisjoint(said)):
        yield from _clubs(style, names, words, said)


def _named_by_role(
    style: Style, names: Names, words: Sequence[re.Match[str]], listed: frozenset[int]
) -> Iterator[Span]:
    """Yield the people whose roles stand before them."""
    text, is_german = style.text, style.language == "de"
    if not is_german and ROLES.isdisjoint(text.split()):  # most texts
        return
    if style.is_title_case:
        return
    for place, word in enumerate(words):
        start = word.start()
        if is_german and text[max(start - 3, 0) : start - 1].lower()[-2:] not in GERMAN_ENDS:
            continue
        if text[start - 1 : start] in SPACES and _is_role(_word_before(text, start - 1), is_german):
            yield from _person(style, names, words, place, listed)


def _genitives(names: Names, words: Sequence[re.Match[str]], said: Sequence[str]) -> Iterator[Span]:
    """Yield the places with an `s` behind them: `Berlins`."""
    for word, form in zip(words, said, strict=True):
        if form[-1] == "s" and len(form) > 4:
            name = names.latin.form(form[:-1])
            if name and name.kind == "place" and not name.common:
                yield Span(word.start(), word.end() - 1, name)


def _clubs(style: Style, names: Names, words: Sequence[re.Match[str]], said: Sequence[str]) -> Iterator[Span]:
    """Yield clubs and places of two capitalised words."""
    is_german = style.language == "de"
    for place, after in enumerate(said[1:]):
        if said[place] in CLUBS or after in BEHIND or (is_german and after in names.places):
            word, follower = words[place], words[place + 1]
            if style.text[word.end() : follower.start()] in SPACES:
                yield from _club(style, names, word, follower)


def _person(
    style: Style, names: Names, words: Sequence[re.Match[str]], place: int, listed: frozenset[int]
) -> Iterator[Span]:
    """Yield the person whose role stands before this word: `coach Hansi Flick`."""
    text, end = style.text, place
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
    yield _span(text, chosen[0].start(), chosen[-1].start() + len(without_genitive(last)), "person")


def _word_before(text: str, end: int) -> str:
    """Return what stands between the space before this one and this one."""
    first = max(end - FARTHEST, 0)
    return text[max(text.rfind(" ", first, end), text.rfind("\n", first, end)) + 1 : end]


def _is_role(word: str, is_german: bool) -> bool:
    if is_german:
        return word[:1].isupper() and word.lower().endswith(GERMAN_ROLES)
    return word in ROLES


def _club(style: Style, names: Names, word: re.Match[str], after: re.Match[str]) -> Iterator[Span]:
    """Yield the club, or the place: `Dynamo Dresden`, `Leeds United`, `Salt River`."""
    is_place = after[0] in names.places
    is_first = word[0] in CLUBS and (is_place or word[0].startswith(("Vf", "TS")))
    is_last = after[0] in OF_CLUBS or (after[0] in OF_TOWNS and style.language not in {"en", None, "und"})
    if after[0] in OF_PLACES and style.language != "de" and word[0].lower() not in names.words:
        yield _span(style.text, word.start(), after.end(), "place")
    if is_first or (is_last and word[0] in names.places):
        yield _span(style.text, word.start(), after.end(), "organisation")
    team = names.latin.form(word[0]) if is_place and style.language == "de" else None
    if team and team.kind == "organisation" and not team.common:
        yield Span(word.start(), after.end(), team)


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
        name = Name("organisation", said)
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
    return Span(start, end, Name(kind, text[start:end]))
