"""Pure: when a poll is planned: lower and upper bounds, jitter, skipped hours, the slots of a fixed interval, back-off.

Jitter and phase never bring a poll before a lower bound.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta

from shared.politeness import MAX_SERVER_WAIT_SECONDS
from shared.wire.outcomes import Outcome

DAY_SECONDS = 86400.0

JITTER_SHARE = 0.1
JITTER_SECONDS = (60.0, 600.0)
"""Polls are spread over 60 to 600 s, and never over more than a tenth of the wait."""

SHORTEST_PERIOD_SECONDS, LONGEST_PERIOD_SECONDS = 0.1, 366 * DAY_SECONDS
"""Bounds of a fixed interval: a person may write any number into the column."""

SLOT_TRIES = 8
"""So many slots of a fixed interval may fall into skipped hours; then the poll leaves its slots."""

FAILURE_JITTER = 0.25
"""A back-off is shortened by up to this share, so that feeds that failed together come back apart."""

_FIRST_BACKOFF_OF_REFUSAL = {
    "http_401": 14400.0,  # the server has refused
    "http_402": 14400.0,
    "http_403": 14400.0,
    "http_451": 43200.0,
    "bad_url": 43200.0,
}
"""By the error class of `hard_error`, seconds. All other outcomes have one first wait each, in their table."""


def server_lower_bound(spans: Iterable[float | None], now: datetime, not_before: datetime | None) -> datetime:
    """Return the earliest moment at which the server wants another request; a day from `now` at most.

    Args:
        spans: seconds that the response (RFC 9111) and the feed (ttl, sy:update*) ask for.
        now: their start.
        not_before: from Retry-After.
    """
    asked = max((span for span in spans if span and span > 0), default=0.0)
    earliest = add_seconds(now, min(asked, MAX_SERVER_WAIT_SECONDS))
    return max(earliest, min(not_before, add_seconds(now, MAX_SERVER_WAIT_SECONDS))) if not_before else earliest


def plan_poll(
    feed_id: int,
    *,
    now: datetime,
    wait: float,
    bounds: tuple[float, float],
    lower_bound: datetime | None = None,
    skip_hours: Collection[int] = (),
    skip_days: Collection[int] = (),
) -> datetime:
    """Return when to poll next: `wait` seconds from `now`, within `bounds`, spread, and outside of skipped hours.

    Args:
        feed_id: makes the jitter differ from feed to feed; with `now` it also differs from poll to poll.
        now: when the last poll was made.
        wait: from `publication_rate.next_poll` or `back_off`, in seconds.
        bounds: shortest and longest wait in seconds, jitter included.
        lower_bound: from `server_lower_bound`. It prevails over the longest wait.
        skip_hours: UTC hours in which the feed does not want to be polled, 0-23 (24 is midnight too).
        skip_days: UTC weekdays, Monday is 0.
    """
    shortest, longest = bounds
    share = _share(f"feed-{feed_id}@{now.timestamp():.0f}")
    usual = min(max(wait, shortest), longest) if not math.isnan(wait) else longest
    spread = jitter_span(usual)
    planned = add_seconds(now, min(max(min(usual, longest - spread), shortest) + share * spread, longest))
    if lower_bound is not None and lower_bound > planned:
        after = add_seconds(lower_bound, share * jitter_span((lower_bound - now).total_seconds()))
        planned = max(lower_bound, min(after, add_seconds(now, longest)))
    opened = skip_forbidden(planned, skip_hours, skip_days)
    return planned if opened == planned else add_seconds(opened, share * JITTER_SECONDS[1])  # not all on the hour


def plan_fixed(
    feed_id: int,
    *,
    now: datetime,
    period: float,
    lower_bound: datetime | None = None,
    skip_hours: Collection[int] = (),
    skip_days: Collection[int] = (),
) -> datetime:
    """Return the feed's next slot of a fixed interval that a person has set: neither drift nor jitter.

    Slots are `period` seconds apart, at the feed's phase. A slot less than half a period after `now` is left out (the
    last poll was early, by hand, or very late), and so are slots before `lower_bound` and in skipped hours.
    """
    period = _bounded(period)
    slot = next_slot(feed_id, after=add_seconds(now, period / 2), period=period)
    for _ in range(SLOT_TRIES):
        earliest = skip_forbidden(max(slot, lower_bound) if lower_bound else slot, skip_hours, skip_days)
        if earliest <= slot:
            return slot
        slot = next_slot(feed_id, after=earliest, period=period)
    return add_seconds(earliest, _share(f"feed-{feed_id}") * JITTER_SECONDS[1])  # no slot is in an open hour


def next_slot(feed_id: int, *, after: datetime, period: float) -> datetime:
    """Return the first slot after `after`: a moment at the feed's phase of `period` (seconds since 1970, UTC)."""
    period = _bounded(period)
    passed = (after.timestamp() - phase_seconds(feed_id, period)) % period
    return add_seconds(after, period - passed)


