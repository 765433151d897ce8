"""The database's time: the one clock that all services use instead of their machines' clocks.

The database makes claims and their deadlines. Scheduler and writer read its clock; schedulers publish it to the
fetchers, which have no database. Between two readings a monotonic clock counts, so that a step of the machine's clock
changes nothing.
"""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime

from prometheus_client import Gauge

log = logging.getLogger(__name__)

OFFSET = Gauge(
    "feedmill_clock_offset_seconds",
    "By how much this machine's clock is ahead of the database's, in seconds; 0 while that is unknown.",
)

READINGS = 10
"""How many readings are kept. Each is late by the time that it took to arrive; the least late one counts."""

CLOCK_MESSAGE = "scheduler.clock"
"""The type of the messages that carry the time."""

REPORTED_OFFSET_SECONDS = 5.0
"""A clock that is off by this much is reported, and again after a change by this much."""


def _wall() -> datetime:
    return datetime.now(UTC)


class ServerClock:
    """The database's clock; this machine's until the first reading.

    Args:
        wall: this machine's clock, aware.
        monotonic: seconds that never step.
    """

    def __init__(self, wall: Callable[[], datetime] = _wall, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._readings: deque[float] = deque(maxlen=READINGS)
        self._zero: float | None = None
        """The database's time, in seconds since 1970, at zero of the monotonic clock."""
        self._reported = 0.0

    def now(self) -> datetime:
        """Return the time, aware."""
        if self._zero is None:
            return self._wall()
        return datetime.fromtimestamp(self._zero + self._monotonic(), UTC)

    def offset_seconds(self) -> float:
        """Return by how much this machine's clock is ahead; 0 while that is unknown."""
        return 0.0 if self._zero is None else (self._wall() - self.now()).total_seconds()

    def observe(self, moment: datetime) -> None:
        """Note a reading: the database's clock showed `moment` a short while ago."""
        self._readings.append(moment.timestamp() - self._monotonic())
        self._zero = max(self._readings)
        offset = self.offset_seconds()
        OFFSET.set(offset)
        if abs(offset - self._reported) < REPORTED_OFFSET_SECONDS:
            return
        self._reported = offset
        if trouble := self.check():
            log.warning("%s; the database's clock is used", trouble, extra={"offset_seconds": round(offset, 3)})
        else:
            log.info("this machine's clock is right again")

    def check(self) -> str | None:
        """Return how wrong this machine's clock is; None if it is right (a `shared.observability.telemetry.Check`)."""
        offset = self.offset_seconds()
        if abs(offset) < REPORTED_OFFSET_SECONDS:
            return None
        return f"this machine's clock is {abs(offset):.0f} s {'ahead of' if offset > 0 else 'behind'} the database's"


def encode_clock(moment: datetime) -> bytes:
    """Return the body of a message that carries the time."""
    return json.dumps({"clock": moment.isoformat()}).encode()


def decode_clock(body: bytes) -> datetime | None:
    """Return the time in a message; None if it carries something else."""
    try:
        moment = datetime.fromisoformat(json.loads(body)["clock"])
    except (ValueError, TypeError, KeyError):
        return None
    return moment if moment.tzinfo else None
