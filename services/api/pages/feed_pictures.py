"""Pure: the geometry of pictures, which templates draw as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 360, 90
"""Of the field in which bars stand, in the picture's own units."""

LEAST_HEIGHT = 1.5
"""A bar that is not nothing can be seen."""


@dataclass(frozen=True)
class Bar:
    """One value, in the picture's units; y goes down."""

    x: float
    y: float
    width: float
    height: float
    kind: int
    """Which of the stacked series it belongs to, the lowest first: 0, 1, …"""
    label: str


def stack_bars(series: Sequence[Sequence[float]], labels: Sequence[str]) -> list[Bar]:
    """Return a bar for each value that is not nothing; those of one place stand on each other.

    Args:
        series: values at each place, the lowest series first.
        labels: of the places.
    """
    totals = [sum(values) for values in zip(*series, strict=True)]
    most = max(totals, default=0)
    if not most:
        return []
    step = WIDTH / len(totals)
    bars = []
    for place, label in enumerate(labels):
        top = float(HEIGHT)
        for kind, values in enumerate(series):
            if values[place] <= 0:
                continue
            height = max(values[place] / most * HEIGHT, LEAST_HEIGHT)
            top = max(top - height, 0.0)
            bars.append(Bar(round(place * step + step * 0.1, 1), round(top, 1), round(step * 0.8, 1), round(height, 1),
                            kind, label))  # fmt: skip
    return bars
