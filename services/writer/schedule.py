"""Pure: when to look at a feed again.

First version: the interval halves when a poll brought something new and grows by half when it did not; failures
back off exponentially; what the server asks for is a floor.
"""

from __future__ import annotations

from services.writer.floors import server_floor

__all__ = ["adapt_interval", "backoff", "server_floor"]

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
