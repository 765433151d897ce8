"""Pure: how often a feed publishes, and how long the next poll can wait for it.

The model: items come at a rate that follows the UTC hour and the weekday. A poll costs as much as `Limits.poll_worth`
item-seconds of waiting. The next poll is made when the items that are expected by then have waited that long together.
At a constant rate r that is every sqrt(2 * worth / r) seconds, which is where waiting and polling cost least
(J. Cho, H. Garcia-Molina, "Effective page refresh policies for Web crawlers", ACM TODS 28(4), 2003, find the same
square root). docs/explanation/polling.md derives it and shows its effect on 47,000 simulated feeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from services.writer.schedule.rhythm import (
    DAY,
    HOUR,
    LONGEST_HOURS,
    SLOTS,
    Weights,
    count_items,
    hour_slot,
    weigh,
    weighted_days,
)

PRIOR_ITEMS = 1.0
PRIOR_DAYS = 0.5
"""The prior of an unknown feed: as if one item had come in half a day."""

MEMORY_DAYS = 10.0
"""What happened this long ago counts 1/e of what happens now, in the estimate of the rate."""

SILENCE_ITEMS = 1.5
"""A feed that was silent while so many items were due is slower than estimated."""

RHYTHM_DAYS = 56.0
"""The counts of hours and weekdays are halved when they go this far back (later if there are few)."""
RHYTHM_FEW_ITEMS = 64
RHYTHM_MOST_ITEMS = 30_000
"""A count is a smallint in the database."""

BURST_ITEMS = 0.4
BURST_SECONDS = 600.0
"""A new item is followed by so many more than usual, most of them within so many seconds: items come in bursts."""
BURST_MOST = 5
"""More new items in one poll raise the burst intensity no further."""

WINDOW_SWING = 10.0
"""Where x items are expected, x + WINDOW_SWING * sqrt(x) may come: so many have to fit into the feed."""

LIVELY_SECONDS = 14_400.0
"""The longest wait for a feed that was not silent for long."""

DORMANT_SHARE = 1.0 / 60.0
"""The longest wait after a long silence, as a share of it: an item after 60 days of silence is found within a day."""

BACKLOG_TRUST = 0.5
BACKLOG_DAYS = 60.0
"""The weight of a first contact's dates beside observed items; older dates are ignored."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the wait. All in seconds, but for `poll_worth`, which is in item-seconds."""

    poll_worth: float = 200.0
    shortest: float = 120.0
    longest: float = 86_400.0


@dataclass(frozen=True, slots=True)
class PublicationRate:
    """What is remembered of a feed's publishing: the column `pace`, whose JSON has these names (or the alias)."""

    seen_at: datetime | None = None
    """The last successful poll: everything up to here is counted."""
    rhythm_since: datetime | None = None
    """Where the counts of `rhythm` begin; moves up when they are halved."""
    recent_items: float = 0.0
    """New items, each worth exp(-age / MEMORY_DAYS)."""
    recent_days: float = 0.0
    """Days in which they came, likewise, counted by the feed's own rhythm."""
    silent_days: float = 0.0
    """Days since the last new item, counted by the feed's own rhythm."""
    empty_polls: int = 0
    """Successful polls in a row that brought nothing new."""
    burst_intensity: Annotated[float, Field(alias="heat")] = 0.0
    """New items before `seen_at`, each worth exp(-age / BURST_SECONDS)."""
    window_items: int = 0
    """Entries in the feed when it was read last; 0 if that is not known."""
    rhythm: tuple[int, ...] = (0,) * SLOTS
    """New items by UTC hour (0-23), then by UTC weekday (Monday first)."""

    @property
    def is_sound(self) -> bool:
        """Whether these values can be true: a person may have written the column."""
        moments = [moment for moment in (self.seen_at, self.rhythm_since) if moment is not None]
        numbers = (self.recent_items, self.recent_days, self.silent_days, self.burst_intensity)
        return (
            all(moment.tzinfo is not None for moment in moments)
            and all(0 <= number < math.inf for number in (*numbers, self.empty_polls, self.window_items))
            and len(self.rhythm) == SLOTS
            and min(self.rhythm) >= 0
        )

    @property
    def weights(self) -> Weights:
        """The feed's rhythm."""
        return weigh(self.rhythm, self.rhythm_since, self.seen_at)


