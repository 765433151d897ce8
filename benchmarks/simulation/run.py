"""Polls simulated feeds by a policy, and counts how long their items wait."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulation.feeds import DAY, Feed, Moments
from benchmarks.simulation.policies import Fixed, Policy

DEAD_WAITS = tuple(min(600.0 * 2.0**n, DAY) for n in range(9))
"""The waits after failures. They are the same for all policies and not compared."""


BINS = 2000
_LOG_STEP = math.log(40 * DAY) / BINS
"""Waits are counted in bins of 0.75 %, from a second to forty days. Percentiles have this precision."""


@dataclass
class Tally:
    """The polls and items of some feeds after the warm-up."""

    feeds: int = 0
    polls: int = 0
    items: int = 0
    missed: int = 0
    """Items that had left their feed before a poll came."""
    waited: float = 0.0
    """The sum of the seconds from an item's appearance to the poll that found it."""
    bins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))
    """How many items waited how long."""
    feed_means: list[float] = field(default_factory=list)
    """Mean wait (seconds) of each feed that had items."""

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.feeds += other.feeds
        self.polls += other.polls
        self.items += other.items
        self.missed += other.missed
        self.waited += other.waited
        self.bins = self.bins + other.bins
        self.feed_means += other.feed_means

    @property
    def mean(self) -> float:
        """Mean wait of an item, in seconds."""
        return self.waited / max(self.items - self.missed, 1)

    def percentile(self, percent: float) -> float:
        """Return the wait (seconds) that so many percent of the items did not exceed."""
        upto = np.cumsum(self.bins)
        if not upto[-1]:
            return math.nan
        return math.exp((int(np.searchsorted(upto, percent / 100 * upto[-1])) + 0.5) * _LOG_STEP)

    def feed_percentile(self, percent: float) -> float:
        """Return the mean wait (seconds) that so many percent of the feeds did not exceed."""
        return float(np.percentile(self.feed_means, percent)) if self.feed_means else math.nan


def poll_feed(feed: Feed, policy: Policy, *, warmup_days: float, days: float) -> Tally:
    """Return the counts of one feed under `policy`, for `days` after `warmup_days`."""
    begin, end = warmup_days * DAY, (warmup_days + days) * DAY
    first = (feed.number * 0.7548776662466927) % 1.0 * 3600.0  # added within an hour
    if feed.dead:
        polls = _poll_dead(first, end)
    elif isinstance(policy, Fixed):
        polls = np.arange(first, end + policy.seconds, policy.seconds)
    else:
        polls = np.array(_poll_live(feed, policy, first, end))
    counted = int(np.count_nonzero((polls >= begin) & (polls < end)))
    return _measure(feed, polls, counted, begin, end)


def _poll_live(feed: Feed, policy: Policy, now: float, end: float) -> list[float]:
    appears = feed.appears.tolist()
    dates = feed.dates.tolist()
    polls = [now]
    seen_up_to = bisect_right(appears, now)
    window = feed.window
    new = seen = min(seen_up_to, window)
    while True:
        bearing = [date for date in dates[seen_up_to - new : seen_up_to] if not math.isnan(date)] if new else ()
        now += policy.next_wait(now, new, seen, bearing)
        polls.append(now)
        if now >= end:
            return polls
        upto = bisect_right(appears, now, seen_up_to)
        new = min(upto - seen_up_to, window)
        seen_up_to = upto
        seen = min(upto, window)


def _poll_dead(now: float, end: float) -> Moments:
    polls = [now]
    while polls[-1] < end:
        polls.append(polls[-1] + DEAD_WAITS[min(len(polls) - 1, len(DEAD_WAITS) - 1)])
    return np.array(polls)


def _measure(feed: Feed, polls: Moments, counted: int, begin: float, end: float) -> Tally:
    if feed.dead:
        return Tally(1, counted)
    low, high = np.searchsorted(feed.appears, (begin, end))
    appears = feed.appears[low:high]
    found_by = np.searchsorted(polls, appears)
    found_at = polls[found_by]
    newer = np.searchsorted(feed.appears, found_at, side="right") - np.arange(low, high)  # itself included
    found = newer <= feed.window
    waits = (found_at - appears)[found]
    places = np.clip(np.log(np.maximum(waits, 1.0)) / _LOG_STEP, 0, BINS - 1).astype(np.int64)
    return Tally(
        feeds=1,
        polls=counted,
        items=len(appears),
        missed=len(appears) - len(waits),
        waited=float(waits.sum()),
        bins=np.bincount(places, minlength=BINS),
        feed_means=[float(waits.mean())] if len(waits) else [],
    )
