"""Pure: freshness in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from services.writer.freshness.rules import LeftOut


class Spans(Protocol):
    """Percentiles, in seconds."""

    @property
    def p50(self) -> float: ...  # noqa: D102 - a protocol
    @property
    def p95(self) -> float: ...  # noqa: D102 - a protocol
    @property
    def p99(self) -> float: ...  # noqa: D102 - a protocol


class Measured(Protocol):
    """What is counted over a span, as in `freshness.Freshness`."""

    @property
    def sure(self) -> int: ...  # noqa: D102 - a protocol
    @property
    def unsure(self) -> int: ...  # noqa: D102 - a protocol
    @property
    def seconds(self) -> Spans | None: ...  # noqa: D102 - a protocol
    @property
    def at_most(self) -> Spans | None: ...  # noqa: D102 - a protocol


_LEFT_OUT: Mapping[LeftOut, str] = {
    "first_reading": "first reading",
    "paused": "after a pause",
    "old_date": "old date",
    "out_of_order": "out of order",
    "duplicate": "came before",
}
"""Why articles are left out."""


def left_out_in_words(left_out: Mapping[LeftOut, int]) -> str:
    """Return how many new articles do not count, and why; nothing if there were none."""
    whys = {_LEFT_OUT[reason]: number for reason, number in left_out.items() if number}
    if not whys:
        return ""
    each = next(iter(whys)) if len(whys) == 1 else ", ".join(f"{number:,} {why}" for why, number in whys.items())
    return f"none counted yet: {sum(whys.values()):,} left out ({each})"


def in_words(found: Measured) -> str:
    """Return a sentence without its full stop; nothing if nothing was counted."""
    articles = found.sure + found.unsure
    if found.at_most is None:
        return ""
    number = f"{articles:,} article{'s' if articles != 1 else ''}"
    if found.seconds is None:
        return f"{_within(found.at_most)} at most ({number}, none with a sure date)"
    if not found.unsure:
        return f"{_within(found.seconds)} ({number}, all with a sure date)"
    share = f"{number}, {math.floor(100 * found.sure / articles)} % with a sure date"
    return f"{_within(found.seconds)} ({share}; of all: {_within(found.at_most)} at most)"


def _within(spans: Spans) -> str:
    return f"half within {span(spans.p50)}, 95 % within {span(spans.p95)}, 99 % within {span(spans.p99)}"


def span(seconds: float) -> str:
    """Return a span of time, rounded up: `90 s`, `12 min`, `2.5 h`, `3.1 days`."""
    unit, length, parts = next((unit, length, parts) for most, unit, length, parts in _UNITS if seconds <= most)
    return f"{math.ceil(seconds / length * parts) / parts:,g} {unit}"


_UNITS = (
    (120.0, "s", 1.0, 1),
    (7200.0, "min", 60.0, 1),
    (172_800.0, "h", 3600.0, 10),
    (math.inf, "days", 86_400.0, 10),
)
"""Up to how many seconds a unit is used, its length in seconds, and in how many parts it is cut."""
