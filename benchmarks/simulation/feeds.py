"""Simulated feeds: when their items appear, their dates, and how many items a feed holds.

The classes, their shares and numbers are assumptions, stated in `CLASSES` and in docs/explanation/polling.md. Feed
`number` of `seed` is the same feed whatever policy polls it, and whatever other feeds there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

Moments = NDArray[np.float64]
"""Seconds since `EPOCH`, ascending."""

EPOCH = datetime(2026, 3, 2, tzinfo=UTC)
"""A Monday, 0:00 UTC: all feeds are added then. Their earlier items are their backlog."""

BACKLOG_DAYS = 60.0
DAY = 86400.0
HOUR = 3600.0

Curve = tuple[float, ...]
"""Relative rates of the 24 local hours."""


def _curve(*points: tuple[float, float], base: float = 0.0) -> Curve:
    hours, rates = zip(*points, strict=True)
    return tuple(base + rate for rate in np.interp(range(24), hours, rates))


_NEWS = ((0, 0.15), (5, 0.2), (7, 0.9), (9, 1.6), (12, 1.6), (17, 1.7), (20, 1.0), (23, 0.35))
NEWSROOM = _curve(*_NEWS)
"""An early start, a long evening, a quiet night."""
WIRE = _curve(*_NEWS, base=0.6)
"""The same, with people on duty at night."""
OFFICE = _curve((7, 0), (8, 0.6), (9, 2.8), (11, 3), (12, 2), (13, 2.6), (16, 2.8), (18, 0.8), (20, 0.1), (21, 0))
"""Nine to six, with a lunch."""
LEISURE = _curve((0, 0.7), (2, 0.2), (6, 0.2), (9, 1.0), (14, 1.1), (20, 1.9), (22, 1.6), (23, 1.1))
"""Mornings and evenings of somebody who has a job."""
EVEN = (1.0,) * 24


@dataclass(frozen=True)
class Kind:
    """A class of feeds: numbers that its feeds are drawn from."""

    name: str
    share: float
    """Of all feeds."""
    items_per_day: tuple[float, float]
    """From, to; drawn evenly on a logarithmic scale."""
    hours: Curve = EVEN
    weekend: float = 1.0
    """Rate on Saturday and Sunday ÷ rate on other days."""
    cluster: float = 1.0
    """Items that appear together, on average (geometric), within `cluster_minutes` of each other (exponential)."""
    cluster_minutes: float = 20.0
    unrest: float = 0.3
    """Standard deviation of a day's rate ÷ its mean."""
    window: tuple[int, int] = (10, 30)
    """Entries in the feed, from, to."""
    scheduled: bool = False
    """Comes at one to three fixed times of the day (or on some weekdays), give or take a few minutes."""
    silent_days: tuple[float, float] = (0.0, 0.0)
    """The last item before the beginning is this old; none follows but for a rare revival."""
    dead: bool = False
    """Every fetch fails."""


CLASSES: tuple[Kind, ...] = (
    Kind("wire", 0.010, (150, 1000), WIRE, 0.7, 1.3, 5, 0.2, (20, 100)),
    Kind("news site", 0.080, (12, 150), NEWSROOM, 0.55, 1.3, 10, 0.25, (10, 50)),
    Kind("section", 0.140, (2, 12), NEWSROOM, 0.4, 1.3, 15, 0.4, (10, 30)),
    Kind("active blog", 0.150, (0.2, 2), LEISURE, 0.8, 1.1, 60, 0.6, (10, 20)),
    Kind("sleepy blog", 0.190, (0.01, 0.2), LEISURE, 1.0, 1.1, 60, 0.6, (10, 20)),
    Kind("weekly", 0.080, (0.14, 0.3), scheduled=True, window=(10, 100)),
    Kind("daily", 0.040, (1, 3), scheduled=True, weekend=0.5, window=(10, 100)),
    Kind("press office", 0.060, (0.5, 8), OFFICE, 0.03, 4.0, 40, 0.5, (10, 20)),
    Kind("sliding", 0.020, (40, 400), NEWSROOM, 0.6, 4.0, 8, 0.3, (5, 15)),
    Kind("machine", 0.030, (4, 100), EVEN, 1.0, 1.0, 1, 0.2, (20, 50)),
    Kind("dormant", 0.150, (0.05, 1), LEISURE, silent_days=(90, 1500)),
    Kind("dead", 0.050, (0.01, 1), LEISURE, dead=True),
)

MIXES: dict[str, dict[str, float]] = {
    "usual": {kind.name: kind.share for kind in CLASSES},
    "news": {"wire": 0.1, "news site": 0.5, "section": 0.3, "sliding": 0.05, "press office": 0.05},
    "sleepy": {"active blog": 0.25, "sleepy blog": 0.4, "weekly": 0.1, "dormant": 0.2, "dead": 0.05},
}


@dataclass(frozen=True)
class Feed:
    """The content of a feed during a whole run."""

    number: int
    kind: str
    appears: Moments
    """When each item appears in the feed."""
    dates: Moments
    """The dates of publication in the feed; NaN for items without a date."""
    window: int
    dead: bool


