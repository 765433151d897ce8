"""What scores are worth, found on texts that nothing was learned from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.enricher.topics.training.fit import Floats, softmax

_TEMPERATURES = np.geomspace(0.2, 5.0, 60)
_FEWEST = 20
"""A threshold is chosen by so many texts at least."""


@dataclass(frozen=True)
class Held:
    """Texts that were held out: their scores, and the column of their label."""

    scores: Floats
    right: NDArray[np.int64]


def temperature(held: Held) -> float:
    """Return what to divide scores by, so that the chances they stand for are those that texts have."""
    rows = np.arange(len(held.right))
    losses = [-np.log(softmax(held.scores / t)[rows, held.right] + 1e-9).mean() for t in _TEMPERATURES]
    return round(float(_TEMPERATURES[int(np.argmin(losses))]), 3)


def threshold(held: Held, divisor: float, precision: float) -> float:
    """Return the lowest confidence from which on this share of labels is right; the highest that is left, if none."""
    chances = softmax(held.scores / divisor)
    sure, right = chances.max(axis=1), chances.argmax(axis=1) == held.right
    for least in np.arange(0.3, 0.96, 0.01):
        chosen = sure >= least
        if chosen.sum() < _FEWEST:
            break
        if right[chosen].mean() >= precision:
            return round(float(least), 2)
    return 0.95
