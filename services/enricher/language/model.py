"""py3langid behind a seam: how well a text fits each language."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from services.enricher.language.scripts import ALONE

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float32]]

Sizes = np.ndarray[tuple[int], np.dtype[np.int_]]

NO_LANGUAGE = "zxx"
"""What the model calls code and the like."""

_VARIANTS = {"nn": "no", "arz": "ar", "ary": "ar", "wuu": "zh", "yue": "zh", "hbo": "he", "grc": "el", "sdh": "ku"}
"""The model's languages that are labelled as another."""


class Model:
    """What fits a language: a naive Bayes model over byte n-grams of those that share their script."""

    def __init__(self) -> None:
        """Load it: a second or two of CPU time, 100 MB.

        Raises:
            ImportError: py3langid is not installed.
        """
        from py3langid.langid import MODEL_FILE, LanguageIdentifier, visit_counts

        identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
        labels = [_VARIANTS.get(label, label) for label in identifier.nb_classes]
        kept = sorted((label, place) for place, label in enumerate(labels) if len(label) == 2 or label == NO_LANGUAGE)
        kept = [(label, place) for label, place in kept if label not in ALONE]
        self.languages = sorted({label for label, _ in kept})
        self._starts = [[label for label, _ in kept].index(language) for language in self.languages]
        table = identifier.nb_ptc[:, [place for _, place in kept]]
        self._table = np.ascontiguousarray(table, dtype=np.float32)  # a row in one place: gathering took 6 µs, not 40
        self._visit: Any = visit_counts
        self._automaton = identifier.tk_nextmove, [row << 8 for row in identifier.tk_row], identifier.tk_output

    def fit(self, texts: Sequence[str]) -> tuple[Floats, Sizes]:
        """Return how well each of `languages` fits each text (log-likelihood and a constant), and their bytes."""
        datas = [unicodedata.normalize("NFC", text).encode(errors="replace") for text in texts]
        visits: list[Mapping[int, int]] = [self._visit(*self._automaton, data) or {} for data in datas]
        places = np.array([row for visited in visits for row in visited], dtype=np.intp)
        rows = self._table[places]
        weights = np.log1p(np.array([count for visited in visits for count in visited.values()], dtype=np.float32))
        ends = list(accumulate(map(len, visits), initial=0))
        scores = np.array([weights[start:end] @ rows[start:end] for start, end in pairwise(ends)])
        return np.maximum.reduceat(scores, self._starts, axis=1), np.array([len(data) for data in datas])
