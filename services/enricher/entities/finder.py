"""Finds the entities of an article: what the list, the rules and the model see, each place of the text once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

from services.enricher.entities import rules
from services.enricher.entities.longer import is_inside
from services.enricher.entities.model import Model, load_model
from services.enricher.entities.names import Name, Names, Span, is_letter, load_names
from services.enricher.entities.senses import other_sense, senses
from services.enricher.entities.style import Style
from services.enricher.entities.vocabulary import GENITIVE, VERBS
from services.enricher.parts import Entities, Missing
from services.enricher.text import Text
from shared.wire.enrichment import Entity, EntityKind, Mention

MOST_ENTITIES = 50
MOST_MENTIONS = 10
"""An article keeps so many entities, and so many mentions of each."""
MOST_BODY = 2_000
"""So many characters of the body are looked at: the beginning of an article names whom it is about."""
MOST_SPANS = 2_000
"""So many places of a text are weighed."""
LONGEST_ABBREVIATION = 4
"""In a text of capitals alone, `US` and `WHO` may be words."""
Field = Literal["title", "body"]
Found = tuple[Field, Span]

TECHNICAL = re.compile(
    r"\b(?:software|programming|programmer\w*|coding|codebase|developers?|open[- ]source|frameworks?|APIs?"
    r"|compilers?|runtime|servers?|databases?|browsers?|apps?|startups?|AI|LLMs?|GPUs?|chips?|cloud|DevOps|web|CLI|SDK"
    r"|repositor(?:y|ies)|logiciels?|développeurs?|Entwickler\w*|programmi\w+|desarrollador\w*|código|sviluppator\w+"
    r"|разработчик\w*|программ\w+)\b"
)
NEXT = re.compile(r"(?:['’]s)? (CEO|Inc\b)?([A-Za-z]*)")
"""What follows a company's name."""
NEAR = re.compile(
    r"\b(?:to|of|outside|around|across|between|nach|aus|bei|von|à|en|dans|vers|desde|hacia|em|para|w|z|i|v"
    r"|uit|till|från|fra|til|[Ii]n|[Nn]ear|[Ff]rom|[Aa]t)\s$"
)
"""The words before a place."""


def load_entities(mode: str = "list") -> Entities:
    """Return what finds entities, by the list (`list`) or with spaCy's models beside it (`model`).

    Raises:
        Missing: a package or a model is not installed; without a model the list stands in.
    """
    names = load_names()
    if mode == "list":
        return _finder(names)
    try:
        return _finder(names, load_model())
    except Missing as error:
        raise Missing(f"found by the list only, since {error}", instead=_finder(names)) from error


def _finder(names: Names, model: Model | None = None) -> Entities:
    def find(texts: Sequence[Text], languages: Sequence[str | None]) -> list[tuple[Entity, ...]]:
        return [entities_of(text, language, names, model) for text, language in zip(texts, languages, strict=True)]

    return find


def entities_of(text: Text, language: str | None, names: Names, model: Model | None = None) -> tuple[Entity, ...]:
    """Return the entities of a text in this language (None: unknown), those first that are named first."""
    styles: dict[Field, Style] = {"title": Style(text.title, language), "body": Style(text.body[:MOST_BODY], language)}
    sure: list[Found] = []
    doubtful: list[Found] = []
    article = f"{styles['title'].text}\n{styles['body'].text}"
    for field, style in styles.items():
        listed = list(_meant(islice(names.find(style.text), MOST_SPANS), style, article))
        for span in listed:
            if is_inside(span, style, names):
                continue
            if _is_sure(span, style, text):
                sure.append((field, span))
            elif not (language == "de" and span.name.kind == "place" and "de" in span.name.common):
                doubtful.append((field, span))
        taken = frozenset(span.start for span in listed if span.name.kind != "person")
        sure += ((field, span) for span in rules.find(style, names, taken))
        if model:
            sure += ((field, span) for span in model.find(style.text, language))
    seen = {span.name.name for _, span in sure}
    sure += ((f, s) for f, s in doubtful if s.name.name in seen and not styles[f].is_upper_case)
    chosen = _without_namesakes(_without_overlaps(sure), styles)
    people = _last_names(chosen)
    if not people:
        return _grouped(chosen)
    chosen = [
        (f, s._replace(name=people.get(s.name.name, s.name) if s.name.kind == "person" else s.name)) for f, s in chosen
    ]
    return _grouped(_without_overlaps([*chosen, *_named_again(people, styles)]))


