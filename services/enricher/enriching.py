"""Enriches results. Whatever a part raises, the entry goes on, with a flag."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from services.enricher.parts import Label, Parts
from services.enricher.text import Text
from shared.wire.enrichment import UNDETERMINED, Enrichment, Entity
from shared.wire.results import Entry, FeedFetched

log = logging.getLogger(__name__)

FAILED = "enrichment_failed"
"""The flag of an entry that a part could not deal with."""

CUT = "text_cut"
"""The flag of an entry of whose text only the beginning was looked at."""

T = TypeVar("T")


def enrich(fetched: FeedFetched, parts: Parts) -> FeedFetched:
    """Return the result with what the parts find out about its entries."""
    found = enrich_entries(fetched.entries, fetched.feed.language, parts)
    entries = (e.model_copy(update={"enrichment": f}) for e, f in zip(fetched.entries, found, strict=True))
    return fetched.model_copy(update={"entries": tuple(entries)})


def enrich_entries(entries: Sequence[Entry], feed_language: str | None, parts: Parts) -> list[Enrichment]:
    """Return what the parts find out about these entries of one feed."""
    texts = [Text.of(entry, feed_language) for entry in entries]
    failed: set[int] = set()

    def run(part: Callable[[int, int], Sequence[T]] | None, nothing: T) -> Sequence[T]:
        """Run a part on all texts, or on one after the other if it fails."""
        if part is None:
            return [nothing] * len(texts)
        try:
            return part(0, len(texts))
        except Exception:
            log.exception("an entry could not be enriched", extra={"urls": [entry.url for entry in entries][:3]})
        found: list[T] = []
        for place in range(len(texts)):
            try:
                found += part(place, place + 1)
            except Exception:  # noqa: BLE001 - logged above
                failed.add(place)
                found.append(nothing)
        return found

    def over(part: Callable[[Sequence[Text]], Sequence[T]] | None) -> Callable[[int, int], Sequence[T]] | None:
        return part and (lambda first, end: part(texts[first:end]))

    languages: Sequence[Label | None] = run(over(parts.languages), None)
    names = [label and label.name for label in languages]
    sketches = run(over(parts.sketches), None)
    topics, find = parts.topics, parts.entities
    labels = run(topics and (lambda first, end: topics(texts[first:end], names[first:end])), None)
    nobody: tuple[Entity, ...] = ()
    entities = run(find and (lambda first, end: find(texts[first:end], names[first:end])), nobody)
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
            zip(languages, sketches, labels, entities, strict=True)
        )
    ]
