"""Pure: decides on a language by what the texts of one feed fit, and by what the feed claims.

A text's own words come first. The feed's label and its other entries shift the odds, by a bounded factor: they decide
about three words, and can't about three sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from services.enricher.language.model import NO_LANGUAGE, Floats, Sizes
from services.enricher.language.scripts import NAMES, is_written_in

Shares = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

RARER = frozenset(
    {"af", "az", "be", "cy", "eo", "eu", "ga", "gl", "is", "kk", "mk", "mr", "ms", "ne", "sq", "sw", "tl"}
)
"""Languages with few feeds, most of them like one with many."""

_RARER = -1.0
_OTHER = -2.5
"""What languages that are rarer, or not asked for, have against them before a word is read, in nats. A text in a
language that is not asked for gets no label, rather than a wrong one."""

_WRONG_SCRIPT = -12.0
_SHARPNESS = 2.0
"""Scales the model's fit, by the root of the text's length, to probabilities: calibrated (benchmarks/enrichment)."""

_SCALE = 60.0
_LABEL, _ENGLISH_LABEL = 1.0, 0.4
"""What a label counts, in entries that were read. Templates claim English whatever is written in them."""

_MOST_ENTRIES = 4.0
"""What label and other entries count together, at most: a factor of 240 in the odds."""


class Priors:
    """What is known of languages before a text is read."""

    def __init__(self, languages: Sequence[str], wanted: frozenset[str]) -> None:
        """Keep the languages of a model, and those that may be labels."""
        self.languages, self.wanted = languages, wanted
        self.is_wanted = np.array([language in wanted for language in languages])
        base = np.array([_base(language, wanted) for language in languages])
        self._base = {
            script: base
            + np.array([0.0 if is_written_in(language, script) else _WRONG_SCRIPT for language in languages])
            for script in NAMES
        }

    def read(self, fit: Floats, length: int | Sizes, script: str) -> Shares:
        """Return the log-odds of each language by a text of `length` bytes alone, or by each of several texts."""
        log_odds: Shares = (fit.T * (_SHARPNESS / np.maximum(length, 1) ** 0.5)).T + self._base[script]
        return log_odds

    def of_feed(self, label: str | None, others: Shares, count: int) -> Shares:
        """Return what a feed's label and the sum of the shares of its `count` other entries add to the log-odds."""
        known = others.copy()
        weight = float(count)
        if label in self.languages:
            claim = _ENGLISH_LABEL if label == "en" else _LABEL
            known[self.languages.index(label)] += claim
            weight += claim
        if not weight:
            return known
        found: Shares = np.log1p(known * (min(weight, _MOST_ENTRIES) / weight) * _SCALE)
        return found


def _base(language: str, wanted: frozenset[str]) -> float:
    if language not in wanted:
        return 0.0 if language == NO_LANGUAGE else _OTHER
    return _RARER if language in RARER else 0.0


def to_shares(log_odds: Shares) -> Shares:
    """Return the shares of the languages, which sum to 1, in each row."""
    shares = np.exp(log_odds - log_odds.max(axis=-1, keepdims=True))
    found: Shares = shares / shares.sum(axis=-1, keepdims=True)
    return found
