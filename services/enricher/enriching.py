"""Runs the parts over entries. Whatever a part raises, the entry goes on, with a flag."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, TypeVar

from services.enricher.metrics import note_failure, timed
from services.enricher.parts import Label, Languages, Parts
from services.enricher.text import Text
from shared.wire.enrichment import UNDETERMINED, Enrichment, Entity, Sketch
from shared.wire.results import Entry

log = logging.getLogger(__name__)

FAILED = "enrichment_failed"
"""The flag of an entry that a part could not deal with."""

SKIPPED = "enrichment_skipped"
"""The flag of an entry for which its result left no time."""

CUT = "text_cut"
"""The flag of an entry of whose text only the beginning was looked at."""

T = TypeVar("T")


def enrich_entries(entries: Sequence[Entry], feed_language: str | None, parts: Parts) -> list[Enrichment]:
    """Return what the parts find out about these entries of one feed."""
    return enrich_feeds([(entries, feed_language)], parts)[0]


def enrich_feeds(feeds: Sequence[tuple[Sequence[Entry], str | None]], parts: Parts) -> list[list[Enrichment]]:
    """Return what the parts find out about the entries of each feed, given with the language that it claims.

    Each part reads all texts before the next one begins: in turns they would take half as much again, since each finds
    the processor's caches full of another's code and data.
    """
    count, failed = sum(len(entries) for entries, _ in feeds), set[int]()
    try:
        grouped = [[Text.of(entry, language) for entry in entries] for entries, language in feeds]
    except Exception:
        log.exception("entries could not be enriched", extra={"urls": [e.url for es, _ in feeds for e in es][:3]})
        found = [Enrichment(flags=(FAILED,))] * count
    else:
        texts = [text for own in grouped for text in own]
        languages = _languages(grouped, parts.languages, failed)
        names = [label and label.name for label in languages]
        sketches = _find("duplicates", parts.sketches, None, failed, texts, names)
        topics = _find("topics", parts.topics, None, failed, texts, names)
        unknown: tuple[Entity, ...] | None = None
        entities = _find("entities", parts.entities, unknown, failed, texts, names)
        flags = [
            tuple(flag for flag, is_set in ((FAILED, place in failed), (CUT, text.is_cut)) if is_set)
            for place, text in enumerate(texts)
        ]
        found = list(map(_enrichment, languages, sketches, topics, entities, flags))
    rest = iter(found)
    return [list(islice(rest, len(entries))) for entries, _ in feeds]


def _languages(grouped: Sequence[Sequence[Text]], part: Languages | None, failed: set[int]) -> list[Label | None]:
    """Return the language of each text, those of one feed being told together."""
    found: list[Label | None] = []
    for texts in grouped:
        own = set[int]()
        start = len(found)
        found += _find("language", part, None, own, texts)
        failed.update(start + place for place in own)
    return found


def _enrichment(
    language: Label | None,
    sketch: Sketch | None,
    topic: Label | None,
    entities: tuple[Entity, ...] | None,
    flags: tuple[str, ...],
) -> Enrichment:
    return Enrichment(
        language=language and language.name,
        language_confidence=language and (None if language.name == UNDETERMINED else language.confidence),
        topic=topic and topic.name,
        topic_confidence=topic and topic.confidence,
        entities=entities,
        sketch=sketch,
        flags=flags,
    )


def _find(
    name: str, part: Callable[..., Sequence[T]] | None, nothing: T, failed: set[int], *columns: Sequence[Any]
) -> Sequence[T]:
    """Return what a part finds in all texts; if it fails, in one after the other.

    Args:
        name: of the part, as in FEEDMILL_ENRICH.
        part: None: there is none.
        nothing: the finding where the part fails.
        failed: gets the places where it does.
        columns: the part's arguments, each with a value per text; the texts first.
    """
    count = len(columns[0])
    if part is None:
        return [nothing] * count
    with timed(name):
        try:
            return _checked(part(*columns), count)
        except Exception:
            log.exception("%s failed, trying one entry after the other", name)
        found: list[T] = []
        for place in range(count):
            try:
                found += _checked(part(*(column[place : place + 1] for column in columns)), 1)
            except Exception:  # noqa: BLE001 - logged above
                note_failure(name)
                failed.add(place)
                found.append(nothing)
        return found


def _checked(found: Sequence[T], count: int) -> Sequence[T]:
    if len(found) != count:
        raise ValueError(f"{len(found)} findings for {count} texts")
    return found
