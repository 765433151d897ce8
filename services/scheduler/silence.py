"""The silence alarm: feeds are to be fetched, and no attempt anywhere has succeeded for a while."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from prometheus_client import Gauge

from shared.database.postgres import Connection, Database

log = logging.getLogger(__name__)

LOOK_SECONDS = 30.0

BLIND_SECONDS = 3 * LOOK_SECONDS
"""Without a look for so long, nothing is known of the present."""

DUE = Gauge("feedmill_feeds_due", "Feeds that are due and not claimed, over all schedulers.")
LONGEST_DUE = Gauge(
    "feedmill_longest_due_seconds", "How long the feed that has waited longest has been due, in seconds."
)
SILENCE = Gauge(
    "feedmill_silence_seconds",
    "How long no attempt has succeeded anywhere although feeds are to be fetched, in seconds; 0 if none is.",
)

LOOK = (Path(__file__).parent / "silence.sql").read_bytes()


class Found(NamedTuple):
    """What a look finds. Spans in seconds."""

    due: int
    """Feeds that are due."""
    longest_due: float
    silence: float
    """For how long no attempt has succeeded though feeds wanted one."""
    success_age: float
    """Since the last success; infinite: there was none."""


class SilenceWatch:
    """Looks how much is due, and whether any attempt succeeds.

    A silence lasts until an attempt succeeds or no feed wants one: that a lost job is issued anew does not end it. None
    begins before the watch does: after a start the feeds that were due meanwhile are no alarm.

    Args:
        database: where the answers are.
        seconds: after so many seconds of silence there is an alarm.
        clock: monotonic seconds.
    """

    def __init__(self, database: Database, *, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._seconds = seconds
        self._clock = clock
        self._silence = 0.0
        self._begun_at: float | None = None
        """When the silence began, by `clock`; None: there is none."""
        self._started_at = self._noted_at = clock()
        SILENCE.set_function(self.silence_seconds)

    def silence_seconds(self) -> float:
        """Return how long the silence has lasted. While the database is away, it grows."""
        unseen = self._clock() - self._noted_at
        return self._silence + (unseen if unseen > BLIND_SECONDS else 0.0)

    def check(self) -> str | None:
        """Return the alarm, if there is one (a `shared.observability.telemetry.Check`)."""
        silence = self.silence_seconds()
        if silence <= self._seconds:
            return None
        if silence > self._silence:
            return f"nobody could look whether feeds are fetched; none was seen to be for {silence:.0f} s"
        return f"feeds are due, and none was fetched successfully for {silence:.0f} s"

    async def look(self) -> None:
        """Look once, and let the metrics follow. Raises what the database raises; they say nothing then."""
        try:
            async with self._database.transaction() as connection:
                found = await look(connection)
        except BaseException:
            DUE.set(math.nan)
            LONGEST_DUE.set(math.nan)
            raise
        self.note(found)

    def note(self, found: Found) -> None:
        """Take what was found; the alarm is logged when it begins and when it ends."""
        DUE.set(found.due)
        LONGEST_DUE.set(found.longest_due)
        before = self.check()
        now = self._clock()
        self._begun_at = self._find_begin(found, now)
        self._silence, self._noted_at = 0.0 if self._begun_at is None else now - self._begun_at, now
        after = self.check()
        if after and not before:
            log.error("alarm: %s", after)
        elif before and not after:
            log.info("the alarm is over: feeds are fetched again, or none wants to be")

    def _find_begin(self, found: Found, now: float) -> float | None:
        if found.silence <= 0:
            return None
        begun_at = max(now - found.silence, self._started_at)
        if self._begun_at is None or now - found.success_age > self._begun_at:
            return begun_at
        return min(begun_at, self._begun_at)


async def look(connection: Connection) -> Found:
    """Return how many feeds are due, and whether any attempt succeeds. Raises what the database raises."""
    await connection.execute("SET LOCAL jit = off")  # compiling takes thirty times as long as the search
    cursor = await connection.execute(LOOK)
    row = await cursor.fetchone()
    assert row is not None
    return Found(**row)
