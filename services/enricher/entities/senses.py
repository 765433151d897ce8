"""Names that are also something else: `سيول` is Seoul, and floods. What stands near tells which: `senses.tsv`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from services.enricher.entities.names import Name, Span

MOST = 50
"""So many matches of a pattern are looked at."""
FARTHEST = 24
"""So many characters before and behind a name are looked at for what belongs to it."""


@dataclass(frozen=True)
class Sense:
    """What one form may mean beside the name of the list."""

    languages: frozenset[str]
    """Those in which it does; none: all."""
    beside: re.Pattern[str] | None
    """The name, with what is around it when it is what the list says; what must be, if the others are None."""
    around: re.Pattern[str] | None
    """The name, with what is around it when it is something else."""
    near: re.Pattern[str] | None
    """What is in an article in which it is something else."""
    instead: Name | None
    """What it is then; None: nothing that we look for."""


def other_sense(span: Span, text: str, language: str | None, article: str) -> Name | None:
    """Return what a form of the list is there: mostly what the list says, None if it is no name.

    Args:
        span: the form, in the title or the body.
        text: that title or body.
        language: its language.
        article: title and body.
    """
    form = text[span.start : span.end]
    for sense in senses().get(form, ()):
        if sense.languages and language not in sense.languages:
            continue
        if sense.beside and _covers(sense.beside, span, text):
            return span.name
        is_other = (sense.around and _covers(sense.around, span, text)) or (sense.near and sense.near.search(article))
        if is_other or (sense.beside and not sense.around and not sense.near):
            return sense.instead
    return span.name


def _covers(pattern: re.Pattern[str], span: Span, text: str) -> bool:
    """Tell if a match of the pattern has the span in it."""
    found = pattern.finditer(text, max(span.start - FARTHEST, 0), span.end + FARTHEST)
    return any(match.start() <= span.start and span.end <= match.end() for match in islice(found, MOST))


@lru_cache(1)
def senses() -> Mapping[str, Sequence[Sense]]:
    """Return the senses by form."""
    found: dict[str, list[Sense]] = {}
    for line in Path(__file__).with_name("senses.tsv").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            languages, forms, beside, around, near, instead = line.split("\t")
            for form in forms.split("|"):
                name = _name(instead) if instead else None
                spoken = frozenset(() if languages == "*" else languages.split(","))
                sense = Sense(spoken, _pattern(beside, form), _pattern(around, form), _pattern(near, form), name)
                found.setdefault(form, []).append(sense)
    return found


def _pattern(text: str, form: str) -> re.Pattern[str] | None:
    return re.compile(text.replace("@", re.escape(form))) if text else None


def _name(text: str) -> Name:
    wikidata, _, name = text.rpartition(":")
    return Name("place", name, wikidata or None)