def _bounded(period: float) -> float:
    return min(max(period, SHORTEST_PERIOD_SECONDS), LONGEST_PERIOD_SECONDS)


def phase_seconds(feed_id: int, period: float) -> float:
    """Return MD5("feed-{id}") modulo the period: the feed's place in each period, in seconds."""
    digest = hashlib.md5(f"feed-{feed_id}".encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest) % max(round(period * 1000), 1) / 1000


def back_off(
    failures: int,
    outcome: Outcome,
    error_class: str | None,
    *,
    feed_id: int,
    usual: float,
    longest: float,
    first: float | None = None,
) -> float:
    """Return the wait in seconds after the `failures`-th failure in a row.

    The wait doubles with each failure, from `first` (if not given, it depends on the error) up to `longest`. It is
    never less than the `usual` wait. The first success ends the back-off, and no back-off disables a feed.
    """
    if first is None and outcome is Outcome.HARD_ERROR:
        first = _FIRST_BACKOFF_OF_REFUSAL.get(error_class or "")
    if first is None:
        first = outcome.back_off.first_seconds or 600.0
    grown = min(first * 2.0 ** min(max(failures - 1, 0), 30), longest)
    share = _share(f"feed-{feed_id}!{failures}")
    return min(max(grown * (1.0 - FAILURE_JITTER * share), usual), longest)


def jitter_span(wait: float) -> float:
    """Return over how many seconds a poll after `wait` seconds is spread."""
    low, high = JITTER_SECONDS
    tenth = max(wait, 0.0) * JITTER_SHARE
    return min(max(tenth, low), high, tenth)


def skip_forbidden(moment: datetime, hours: Collection[int], days: Collection[int]) -> datetime:
    """Return the first moment from `moment` on that is in no forbidden UTC hour or day (skipHours, skipDays).

    A list that forbids every hour or every day is ignored.
    """
    closed_hours = {hour % 24 for hour in hours if 0 <= hour <= 24}
    closed_days = {day for day in days if 0 <= day < 7}
    closed_hours = closed_hours if len(closed_hours) < 24 else set()
    closed_days = closed_days if len(closed_days) < 7 else set()
    if not closed_hours and not closed_days:
        return moment
    found = moment.astimezone(UTC)
    while found.hour in closed_hours or found.weekday() in closed_days:
        found = add_seconds(found.replace(minute=0, second=0, microsecond=0), 3600.0)
        if found >= END:
            return moment
    return found


END = datetime.max.replace(tzinfo=UTC)
BEGINNING = datetime.min.replace(tzinfo=UTC)


def add_seconds(moment: datetime, seconds: float) -> datetime:
    """Return the moment `seconds` later, in UTC, within the calendar."""
    try:
        return moment.astimezone(UTC) + timedelta(seconds=seconds)
    except OverflowError:
        return END if seconds > 0 else BEGINNING


def _share(text: str) -> float:
    """Return a number from 0 to 1 that looks random and is always the same for `text`."""
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:6]) / 2.0**48
