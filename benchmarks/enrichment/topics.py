"""How often topics are right: on headlines that were written for it, which nothing was trained or tuned on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.enrichment.__main__ import Measure
from services.enricher.parts import Label
from services.enricher.text import Text
from services.enricher.topics import load_topics
from services.enricher.topics.training.texts import Labelled, read_lines

HEADLINES = Path(__file__).with_name("topics.csv")


def evaluate() -> Iterator[Measure]:
    """Yield how many have a label, and how many of those are right: by language, by topic, and by confidence."""
    lines = read_lines(HEADLINES)
    labels = load_topics()([Text(line.text, "") for line in lines], [line.language for line in lines])
    found = list(zip(lines, labels, strict=True))
    yield _measure("all titles", found)
    for language in sorted({line.language for line in lines}):
        yield _measure(language, [pair for pair in found if pair[0].language == language])
    for topic in sorted({line.label for line in lines}):
        yield _measure(topic, [pair for pair in found if pair[0].label == topic])
    for least, most in ((0.0, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.0)):
        chosen = [(line, label) for line, label in found if label and least <= label.confidence < most]
        yield _measure(f"confidence {least} to {most}", chosen)


def _measure(name: str, found: Sequence[tuple[Labelled, Label | None]]) -> Measure:
    given = [(line, label) for line, label in found if label]
    right = sum(label.name == line.label for line, label in given)
    share = f"{100 * right / len(given):.0f} % right" if given else "none right"
    return Measure(name, f"{len(given)} labelled, {share}", f"{len(found)} headlines")
