"""`python -m services.enricher.topics.training.shipped DIRECTORY`: trains the model that feedmill brings.

A teacher, which knows the meaning of sentences in 15 languages and is too slow to ship, learns topics from English
texts. The model learns the English texts, and what the teacher says of words and sentences in the other languages.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from services.enricher.topics import DEFAULT_MODEL
from services.enricher.topics.features import features
from services.enricher.topics.taxonomy import MEDIA_TOPICS
from services.enricher.topics.training.calibrate import Held, temperature
from services.enricher.topics.training.fit import Examples, Floats, Weights, fit, softmax
from services.enricher.topics.training.shipped import sources
from services.enricher.topics.training.shipped.teacher import Teacher, embed, trusted

LABELS = tuple(sorted(MEDIA_TOPICS.values()))
THRESHOLD = 0.6
_COOLEST = 0.75
"""No temperature is lower: SIB-200's sentences are easier to tell than news."""
_HARD = 0.75
"""So much the source's heading counts for a text's topic; the rest is what the teacher says."""
_WORD = 0.3
"""A word alone counts so much beside a sentence."""
_WORDS = 1.0
"""So much one of a topic's words among common ones."""
_OWN = 5.0
"""A text that was written for the purpose counts so much."""
_BIAS, _PRIOR = 0.5, 0.3
"""What the learned preference for topics counts, which is that of single words too, and what the usual shares count."""
_USUAL = dict(zip(LABELS, (9, 9, 9, 5, 12, 3, 4, 5, 2, 2, 6, 15, 2, 8, 4, 14, 2), strict=True))
"""How many of a hundred articles of general news are about a topic, roughly; the sources' shares are no news's."""


def main(data: Path) -> None:
    """Train on the data in this directory, and write the model."""
    texts = sources.labelled(data)
    vectors = embed([text.text for text in texts], data)
    right = np.asarray([LABELS.index(text.topic or "") for text in texts])
    kept = trusted(vectors, right)
    print(f"{len(texts)} texts, of which {kept.sum()} have a topic that others of the kind bear out")
    teacher = Teacher.taught(vectors[kept], right[kept])
    held = np.arange(len(texts)) % 20 == 0
    learned = np.flatnonzero(kept & ~held)
    english = _targets(teacher, vectors, right)[learned]
    found = [features(text.text) for text in texts]
    others = list(sources.in_other_languages(data))
    said = teacher.chances(embed([text.text for text in others], data))
    own = list(sources.of_words())
    weights = fit(
        Examples(
            [found[row] for row in learned] + [features(text.text) for text in (*others, *own)],
            np.concatenate([english, said, _one_hot([text.topic for text in own])]),
            np.asarray(
                [_OWN if texts[row].source == "own" else 1.0 for row in learned]
                + [_WORD if text.source == "word" else 1.0 for text in others]
                + [_WORDS] * len(own),
                dtype=np.float32,
            ),
        )
    )
    usual = np.log(np.asarray([_USUAL[label] for label in LABELS], dtype=np.float32))
    weights.bias[:] = _BIAS * weights.bias + _PRIOR * (usual - usual.mean())
    tested = [row for row in np.flatnonzero(held) if texts[row].source != "own"]
    news = Held(weights.scores([found[row] for row in tested]), right[tested])
    print(f"English, texts held out: {(news.scores.argmax(axis=1) == news.right).mean():.3f} of {len(tested)}")
    temperatures = _temperatures(weights, data)
    model = weights.model(LABELS, temperatures, THRESHOLD, "docs/explanation/enrichment.md#topics")
    model.save(DEFAULT_MODEL)
    print(f"{DEFAULT_MODEL}: {DEFAULT_MODEL.stat().st_size:,} bytes, temperatures {temperatures}")


def _targets(teacher: Teacher, vectors: Floats, right: np.ndarray) -> Floats:
    targets = np.eye(len(LABELS), dtype=np.float32)[right]
    return np.asarray(_HARD * targets + (1 - _HARD) * teacher.chances(vectors), dtype=np.float32)


def _one_hot(topics: Sequence[str | None]) -> Floats:
    return np.eye(len(LABELS), dtype=np.float32)[[LABELS.index(topic or "") for topic in topics]]


def _temperatures(weights: Weights, data: Path) -> dict[str, float]:
    """Return the temperature of each language, by the sentences of SIB-200 that were held out."""
    temperatures = {}
    for language in sources.LANGUAGES:
        texts = [text for text in sources.sib(data, language, "test") if text.topic]
        held = Held(
            weights.scores([features(text.text) for text in texts]),
            np.asarray([LABELS.index(text.topic or "") for text in texts]),
        )
        temperatures[language] = max(temperature(held), _COOLEST)
        sure = softmax(held.scores / temperatures[language])
        right = sure.argmax(axis=1) == held.right
        chosen = sure.max(axis=1) >= THRESHOLD
        print(
            f"{language}: {right.mean():.2f} of {len(texts)}; "
            f"sure of {chosen.mean():.2f}, right {right[chosen].mean():.2f}"
        )
    return temperatures


def _directory(arguments: Sequence[str]) -> Path:
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        sys.exit("usage: make train-topics ARGS=DIRECTORY; docs/explanation/enrichment.md says what is in it")
    return Path(arguments[0])


if __name__ == "__main__":
    main(_directory(sys.argv[1:]))
