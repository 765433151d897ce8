"""py3langid behind a seam: how well a text fits each language."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import Any

import numpy as np

from services.enricher.language.scripts import ALONE
from services.enricher.parts import Missing

Floats = np.ndarray[tuple[int], np.dtype[np.float32]]

NO_LANGUAGE = "zxx"
"""What the model calls code and the like."""

_VARIANTS = {"nn": "no", "arz": "ar", "ary": "ar", "wuu": "zh", "yue": "zh", "hbo": "he", "grc": "el", "sdh": "ku"}
"""The model's languages that are labelled as another."""


class Model:
    """What fits a language: a naive Bayes model over byte n-grams of those that share their script."""

    def __init__(self) -> None:
        """Load it: a second or two of CPU time, 100 MB.

        Raises:
            Missing: py3langid is not installed.
        """
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier, visit_counts
        except ImportError as error:
            raise Missing("py3langid is not installed: pip install 'feedmill[enrich]'") from error
        identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
        labels = [_VARIANTS.get(label, label) for label in identifier.nb_classes]
        kept = sorted((label, place) for place, label in enumerate(labels) if len(label) == 2 or label == NO_LANGUAGE)
        kept = [(label, place) for label, place in kept if label not in ALONE]
        self.languages = sorted({label for label, _ in kept})
        self._starts = [[label for label, _ in kept].index(language) for language in self.languages]
        self._table = identifier.nb_ptc[:, [place for _, place in kept]].astype(np.float32)
        self._visit: Any = visit_counts
        self._automaton = identifier.tk_nextmove, [row << 8 for row in identifier.tk_row], identifier.tk_output

    def fit(self, text: str) -> tuple[Floats, int]:
        """Return how well each of `languages` fits (a log-likelihood and a constant), and the text's bytes."""
        data = unicodedata.normalize("NFC", text).encode(errors="replace")
        visits: Counter[int] | None = self._visit(*self._automaton, data)
        if not visits:
            return np.zeros(len(self.languages), dtype=np.float32), len(data)
        counts = np.array(list(visits.values()), dtype=np.float32)
        scores = np.log1p(counts) @ self._table[list(visits)]
        return np.maximum.reduceat(scores, self._starts), len(data)
