"""The database's time: the one clock that all services go by, whatever this machine's says.

Claims and their deadlines are made by the database. Who has a connection reads its clock; schedulers tell fetchers,
who have none. Between two words a monotonic clock counts on, so that a step of this machine's clock changes nothing.
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
    "By how much this machine's clock is ahead of the database's, in seconds; 0 as long as that is not known.",
)

WORDS = 10
"""So many words are remembered. Each comes late by the time that it took; the least late one counts."""

CLOCK_MESSAGE = "scheduler.clock"
"""What a word between services is called."""

WORTH_A_WORD_SECONDS = 5.0
"""A clock is off, and said to be, from here on; and again if that has changed by as much."""


def _wall() -> datetime:
    return datetime.now(UTC)


class ServerClock:
    """See the module. As long as nobody has said what time it is, it is this machine's.

    Args:
        wall: this machine's clock, aware.
        monotonic: seconds that never step.
    """

    def __init__(self, wall: Callable[[], datetime] = _wall, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._words: deque[float] = deque(maxlen=WORDS)
        self._zero: float | None = None
        """The time by the database, in seconds since 1970, when the monotonic clock stood at zero."""
        self._said = 0.0

    @property
    def is_known(self) -> bool:
        """Whether somebody has said what time it is."""
        return self._zero is not None

    def now(self) -> datetime:
        """Return the time, aware."""
        if self._zero is None:
            return self._wall()
        return datetime.fromtimestamp(self._zero + self._monotonic(), UTC)

    def offset_seconds(self) -> float:
        """Return by how much this machine's clock is ahead; 0 as long as that is not known."""
        return (self._wall() - self.now()).total_seconds() if self.is_known else 0.0

    def observe(self, moment: datetime) -> None:
        """Take note that the database's clock stood at `moment` a short while ago."""
        self._words.append(moment.timestamp() - self._monotonic())
        self._zero = max(self._words)
        offset = self.offset_seconds()
        OFFSET.set(offset)
        if abs(offset - self._said) < WORTH_A_WORD_SECONDS:
            return
        self._said = offset
        if trouble := self.check():
            log.warning("%s; going by the database's", trouble, extra={"offset_seconds": round(offset, 3)})
        else:
            log.info("this machine's clock is right again")

    def check(self) -> str | None:
        """Return how wrong this machine's clock is, if it is (a `shared.observability.telemetry.Check`)."""
        offset = self.offset_seconds()
        if abs(offset) < WORTH_A_WORD_SECONDS:
            return None
        return f"this machine's clock is {abs(offset):.0f} s {'ahead of' if offset > 0 else 'behind'} the database's"


def encode_clock(moment: datetime) -> bytes:
    """Return what is said of the time."""
    return json.dumps({"clock": moment.isoformat()}).encode()


def decode_clock(body: bytes) -> datetime | None:
    """Return the moment that is told of; None if this is about something else."""
    try:
        moment = datetime.fromisoformat(json.loads(body)["clock"])
    except (ValueError, TypeError, KeyError):
        return None
    return moment if moment.tzinfo else None
