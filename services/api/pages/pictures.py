"""Pure: where the parts of pictures stand. Templates make SVG of them (`templates/pictures.html`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 480.0, 96.0
GAP = 0.2
"""Of a bar's width."""


@dataclass(frozen=True)
class Bar:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float
    kind: int
    """Which of the stacked values it is."""


def stack(values: Sequence[Sequence[int]]) -> list[Bar]:
    """Return bars side by side, each of which stacks its values; the highest one fills the picture."""
    most = max((sum(each) for each in values), default=0)
    if not most:
        return []
    step = WIDTH / len(values)
    bars = []
    for place, each in enumerate(values):
        top = HEIGHT
        for kind, value in enumerate(each):
            height = value / most * HEIGHT
            top -= height
            if value:
                x = (place + GAP / 2) * step
                bars.append(Bar(round(x, 1), round(top, 1), round(step * (1 - GAP), 1), round(max(height, 1), 1), kind))
    return bars


def line(values: Sequence[int | None], room: int) -> str:
    """Return the path of a line, the last value at the right edge. A value that is missing leaves a gap.

    Args:
        values: the oldest first.
        room: how many values the picture has room for.
    """
    most = max((value for value in values if value is not None), default=0) or 1
    step = WIDTH / max(room - 1, 1)
    start = WIDTH - step * (len(values) - 1)
    path, is_drawn = [], False
    for place, value in enumerate(values):
        if value is None:
            is_drawn = False
            continue
        path.append(f"{'L' if is_drawn else 'M'}{start + place * step:.1f} {HEIGHT - value / most * HEIGHT:.1f}")
        is_drawn = True
    return "".join(path)
