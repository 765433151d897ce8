"""What is counted of labels. A label's name is a metric's label value only as long as there are few of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from prometheus_client import Counter, Histogram

from services.enricher.parts import Parts
from shared.wire.enrichment import UNDETERMINED, Enrichment

MOST_NAMES = 100
"""Of so many languages, and of so many topics; a model of one's own may have more, which are counted as `other`."""

NONE = "none"
OTHER = "other"

ARTICLES = Counter("feedmill_enriched_articles_total", "Entries that passed the enricher.")
LANGUAGES = Counter(
    "feedmill_enriched_languages_total",
    "Entries by the language that was found; `und`: the text does not tell it; `none`: the part failed.",
    ["language"],
)
TOPICS = Counter(
    "feedmill_enriched_topics_total", "Entries by the topic that was found; `none`: none was sure enough.", ["topic"]
)
SECONDS = Histogram(
    "feedmill_enrichment_seconds",
    "Time that a part of the enricher takes for the entries of one result, in seconds.",
    ["part"],
    buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
FAILURES = Counter(
    "feedmill_enrichment_failures_total", "Entries that a part of the enricher could not label.", ["part"]
)

_seen: dict[Counter, set[str]] = {LANGUAGES: {UNDETERMINED, NONE}, TOPICS: {NONE}}
for _counter, _names in _seen.items():
    for _name in _names:
        _counter.labels(_name)  # 0 until there is one: a share of none is a share


def timed(part: str) -> AbstractContextManager[object]:
    """Return a block that observes the time of a part with the entries of one result."""
    return SECONDS.labels(part).time()


def note_failure(part: str) -> None:
    """Count an entry that a part could not label."""
    FAILURES.labels(part).inc()


def note_found(found: Sequence[Enrichment], parts: Parts) -> None:
    """Count the labels of a result's entries; those of a part that is not there are not missed."""
    ARTICLES.inc(len(found))
    for enrichment in found:
        if parts.languages:
            _count(LANGUAGES, enrichment.language or NONE)
        if parts.topics:
            _count(TOPICS, enrichment.topic or NONE)


def _count(counter: Counter, name: str) -> None:
    seen = _seen[counter]
    if name not in seen:
        if len(seen) >= MOST_NAMES:
            name = OTHER
        else:
            seen.add(name)
    counter.labels(name).inc()
