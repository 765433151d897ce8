"""Fits weights to texts: logistic regression, by AdaGrad. The same texts give the same weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.enricher.topics.features import BUCKETS
from services.enricher.topics.model import Model

Floats = NDArray[np.float32]

_BATCH = 2048
_SEED = 18
_SMALL = 1e-8
_SHRINK = 1e-6


@dataclass(frozen=True)
class Examples:
    """Texts as their features, and what they are about."""

    found: Sequence[Sequence[int]]
    """The features of each text."""
    targets: Floats
    """(texts, labels): how likely each label is, a row's sum being 1."""
    weights: Floats
    """What each text counts."""


@dataclass(frozen=True)
class Weights:
    """What was learned."""

    table: Floats
    bias: Floats

    def scores(self, found: Sequence[Sequence[int]]) -> Floats:
        """Return the scores of texts, (texts, labels)."""
        summed = [self.table[row].sum(axis=0) / np.sqrt(len(row)) if row else 0 * self.bias for row in found]
        return np.asarray(summed, dtype=np.float32).reshape(-1, len(self.bias)) + self.bias

    def model(self, labels: Sequence[str], temperatures: dict[str, float], threshold: float, made_from: str) -> Model:
        """Return the model, its weights rounded to a byte each."""
        scale = float(np.abs(self.table).max()) / 127 or 1.0
        return Model(
            labels=tuple(labels),
            weights=np.rint(self.table / scale).astype(np.int8),
            scale=scale,
            bias=self.bias,
            temperatures=temperatures,
            threshold=threshold,
            made_from=made_from,
        )


def fit(examples: Examples, *, rounds: int = 5, rate: float = 0.5) -> Weights:
    """Return the weights that tell these texts apart."""
    labels = examples.targets.shape[1]
    table, bias = np.zeros((BUCKETS, labels), np.float32), np.zeros(labels, np.float32)
    seen, seen_bias = np.full((BUCKETS, 1), _SMALL, np.float32), np.full(labels, _SMALL, np.float32)
    order = np.random.default_rng(_SEED)
    usable = np.asarray([place for place, row in enumerate(examples.found) if row])
    for _ in range(rounds):
        shuffled = order.permutation(usable)
        for first in range(0, len(shuffled), _BATCH):
            rows = shuffled[first : first + _BATCH]
            lengths = np.asarray([len(examples.found[row]) for row in rows])
            buckets = np.concatenate([examples.found[row] for row in rows])
            starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
            share = (1 / np.sqrt(lengths)).astype(np.float32)[:, None]
            scores = np.add.reduceat(table[buckets], starts, axis=0) * share + bias
            wrong = (softmax(scores) - examples.targets[rows]) * (examples.weights[rows] / len(rows))[:, None]
            by_bucket = np.argsort(buckets, kind="stable")
            used, begins = np.unique(buckets[by_bucket], return_index=True)
            step = np.add.reduceat(np.repeat(wrong * share, lengths, axis=0)[by_bucket], begins, axis=0)
            step += _SHRINK * table[used]
            seen[used] += (step * step).mean(axis=1, keepdims=True)
            table[used] -= rate * step / np.sqrt(seen[used])
            down = wrong.sum(axis=0)
            seen_bias += down * down
            bias -= 0.1 * rate * down / np.sqrt(seen_bias)
    return Weights(table, bias)


def softmax(scores: Floats) -> Floats:
    """Return the chances that scores stand for, row by row."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), dtype=np.float32)
