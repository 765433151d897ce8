"""Pure: freshness in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol


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
    @property
    def left_out(self) -> Mapping[Any, int]: ...  # noqa: D102 - a protocol


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


def in_full(found: Measured) -> str:
    """Return `in_words` with what is left out; nothing if no article came."""
    left_out = ", ".join(f"{number:,} {_LEFT_OUT.get(kind, kind)}" for kind, number in found.left_out.items() if number)
    if not left_out:
        return in_words(found)
    return f"{in_words(found) or 'none counted'}; left out: {left_out}"


_LEFT_OUT: Mapping[str, str] = {
    "first_reading": "of a first reading",
    "paused": "after a pause",
    "old_date": "with an old date",
    "out_of_order": "of polls out of order",
    "duplicate": "duplicates",
}
"""Articles that do not count, in words."""


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
