"""Pure: what becomes of a message whose handling failed.

What becomes of a *feed* that failed is the fetcher's to say (`services/fetcher/outcomes.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.errors import Blocked, DecodeError, MessageTooLarge, Unprocessable


@dataclass(frozen=True)
class TryLater:
    """Into the retry queue, with this count of failures in the header `failures`."""

    failures: int


@dataclass(frozen=True)
class DeadLetter:
    """Into the dead queue, for a person to look at."""

    reason: str


def after_failure(error: Exception, *, failures: int, most: int) -> TryLater | DeadLetter:
    """Decide on a message that failed with `error` after `failures` earlier failures.

    What can never work is buried at once; a bug gets `most` more chances, since it may be one of the moment. What is
    blocked is not at fault: no failure is counted.
    """
    if isinstance(error, Blocked):
        return TryLater(failures)
    if isinstance(error, DecodeError):
        return DeadLetter("undecodable")
    if isinstance(error, MessageTooLarge):
        return DeadLetter("too_large")
    if isinstance(error, Unprocessable):
        return DeadLetter("unprocessable")
    if failures >= most:
        return DeadLetter("exhausted")
    return TryLater(failures + 1)
