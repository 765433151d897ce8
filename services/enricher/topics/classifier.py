"""Pure: decides on the topic of a text, by its words and by the sections that its feed and its address name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from services.enricher.parts import Label
from services.enricher.text import Text
from services.enricher.topics.features import buckets
from services.enricher.topics.model import Model, Scores
from services.enricher.topics.sections import topics_named

_RIGHT = 0.9
"""So often the section that an article is filed under is its topic."""

TITLE = 0.2
"""What the title says counts so much once more: in a body of a few sentences it is lost among the other words."""

_MOST_CONFIDENT = 0.99


@dataclass(frozen=True)
class Classifier:
    """The part of the enricher that tells topics."""

    model: Model
    title: float = 0.0
    """What the title's own scores count beside those of title and body."""

    def __call__(self, texts: Sequence[Text], languages: Sequence[str | None]) -> list[Label | None]:
        """Return the topic of each text in its language; None where none is likely enough."""
        return [self.topic(text, language) for text, language in zip(texts, languages, strict=True)]

    def topic(self, text: Text, language: str | None) -> Label | None:
        """Return the topic of one text."""
        odds = self._by_words(text, language)
        named = self._by_sections(text)
        if odds is None and named is None:
            return None
        both = (odds if odds is not None else 0) + (named if named is not None else 0)
        chances = np.exp(both - np.max(both))
        chances /= chances.sum()
        best = int(chances.argmax())
        confidence = min(float(chances[best]), _MOST_CONFIDENT)
        if confidence < self.model.threshold:
            return None
        return Label(self.model.labels[best], round(confidence, 3))

    def _by_words(self, text: Text, language: str | None) -> Scores | None:
        """Return the logarithms of what speaks for each label; None if the model does not know the language."""
        temperature = self.model.temperature(language)
        if temperature is None or not (found := buckets(text.title, text.body)):
            return None
        scores = self.model.scores(found)
        if self.title and text.body and (alone := buckets(text.title)):
            scores = scores + np.float32(self.title) * (self.model.scores(alone) - self.model.bias)
        return scores / np.float32(temperature)

    def _by_sections(self, text: Text) -> Scores | None:
        """Return the same for the sections; None if none is known."""
        labels = self.model.labels
        named = [labels.index(topic) for topic in topics_named(text.categories, text.sections) if topic in labels]
        if not named:
            return None
        weight = math.log(_RIGHT / ((1 - _RIGHT) / max(len(labels) - 1, 1)))
        said = np.zeros(len(labels), dtype=np.float32)
        for place in named:
            said[place] += weight / len(named)
        return said
