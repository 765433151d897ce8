"""Pure: when to look at a feed again.

First version: the interval halves when a poll brought something new and grows by half when it did not; failures
back off exponentially; what the server asks for is a floor.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

FIRST_POLL_SECONDS = 900.0
"""The interval that a new feed starts from, before anything is known of it."""

FIRST_BACKOFF_SECONDS = 600.0
"""The wait after the first failure; it doubles with each one that follows."""

SPEED_UP = 0.5
SLOW_DOWN = 1.5


def adapt_interval(current: float | None, *, new_items: int, shortest: float, longest: float) -> float:
    """Return the next poll interval (seconds) after a successful poll that brought `new_items`."""
    base = FIRST_POLL_SECONDS if current is None else current
    if current is not None:
        base *= SPEED_UP if new_items else SLOW_DOWN
    return min(max(base, shortest), longest)


def backoff(failures: int, *, interval: float, longest: float) -> float:
    """Return the wait (seconds) after the `failures`-th failure in a row: never less than the usual interval."""
    return min(max(interval, FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 1, 30)), longest)


def server_floor(spans: Iterable[float | None], now: datetime, not_before: datetime | None) -> datetime:
    """Return the earliest moment at which the server wants to see us again.

    Args:
        spans: what the answer (RFC 9111) and the feed (ttl, sy:update*) ask for, in seconds; a day at most counts.
        now: what they begin at.
        not_before: what Retry-After asks for.
    """
    earliest = now + timedelta(seconds=min(max((span or 0.0 for span in spans), default=0.0), 86400.0))
    return max(earliest, not_before) if not_before else earliest
