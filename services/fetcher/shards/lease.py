"""Pure: how long this process can be certain that it still has its locks."""

from __future__ import annotations

SHARE = 0.75
"""A lease lasts this share of the heartbeat timeout. The broker closes a silent connection, and frees its locks, after
one timeout at the earliest."""

NO_HEARTBEAT_SECONDS = 20.0
"""A broker without heartbeats never ends a silent connection; but a proxy in between may."""


def lease_seconds(heartbeat_seconds: float) -> float:
    """Return for how long locks are certain after the broker has answered; `heartbeat_seconds` 0: there is none."""
    return SHARE * heartbeat_seconds if heartbeat_seconds else NO_HEARTBEAT_SECONDS


class Lease:
    """The locks of one session. After a freeze of the process or its machine the lease has run out.

    Renewed on the event loop, looked at on any thread. Moments are seconds of a clock that goes on while the machine
    sleeps.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = float("-inf")

    def renew(self, asked_at: float) -> None:
        """Note that the broker has answered a request of this moment: the locks stood then."""
        self._until = max(self._until, asked_at + self._seconds)

    def is_certain(self, now: float) -> bool:
        """Return whether the broker can't have taken the locks away by now."""
        return now < self._until
