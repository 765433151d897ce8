"""Pure: what a feed's past says about when its next item comes, and how long a poll can wait for it.

A feed is taken for a source of items whose rate follows the UTC hour and the day of the week. A poll costs as much as
`Limits.poll_worth` item-seconds of waiting, and is made when what is expected to have come has waited that long
together. At a constant rate r that is every sqrt(2 * worth / r) seconds, which is where waiting and polling cost least
(J. Cho, H. Garcia-Molina, "Effective page refresh policies for Web crawlers", ACM TODS 28(4), 2003, find the same
square root). docs/explanation/polling.md derives it and shows what it does to 47,000 simulated feeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache

HOUR = 3600.0
DAY = 86400.0
MONDAY = 72
"""What is added to hours since 1970-01-01, a Thursday, to have them begin on a Monday."""

PRIOR_ITEMS = 1.0
PRIOR_DAYS = 0.5
"""What is thought of a feed before anything is known: as if one item had come in half a day."""

MEMORY_DAYS = 10.0
"""What happened this long ago counts 1/e of what happens now, in the estimate of the rate."""

SILENCE_ITEMS = 1.5
"""A feed that was silent while so many items were due is slower than was thought."""

RHYTHM_DAYS = 56.0
"""The counts of hours and weekdays are halved when they go this far back (later if there are few)."""
RHYTHM_FEW_ITEMS = 64
RHYTHM_MOST_ITEMS = 30_000
"""A slot is a smallint in the database."""

HOUR_DOUBT_ITEMS = 1.0
HOUR_DOUBT_PASSES = 0.25
DAY_DOUBT_ITEMS = 2.0
DAY_DOUBT_PASSES = 0.2
"""Doubt about a slot: as if so many items, and those of so many average passes, had said that it is average."""

LONGEST_HOURS = 14 * 24
"""Beyond this the rhythm is left out of account: every hour comes to the average."""

QUIETEST = 0.02
"""No hour and no day is thought to bring less than this part of the average."""

ECHO_ITEMS = 0.4
ECHO_SECONDS = 600.0
"""A new item is followed by so many more than usual, most of them within so many seconds: items come in bursts."""
ECHO_MOST = 5
"""No poll's items are thought to be followed by more than those of so many."""

WINDOW_SWING = 10.0
"""Where x items are expected, x + WINDOW_SWING * sqrt(x) may come: so many have to fit into the feed."""

LIVELY_SECONDS = 14_400.0
"""However slow a feed is, it is looked at so often, ..."""

DORMANT_SHARE = 1.0 / 60.0
"""... until it has been silent for longer: what ends a silence of 60 days may be found a day later."""

BACKLOG_TRUST = 0.5
BACKLOG_DAYS = 60.0
"""What a first contact's dates are worth beside what is seen to come; older dates say nothing of today."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the wait. All in seconds, but for `poll_worth`, which is in item-seconds."""

    poll_worth: float = 200.0
    shortest: float = 120.0
    longest: float = 86_400.0


@dataclass(frozen=True, slots=True)
class PublicationRate:
    """What is remembered of a feed's publishing. Each field is a column of `feeds`."""

    seen_at: datetime | None = None
    """The last successful poll: everything up to here is taken in."""
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
    heat: float = 0.0
    """New items before `seen_at`, each worth exp(-age / ECHO_SECONDS)."""
    window_items: int = 0
    """Entries in the feed when it was read last; 0 if that is not known."""
    rhythm: tuple[int, ...] = (0,) * 31
    """New items by UTC hour (0-23), then by UTC weekday (Monday first)."""


def observe(
    pace: PublicationRate, *, now: datetime, new_items: int, items_seen: int | None, published: Iterable[datetime] = ()
) -> PublicationRate:
    """Return what is known after a successful poll.

    Args:
        pace: what was known before it.
        now: when the poll was made (aware).
        new_items: articles that nobody had seen before.
        items_seen: entries in the feed; None if the body was not read (304, unchanged).
        published: the dates that the new items bear, as far as they do; they may be wrong.
    """
    window = pace.window_items if items_seen is None else max(items_seen, 0)
    if pace.seen_at is None:
        return _begin(now, window, published)
    start = pace.seen_at
    seconds = max((now - start).total_seconds(), 0.0)
    expected_days = _rhythm_days(pace, start, seconds)
    kept = math.exp(-expected_days / MEMORY_DAYS)
    known = PublicationRate(
        seen_at=max(now, start),
        rhythm_since=pace.rhythm_since,
        recent_items=pace.recent_items * kept + new_items,
        recent_days=pace.recent_days * kept + MEMORY_DAYS * (1.0 - kept),
        silent_days=0.0 if new_items > 0 else pace.silent_days + expected_days,
        empty_polls=0 if new_items > 0 else pace.empty_polls + 1,
        heat=_heat(pace.heat, seconds, new_items),
        window_items=window,
        rhythm=pace.rhythm,
    )
    return _count(known, start, now, new_items, published) if new_items > 0 else known