def observe(
    known: PublicationRate,
    *,
    now: datetime,
    new_items: int,
    items_seen: int | None,
    published: Iterable[datetime] = (),
) -> PublicationRate:
    """Return what is known after a successful poll.

    Args:
        known: what was known before it.
        now: when the poll was made (aware).
        new_items: articles that nobody had seen before.
        items_seen: entries in the feed; None if the body was not read (304, unchanged).
        published: the dates of the new items, as far as they have any; they may be wrong.
    """
    window = known.window_items if items_seen is None else max(items_seen, 0)
    if known.seen_at is None:
        return _begin(now, window, published)
    start = known.seen_at
    seconds = max((now - start).total_seconds(), 0.0)
    expected_days = weighted_days(known.weights, start, seconds)
    kept = math.exp(-expected_days / MEMORY_DAYS)
    after = PublicationRate(
        seen_at=max(now, start),
        rhythm_since=known.rhythm_since,
        recent_items=known.recent_items * kept + new_items,
        recent_days=known.recent_days * kept + MEMORY_DAYS * (1.0 - kept),
        silent_days=0.0 if new_items > 0 else known.silent_days + expected_days,
        empty_polls=0 if new_items > 0 else known.empty_polls + 1,
        burst_intensity=_burst_intensity(known.burst_intensity, seconds, new_items),
        window_items=window,
        rhythm=known.rhythm,
    )
    return _count(after, start, now, new_items, published) if new_items > 0 else after


def next_poll(known: PublicationRate, *, now: datetime, limits: Limits) -> float:
    """Return how long (seconds) the next poll can wait: within the limits, without jitter and the server's bounds."""
    room, longest = _room(known.window_items), longest_wait(known, limits)
    waited = items = passed = 0.0
    for length, rate in _expect(known, now):
        # In this stretch: waited + items * t + rate * t² / 2 reaches the worth, items + rate * t reaches the room.
        missing = limits.poll_worth - waited
        if passed >= longest or missing < 1e-6:
            break
        enough = 2.0 * missing / (items + math.sqrt(items * items + 2.0 * rate * missing))
        if (step := min(enough, (room - items) / rate)) < length:
            passed += step
            break
        waited += (items + rate * length / 2.0) * length
        items += rate * length
        passed += length
    return max(min(passed, longest), limits.shortest)


def longest_wait(known: PublicationRate, limits: Limits) -> float:
    """Return the longest wait for this feed in seconds: four hours, more after a long silence, within the limits."""
    return min(max(LIVELY_SECONDS, known.silent_days * DAY * DORMANT_SHARE), limits.longest)


def items_per_day(known: PublicationRate) -> float:
    """Return the items that a day of the usual rhythm is expected to bring."""
    rate = (PRIOR_ITEMS + known.recent_items) / (PRIOR_DAYS + known.recent_days)
    return max(min(rate, SILENCE_ITEMS / max(known.silent_days, 1e-9)), 1e-6)