def make_feed(number: int, seed: int, days: float, *, mix: str = "usual", shift_hours: float = 0.0) -> Feed:
    """Return feed `number`; `shift_hours` moves its time zone."""
    rng = np.random.default_rng([seed, number])
    kind = _pick(number, MIXES[mix])
    zone = _draw_zone(rng) + shift_hours
    appears = _draw_items(kind, rng, zone, days)
    window = int(rng.integers(kind.window[0], kind.window[1] + 1))
    return Feed(number, kind.name, appears, _draw_dates(appears, rng, zone), window, kind.dead)


def _pick(number: int, shares: dict[str, float]) -> Kind:
    """Return the class of a feed. Any few thousand feeds have the classes in proportion."""
    place = (number * 0.6180339887498949) % 1.0 * sum(shares.values())
    ends = zip(shares, accumulate(shares.values()), strict=True)
    name = next((name for name, end in ends if place < end), next(iter(shares)))
    return next(kind for kind in CLASSES if kind.name == name)


def _draw_zone(rng: np.random.Generator) -> float:
    """Return hours east of UTC: Americas, Europe and Africa, Asia."""
    low, high = ((-8, -3), (0, 3), (5, 10))[rng.choice(3, p=(0.45, 0.35, 0.2))]
    return float(rng.integers(low, high + 1))


def _draw_items(kind: Kind, rng: np.random.Generator, zone: float, days: float) -> Moments:
    if kind.silent_days[1]:
        last = -rng.uniform(*kind.silent_days) * DAY
        before = np.sort(last - rng.exponential(3 * DAY, 20).cumsum())
        return np.concatenate([before, [last], _draw_revival(kind, rng, days)])
    rate = float(np.exp(rng.uniform(*np.log(kind.items_per_day))))
    span_days = int(np.ceil(days)) + 2
    start_days = int(BACKLOG_DAYS if rate > 0.5 else BACKLOG_DAYS * 10)
    if kind.scheduled:
        return _draw_scheduled(kind, rng, rate, -start_days, span_days)
    return _draw_process(kind, rng, rate, zone, -start_days, span_days)


def _draw_revival(kind: Kind, rng: np.random.Generator, days: float) -> Moments:
    """Return the items of a dormant feed that comes back: one in ten does within a year."""
    back = rng.exponential(10 * 365) * DAY
    if back > days * DAY:
        return np.empty(0)
    return back + _draw_process(kind, rng, kind.items_per_day[1], 0.0, 0, int(days) + 2)


def _draw_process(kind: Kind, rng: np.random.Generator, rate: float, zone: float, first: int, last: int) -> Moments:
    """Return a clustered Poisson process with the class's day and week."""
    count = last - first
    weekday = (np.arange(first, last) % 7) >= 5  # EPOCH is a Monday
    daily = np.where(weekday, kind.weekend, 1.0) * 7 / (5 + 2 * kind.weekend)
    daily = daily * rng.gamma(1 / kind.unrest**2, kind.unrest**2, count)
    if rate < 20 and rng.random() < 0.2:  # goes on holiday, or loses interest, once
        away = rng.integers(0, count)
        daily[away : away + int(rng.integers(7, 60))] *= 0.02
    events = rng.poisson(daily * rate / kind.cluster)
    hours = np.array(kind.hours) * rng.gamma(4, 0.25, 24)  # everybody's day is different
    days = np.repeat(np.arange(first, last), events)
    local = rng.choice(24, len(days), p=hours / hours.sum()) + rng.random(len(days))
    heads = days * DAY + (local - zone) * HOUR
    sizes = rng.geometric(1 / kind.cluster, len(heads))
    items = np.repeat(heads, sizes)
    follows = np.concatenate([np.arange(size) for size in sizes]) > 0 if len(sizes) else np.empty(0, bool)
    items[follows] += rng.exponential(kind.cluster_minutes * 60, int(follows.sum()))
    return np.sort(items)


def _draw_scheduled(kind: Kind, rng: np.random.Generator, rate: float, first: int, last: int) -> Moments:
    days = np.arange(first, last)
    if rate < 1:  # on one or two weekdays
        days = days[np.isin(days % 7, rng.choice(7, max(1, round(rate * 7)), replace=False))]
        rate = 1.0
    else:
        days = days[(days % 7 < 5) | (rng.random(len(days)) < kind.weekend)]
    moments = []
    for _ in range(round(rate)):
        usual = (float(rng.integers(0, 24)) if rng.random() < 0.5 else rng.uniform(0, 24)) * HOUR
        spread = rng.choice([60.0, 600.0, 2700.0])
        kept = days[rng.random(len(days)) < 0.93]
        moments.append(kept * DAY + usual + np.abs(rng.normal(0, spread, len(kept))))
    return np.sort(np.concatenate(moments))


def _draw_dates(appears: Moments, rng: np.random.Generator, zone: float) -> Moments:
    """Return the dates. Most feeds date items at or shortly before their appearance, some wrongly or not at all."""
    habit = rng.choice(["exact", "lag", "none", "day", "zone"], p=(0.5, 0.3, 0.1, 0.05, 0.05))
    if habit == "lag":
        return appears - rng.exponential(rng.choice([300.0, 1800.0, 7200.0]), len(appears))
    if habit == "none":
        return np.full(len(appears), np.nan)
    if habit == "day":
        return np.floor(appears / DAY) * DAY
    if habit == "zone":  # local time, said to be UTC
        return appears + zone * HOUR
    return appears