def _meant(found: Iterable[Span], style: Style, article: str) -> Iterator[Span]:
    """Yield what forms stand for there, without those that are something else."""
    ambiguous = senses()
    for span in found:
        if style.text[span.start : span.end] not in ambiguous:
            yield span
        elif name := other_sense(span, style.text, style.language, article):
            yield span._replace(name=name)


def _is_sure(span: Span, style: Style, text: Text) -> bool:
    """Tell if a form of the list means its entity there, and is no common word."""
    form, common = style.text[span.start : span.end], span.name.common
    if not form[0].isupper():
        return not common
    if style.is_upper_case and (len(form) <= LONGEST_ABBREVIATION or common):
        return False
    words = common - {"t", "?"}
    is_word = bool(words) and (style.language in words or style.language in {None, "und"})
    if span.name.kind == "technology" and (is_word or "t" in common):
        is_technical = TECHNICAL.search(text.title) or TECHNICAL.search(text.body, 0, MOST_BODY)
        return bool(is_technical) and (not is_word or style.tells(span.start))
    if span.name.kind == "place" and "?" in common:
        return bool(NEAR.search(style.text, max(span.start - 9, 0), span.start))
    if span.name.kind == "place" and is_word and style.language == "de":
        return style.text.endswith(" in ", 0, span.start)
    return not is_word or style.tells(span.start) or (span.name.kind == "organisation" and _acts(style, span.end))


def _acts(style: Style, end: int) -> bool:
    """Tell if what follows is what companies do: `Apple unveils …`."""
    after = NEXT.match(style.text, end)
    return bool(after and (after[1] or after[2].lower() in VERBS))


def _without_overlaps(found: list[Found]) -> list[Found]:
    """Return the longest of those that overlap; of equally long ones the first, which is the list's."""
    taken: dict[Field, set[int]] = {"title": set(), "body": set()}
    chosen = []
    for field, span in sorted(found, key=lambda f: f[1].start - f[1].end):
        if span.start in taken[field] or span.end - 1 in taken[field]:
            continue
        taken[field].update(range(span.start, span.end))
        chosen.append((field, span))
    return sorted(chosen, key=lambda f: (f[0] == "body", f[1].start))


def _without_namesakes(found: list[Found], styles: dict[Field, Style]) -> list[Found]:
    """Leave out the places that are called like a person of the text, unless a preposition tells them."""
    people: set[str] = set()
    for field, span in found:
        if span.name.kind == "person":
            said = styles[field].text[span.start : span.end]
            people.add(said[:2] if said[0] > "\u3000" else said.split(" ")[0])
            if styles[field].language == "en":  # in Spanish a town's club is often beside its namesake
                people.add(said.rsplit(" ", 1)[-1])
    if not people:
        return found
    return [
        (field, span)
        for field, span in found
        if span.name.kind != "place"
        or styles[field].text[span.start : span.end] not in people
        or NEAR.search(styles[field].text, max(span.start - 9, 0), span.start)
    ]


def _last_names(found: list[Found]) -> dict[str, Name]:
    """Return the last names of people who are named in full."""
    people: dict[str, Name] = {}
    for _, span in found:
        last = span.name.name.rsplit(" ", 1)[-1]
        if span.name.kind == "person" and last != span.name.name and len(last) > 2:
            people.setdefault(last, span.name)
    return people


def _named_again(people: dict[str, Name], styles: dict[Field, Style]) -> Iterator[Found]:
    """Yield where people are named by their last name."""
    for last, name in islice(people.items(), MOST_ENTITIES):
        for field, style in styles.items():
            start, mentions = style.text.find(last), 0
            while start >= 0 and mentions < MOST_MENTIONS:
                end = start + len(last)
                after = style.text[end : end + 2]
                if style.language in GENITIVE and after[:1] == "s":
                    after = after[1:]
                if not is_letter(style.text[start - 1 : start]) and not is_letter(after[:1]):
                    yield field, Span(start, end, name)
                    mentions += 1
                start = style.text.find(last, end)


def _grouped(found: list[Found]) -> tuple[Entity, ...]:
    """Return an entity per thing, with its mentions."""
    mentions: dict[tuple[EntityKind, str], tuple[Name, list[Mention]]] = {}
    for field, span in found:
        _, known = mentions.setdefault((span.name.kind, span.name.id or span.name.name), (span.name, []))
        if len(known) < MOST_MENTIONS:
            known.append(Mention(field=field, start=span.start, end=span.end))
    kept = list(mentions.values())[:MOST_ENTITIES]
    return tuple(Entity(name=n.name, kind=n.kind, id=n.id, mentions=tuple(where)) for n, where in kept)
