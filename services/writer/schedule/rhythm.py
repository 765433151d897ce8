"""Pure: at which UTC hours and on which weekdays a feed publishes more or less than on average."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache

HOUR = 3600.0
DAY = 86400.0
MONDAY = 72
"""Added to hours since 1970-01-01, a Thursday, to have them begin on a Monday."""

SLOTS = 24 + 7
"""New items are counted by UTC hour (0-23), then by UTC weekday (Monday first)."""

HOUR_DOUBT_ITEMS = 1.0
HOUR_DOUBT_PASSES = 0.25
DAY_DOUBT_ITEMS = 2.0
DAY_DOUBT_PASSES = 0.2
"""The prior says that a slot is average. It weighs as much as this many items plus the items of this many average
passes."""

LONGEST_HOURS = 14 * 24
"""The rhythm is not applied to longer spans: over them every hour averages out."""

QUIETEST = 0.02
"""The least weight of an hour or a day."""

Weights = tuple[Sequence[float], Sequence[float]]
"""The weight of each UTC hour and of each weekday; 1 is average."""

_FLAT: Weights = ((1.0,) * 24, (1.0,) * 7)


def hour_slot(moment: datetime) -> tuple[int, float]:
    """Return the hour of `moment`, counted from a Monday, and the seconds left of it."""
    hour, into = divmod(moment.timestamp(), HOUR)
    return int(hour) + MONDAY, HOUR - into


def count_items(counts: Sequence[int], moments: Iterable[datetime]) -> tuple[int, ...]:
    """Return the counts with one more item at each of the moments."""
    slots = list(counts)
    for moment in moments:
        hour, _ = hour_slot(moment)
        slots[hour % 24] += 1
        slots[24 + hour // 24 % 7] += 1
    return tuple(slots)


def weigh(counts: tuple[int, ...], since: datetime | None, until: datetime | None) -> Weights:
    """Return the weights that follow from counts of items between two moments."""
    if since is None or until is None or not any(counts):
        return _FLAT
    begin = since.timestamp() // HOUR
    hours = until.timestamp() // HOUR - begin
    if hours < LONGEST_HOURS:
        return _compute_weights(counts, begin + MONDAY, hours // 6 * 6 + 6)
    # After two weeks each slot was passed about equally often: the start does not matter, and the cache serves a week.
    return _compute_weights(counts, 0.0, hours // 168 * 168)


def weighted_days(weights: Weights, start: datetime, seconds: float) -> float:
    """Return how many average days `seconds` from `start` are worth: a quiet night is short."""
    if seconds > LONGEST_HOURS * HOUR:
        return seconds / DAY
    hours, days = weights
    slot, length = hour_slot(start)
    passed = 0.0
    while seconds > length:
        passed += length * hours[slot % 24] * days[slot // 24 % 7]
        seconds -= length
        slot, length = slot + 1, HOUR
    return (passed + seconds * hours[slot % 24] * days[slot // 24 % 7]) / DAY


@lru_cache(maxsize=1024)
def _compute_weights(counts: tuple[int, ...], since: float, hours: float) -> Weights:
    """Return the weights from counts over `hours` from `since` (an hour of the week)."""
    by_hour, by_day = counts[:24], counts[24:]
    hour_passes = _count_passes(since % 24, hours, 24)
    day_passes = _count_passes(since / 24 % 7, hours / 24, 7)
    smooth = [(by_hour[k - 1] + 2 * by_hour[k] + by_hour[(k + 1) % 24]) / 4 for k in range(24)]
    return (
        _shrink(smooth, hour_passes, HOUR_DOUBT_ITEMS, HOUR_DOUBT_PASSES),
        _shrink(by_day, day_passes, DAY_DOUBT_ITEMS, DAY_DOUBT_PASSES),
    )


def _count_passes(start: float, length: float, slots: int) -> list[float]:
    """Return how often each slot of a cycle was passed in `length` slots from `start`."""
    whole, rest = divmod(length, slots)
    if not rest:
        return [whole] * slots
    end = start + rest

    def overlap(slot: int) -> float:
        return max(0.0, min(end, slot + 1) - max(start, slot))

    return [whole + overlap(slot) + overlap(slot + slots) for slot in range(slots)]


def _shrink(counts: Sequence[float], passes: Sequence[float], doubt_items: float, doubt_passes: float) -> list[float]:
    """Return each slot's rate ÷ the average, drawn towards 1 while little is known; their mean is 1."""
    mean = sum(counts) / max(sum(passes), 1e-9)
    doubt = doubt_items + doubt_passes * mean
    weights = [
        max((doubt + count) / (doubt + mean * seen), QUIETEST) for count, seen in zip(counts, passes, strict=True)
    ]
    average = sum(weights) / len(weights)
    return [weight / average for weight in weights]
