"""The polling policies of several programs. Ours calls the code of services/writer."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from benchmarks.simulation.feeds import DAY, EPOCH
from services.writer.schedule.bounds import plan_poll
from services.writer.schedule.publication_rate import Limits, PublicationRate, longest_wait, next_poll, observe

MINUTE = 60.0
DEFAULT = Limits()


class Policy(Protocol):
    """One feed's memory. Moments are seconds since EPOCH."""

    def next_wait(self, now: float, new: int, seen: int, dates: Sequence[float]) -> float:
        """Return how long (seconds) to wait after a poll at `now` that brought `new` of `seen` items.

        At first contact all are new. `dates` are those of the new items, as far as they have any.
        """
        ...


class Fixed:
    """The same interval for all."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def next_wait(self, now: float, new: int, seen: int, dates: Sequence[float]) -> float:  # noqa: D102
        return self.seconds


class StepFormula:
    """The reference: steps by the items per day of the last week; slower after ten empty polls in a row.

    `growing`: whether each further empty poll makes the interval 1.5 times as long again, or only the first does.
    """

    def __init__(self, factor: float = 1.0, *, growing: bool = False) -> None:
        self.factor = factor
        self.growing = growing
        self.began: float | None = None
        self.recent: deque[tuple[float, int]] = deque()
        self.week = 0
        self.empty = 0
        self.last = 0.0

    def next_wait(self, now: float, new: int, seen: int, dates: Sequence[float]) -> float:  # noqa: D102
        if self.began is None:
            self._begin(now, dates)
        elif new:
            self.recent.append((now, new))
            self.week += new
            self.empty, self.last = 0, now
        else:
            self.empty += 1
        while self.recent and self.recent[0][0] < now - 7 * DAY:
            self.week -= self.recent.popleft()[1]
        if now - self.last > 90 * DAY:
            return DAY * self.factor
        wait = self._step(self.week / 7.0)
        if self.empty > 10:
            wait *= 1.5 ** min(self.empty - 10, 20) if self.growing else 1.5
        return min(wait, DAY) * self.factor

    def _begin(self, now: float, dates: Sequence[float]) -> None:
        """Start from the dates of the backlog."""
        self.began = now
        self.recent = deque((date, 1) for date in dates if now - 7 * DAY < date <= now)
        self.week = len(self.recent)
        self.last = max((date for date in dates if date <= now), default=now)

    @staticmethod
    def _step(items_per_day: float) -> float:
        if items_per_day > 10:
            return 5 * MINUTE
        if items_per_day > 2:
            return 15 * MINUTE
        if items_per_day > 0.5:
            return 60 * MINUTE
        return 120 * MINUTE


class DuplicateShare:
    """Media Cloud's rss-fetcher (fetcher/tasks.py and config.py, 2023-2026).

    Six hours at first; an hour less after a poll of which less than 33 % was known; after one of which more than 67 %
    was known, 10 minutes more (60 if nothing was new for 31 days); between 10 minutes and a day.
    """

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor
        self.minutes = 360.0
        self.last: float | None = None

    def next_wait(self, now: float, new: int, seen: int, dates: Sequence[float]) -> float:  # noqa: D102
        known = 100.0 * (seen - new) / seen if seen else 100.0
        if self.last is None:
            self.last = now
        elif known < 33:
            self.minutes = 360.0 if self.minutes > 360 else self.minutes - 60
        elif known > 67:
            self.minutes += 10 if now - self.last < 31 * DAY else 60
        if new:
            self.last = now
        self.minutes = min(max(self.minutes, 10.0), 1440.0)
        return self.minutes * MINUTE * self.factor


class Ours:
    """services/writer: publication_rate.py says how long to wait, bounds.py adds lower bounds and jitter."""

    def __init__(self, worth: float = DEFAULT.poll_worth, shortest: float = DEFAULT.shortest) -> None:
        self.limits = Limits(worth, shortest)
        self.pace = PublicationRate()

    def next_wait(self, now: float, new: int, seen: int, dates: Sequence[float]) -> float:  # noqa: D102
        moment = EPOCH + timedelta(seconds=now)
        published = [EPOCH + timedelta(seconds=date) for date in dates]
        self.pace = observe(self.pace, now=moment, new_items=new, items_seen=seen, published=published)
        wait = next_poll(self.pace, now=moment, limits=self.limits)
        bounds = self.limits.shortest, longest_wait(self.pace, self.limits)
        planned = plan_poll(1, now=moment, wait=wait, bounds=bounds)
        return (planned - moment).total_seconds()