def _expect(known: PublicationRate, now: datetime) -> Iterator[tuple[float, float]]:
    """Yield stretches of time from `now` on: length in seconds, items expected per second. The last has no end."""
    rate = items_per_day(known) / DAY
    burst = BURST_ITEMS * known.burst_intensity / BURST_SECONDS
    hours, days = known.weights
    slot, length = hour_slot(now)
    passed = 0.0
    while burst > 0.05 * rate and passed < HOUR:
        step = min(length, BURST_SECONDS / 2.0)
        yield step, rate * hours[slot % 24] * days[slot // 24 % 7] + burst * math.exp(-step / 2.0 / BURST_SECONDS)
        burst *= math.exp(-step / BURST_SECONDS)
        passed += step
        slot, length = (slot, length - step) if step < length else (slot + 1, HOUR)
    for hour in range(slot, slot + LONGEST_HOURS):
        yield length, rate * hours[hour % 24] * days[hour // 24 % 7]
        length = HOUR
    yield math.inf, rate


def _begin(now: datetime, window: int, published: Iterable[datetime]) -> PublicationRate:
    """Return the estimate after a first contact: from the backlog's dates, if they look like publication dates."""
    unknown = PublicationRate(seen_at=now, rhythm_since=now, window_items=window)
    oldest = _subtract_days(now, BACKLOG_DAYS)
    moments = sorted(moment for moment in published if moment <= now)
    recent = [moment for moment in moments if moment > oldest]
    if len(set(moments)) < max(3, len(moments) / 2):
        return unknown  # made up when the feed was made
    if not recent:
        return replace(unknown, silent_days=(now - moments[-1]).total_seconds() / DAY, recent_days=BACKLOG_DAYS / 2)
    if len(recent) == len(moments):
        recent = recent[1:]  # the span begins with an item, which therefore says nothing of how many come in it
        oldest = moments[0]
    ages = [(now - moment).total_seconds() / DAY for moment in recent]
    span_days = (now - oldest).total_seconds() / DAY
    seeded = replace(
        unknown,
        rhythm_since=oldest,
        recent_items=BACKLOG_TRUST * sum(math.exp(-age / MEMORY_DAYS) for age in ages),
        recent_days=BACKLOG_TRUST * MEMORY_DAYS * (1.0 - math.exp(-span_days / MEMORY_DAYS)),
        silent_days=ages[-1],
    )
    if sum(moment.minute == moment.second == 0 for moment in recent) * 2 > len(recent):
        return replace(seeded, rhythm_since=now)  # days without a time
    return replace(seeded, rhythm=count_items(seeded.rhythm, recent))


def _count(
    known: PublicationRate, start: datetime, now: datetime, new_items: int, published: Iterable[datetime]
) -> PublicationRate:
    """Count the new items in the rhythm: at their dates, or midway between the polls where a date can't be true."""
    middle = start + (now - start) / 2
    dated = [moment if start < moment <= now else middle for moment in published][:new_items]
    rhythm = count_items(known.rhythm, [*dated, *[middle] * min(new_items - len(dated), 1000)])
    since = known.rhythm_since or now
    is_old = (now - since).total_seconds() > RHYTHM_DAYS * DAY and sum(rhythm[24:]) > RHYTHM_FEW_ITEMS
    if is_old or max(rhythm) > RHYTHM_MOST_ITEMS:
        return replace(known, rhythm=tuple(count // 2 for count in rhythm), rhythm_since=since + (now - since) / 2)
    return replace(known, rhythm=rhythm)


def _room(window: int) -> float:
    """Return how many items may be expected before a poll, so that none slides out of a feed of `window` entries."""
    if window < 2:
        return math.inf  # not known, or a feed that only ever shows the last one
    return ((math.sqrt(WINDOW_SWING**2 + 4.0 * window) - WINDOW_SWING) / 2.0) ** 2


def _burst_intensity(before: float, seconds: float, new_items: int) -> float:
    """Return the burst intensity after new items that came evenly over the `seconds` since the last poll."""
    fade = math.exp(-seconds / BURST_SECONDS)
    return before * fade + min(new_items, BURST_MOST) * (1.0 - fade) * BURST_SECONDS / max(seconds, 1.0)


def _subtract_days(moment: datetime, days: float) -> datetime:
    try:
        return moment - timedelta(days=days)
    except OverflowError:
        return datetime.min.replace(tzinfo=moment.tzinfo)
