"""Polls feeds for a while as a policy wants it, and tells how long their items waited."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulation.feeds import DAY, Feed, Moments
from benchmarks.simulation.policies import Fixed, Policy

DEAD_WAITS = tuple(min(600.0 * 2.0**n, DAY) for n in range(9))
"""A feed that fails is backed off from by all policies alike: it is not what they are compared for."""


@dataclass
class Tally:
    """What polling some feeds came to, after the warm-up."""

    feeds: int = 0
    polls: int = 0
    items: int = 0
    missed: int = 0
    waits: list[NDArray[np.float32]] = field(default_factory=list)
    """Seconds from an item's appearance to the poll that found it, feed by feed."""

    def add(self, other: Tally) -> None:
        """Take in what another tally counted."""
        self.feeds += other.feeds
        self.polls += other.polls
        self.items += other.items
        self.missed += other.missed
        self.waits += other.waits


def poll_feed(feed: Feed, policy: Policy, *, warmup_days: float, days: float) -> Tally:
    """Return what `policy` does to one feed in `days` after `warmup_days`."""
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
    waits = (found_at - appears)[found].astype(np.float32)
    return Tally(1, counted, len(appears), int(len(appears) - found.sum()), [waits] if len(waits) else [])


def poll_feeds(
    feeds: list[Feed], make_policy: Callable[[], Policy], *, warmup_days: float, days: float
) -> dict[str, Tally]:
    """Return the tallies by class of feeds."""
    tallies: dict[str, Tally] = {}
    for feed in feeds:
        tally = poll_feed(feed, make_policy(), warmup_days=warmup_days, days=days)
        tallies.setdefault(feed.kind, Tally()).add(tally)
    return tallies