def next_poll(pace: PublicationRate, *, now: datetime, limits: Limits) -> float:
    """Return how long (seconds) the next poll can wait: within the limits, and without jitter or floors."""
    room, longest = _room(pace.window_items), longest_wait(pace, limits)
    waited = items = passed = 0.0
    for length, rate in _expect(pace, now):
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


def longest_wait(pace: PublicationRate, limits: Limits) -> float:
    """Return the longest wait for this feed in seconds: four hours, more after a long silence, within the limits."""
    return min(max(LIVELY_SECONDS, pace.silent_days * DAY * DORMANT_SHARE), limits.longest)


def _expect(pace: PublicationRate, now: datetime) -> Iterator[tuple[float, float]]:
    """Yield stretches of time from `now` on: length in seconds, items expected per second. The last has no end."""
    rate = expected_rate(pace) / DAY
    echo = ECHO_ITEMS * pace.heat / ECHO_SECONDS
    hours, days = _weights(pace)
    slot, length = _slot(now)
    passed = 0.0
    while echo > 0.05 * rate and passed < HOUR:
        step = min(length, ECHO_SECONDS / 2.0)
        yield step, rate * hours[slot % 24] * days[slot // 24 % 7] + echo * math.exp(-step / 2.0 / ECHO_SECONDS)
        echo *= math.exp(-step / ECHO_SECONDS)
        passed += step
        slot, length = (slot, length - step) if step < length else (slot + 1, HOUR)
    for hour in range(slot, slot + LONGEST_HOURS):
        yield length, rate * hours[hour % 24] * days[hour // 24 % 7]
        length = HOUR
    yield math.inf, rate


def expected_rate(pace: PublicationRate) -> float:
    """Return the items that a day of the usual rhythm is expected to bring."""
    rate = (PRIOR_ITEMS + pace.recent_items) / (PRIOR_DAYS + pace.recent_days)
    return max(min(rate, SILENCE_ITEMS / max(pace.silent_days, 1e-9)), 1e-6)


def _begin(now: datetime, window: int, published: Iterable[datetime]) -> PublicationRate:
    """Return what a first contact says: the dates of the backlog, if they look like dates at which things came."""
    nothing = PublicationRate(seen_at=now, rhythm_since=now, window_items=window)
    oldest = _minus(now, BACKLOG_DAYS)
    moments = sorted(moment for moment in published if moment <= now)
    recent = [moment for moment in moments if moment > oldest]
    if len(set(moments)) < max(3, len(moments) / 2):
        return nothing  # made up when the feed was made
    if not recent:
        return replace(nothing, silent_days=(now - moments[-1]).total_seconds() / DAY, recent_days=BACKLOG_DAYS / 2)
    if len(recent) == len(moments):
        recent = recent[1:]  # the span begins with an item, which therefore says nothing of how many come in it
        oldest = moments[0]
    ages = [(now - moment).total_seconds() / DAY for moment in recent]
    span_days = (now - oldest).total_seconds() / DAY
    seeded = replace(
        nothing,
        rhythm_since=oldest,
        recent_items=BACKLOG_TRUST * sum(math.exp(-age / MEMORY_DAYS) for age in ages),
        recent_days=BACKLOG_TRUST * MEMORY_DAYS * (1.0 - math.exp(-span_days / MEMORY_DAYS)),
        silent_days=ages[-1],
    )
    if sum(moment.minute == moment.second == 0 for moment in recent) * 2 > len(recent):
        return replace(seeded, rhythm_since=now)  # days without a time
    return replace(seeded, rhythm=_add(seeded.rhythm, recent))


def _count(
    pace: PublicationRate, start: datetime, now: datetime, new_items: int, published: Iterable[datetime]
) -> PublicationRate:
    """Return the pace with the new items in its rhythm: where their dates say, or amid the polls if that can't be."""
    middle = start + (now - start) / 2
    dated = [moment if start < moment <= now else middle for moment in published][:new_items]
    rhythm = _add(pace.rhythm, [*dated, *[middle] * min(new_items - len(dated), 1000)])
    since = pace.rhythm_since or now
    old = (now - since).total_seconds() > RHYTHM_DAYS * DAY and sum(rhythm[24:]) > RHYTHM_FEW_ITEMS
    if old or max(rhythm) > RHYTHM_MOST_ITEMS:
        return replace(pace, rhythm=tuple(slot // 2 for slot in rhythm), rhythm_since=since + (now - since) / 2)
    return replace(pace, rhythm=rhythm)


def _add(rhythm: tuple[int, ...], moments: Sequence[datetime]) -> tuple[int, ...]:
    slots = list(rhythm)
    for moment in moments:
        hour, _ = _slot(moment)
        slots[hour % 24] += 1
        slots[24 + hour // 24 % 7] += 1
    return tuple(slots)


def _room(window: int) -> float:
    """Return how many items may be expected before a poll, so that none slides out of a feed of `window` entries."""
    if window < 2:
        return math.inf  # not known, or a feed that only ever shows the last one
    return ((math.sqrt(WINDOW_SWING**2 + 4.0 * window) - WINDOW_SWING) / 2.0) ** 2


def _heat(heat: float, seconds: float, new_items: int) -> float:
    """Return what is left of the heat, with items that came evenly over the `seconds` since the last poll."""
    fade = math.exp(-seconds / ECHO_SECONDS)
    return heat * fade + min(new_items, ECHO_MOST) * (1.0 - fade) * ECHO_SECONDS / max(seconds, 1.0)


def _rhythm_days(pace: PublicationRate, start: datetime, seconds: float) -> float:
    """Return how much of the feed's own time passes in `seconds` from `start`: a quiet night is short."""
    if seconds > LONGEST_HOURS * HOUR:
        return seconds / DAY
    hours, days = _weights(pace)
    slot, length = _slot(start)
    passed = 0.0
    while seconds > length:
        passed += length * hours[slot % 24] * days[slot // 24 % 7]
        seconds -= length
        slot, length = slot + 1, HOUR
    return (passed + seconds * hours[slot % 24] * days[slot // 24 % 7]) / DAY


def _slot(moment: datetime) -> tuple[int, float]:
    """Return the hour that `moment` falls into, counted from a Monday on, and the seconds left of it."""
    hour, into = divmod(moment.timestamp(), HOUR)
    return int(hour) + MONDAY, HOUR - into


def _weights(pace: PublicationRate) -> tuple[Sequence[float], Sequence[float]]:
    if pace.seen_at is None or pace.rhythm_since is None or not any(pace.rhythm):
        return _FLAT
    since = pace.rhythm_since.timestamp() // HOUR
    hours = pace.seen_at.timestamp() // HOUR - since
    if hours < LONGEST_HOURS:
        return _work_out_weights(pace.rhythm, since + MONDAY, hours // 6 * 6 + 6)
    # By now all slots were passed about as often as others; so what was worked out can be used for a week.
    return _work_out_weights(pace.rhythm, 0.0, hours // 168 * 168)


_FLAT: tuple[Sequence[float], Sequence[float]] = ((1.0,) * 24, (1.0,) * 7)


@lru_cache(maxsize=1024)
def _work_out_weights(rhythm: tuple[int, ...], since: float, hours: float) -> tuple[Sequence[float], Sequence[float]]:
    """Return the weight of each UTC hour and of each weekday (1 is average), from counts over `hours` from `since`."""
    by_hour, by_day = rhythm[:24], rhythm[24:]
    hour_passes = _passes(since % 24, hours, 24)
    day_passes = _passes(since / 24 % 7, hours / 24, 7)
    smooth = [(by_hour[k - 1] + 2 * by_hour[k] + by_hour[(k + 1) % 24]) / 4 for k in range(24)]
    return (
        _shrink(smooth, hour_passes, HOUR_DOUBT_ITEMS, HOUR_DOUBT_PASSES),
        _shrink(by_day, day_passes, DAY_DOUBT_ITEMS, DAY_DOUBT_PASSES),
    )


def _passes(start: float, length: float, slots: int) -> list[float]:
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


def _minus(moment: datetime, days: float) -> datetime:
    try:
        return moment - timedelta(days=days)
    except OverflowError:
        return datetime.min.replace(tzinfo=moment.tzinfo)
