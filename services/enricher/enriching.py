"""Runs the parts over entries. Whatever a part raises, the entry goes on, with a flag."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from services.enricher.metrics import note_failure, timed
from services.enricher.parts import Label, Parts
from services.enricher.text import Text
from shared.wire.enrichment import UNDETERMINED, Enrichment, Entity
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
    try:
        texts = [Text.of(entry, feed_language) for entry in entries]
    except Exception:
        log.exception("entries could not be enriched", extra={"urls": [entry.url for entry in entries][:3]})
        return [Enrichment(flags=(FAILED,))] * len(entries)
    failed: set[int] = set()
    languages: Sequence[Label | None] = _find("language", parts.languages, None, failed, texts)
    names = [label and label.name for label in languages]
    sketches = _find("duplicates", parts.sketches, None, failed, texts, names)
    topics = _find("topics", parts.topics, None, failed, texts, names)
    unknown: tuple[Entity, ...] | None = None
    entities = _find("entities", parts.entities, unknown, failed, texts, names)
    return [
        Enrichment(
            language=language and language.name,
            language_confidence=language and (None if language.name == UNDETERMINED else language.confidence),
            topic=topic and topic.name,
            topic_confidence=topic and topic.confidence,
            entities=named,
            sketch=sketch,
            flags=tuple(flag for flag, is_set in ((FAILED, place in failed), (CUT, texts[place].is_cut)) if is_set),
        )
        for place, (language, sketch, topic, named) in enumerate(
            zip(languages, sketches, topics, entities, strict=True)
        )
    ]


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
