"""The alarm: feeds are due, and no attempt anywhere has succeeded for a while."""

from __future__ import annotations

import asyncio
import logging

from prometheus_client import Gauge

from services.scheduler import pending
from shared.errors import Unavailable
from shared.postgres import Connection, Database
from shared.waiting import pause

log = logging.getLogger(__name__)

LOOK_SECONDS = 30.0

DUE = Gauge("feedmill_feeds_due", "Feeds that are due and not claimed, over all schedulers.")
LONGEST_DUE = Gauge(
    "feedmill_longest_due_seconds", "For how long the feed has been due that waits longest, in seconds."
)
SILENCE = Gauge(
    "feedmill_silence_seconds",
    "Since feeds are due or in flight, and no attempt anywhere has succeeded; 0 while all is well or nothing is to do.",
)

# One look into the index for each priority; jobs under way are few. A fetcher whose clock is fast must not silence the
# alarm, nor a job raise it that was lost when its feed was disabled.
_LOOK = """
WITH RECURSIVE priorities (priority) AS (
    SELECT max(priority) FROM feeds WHERE enabled
    UNION ALL
    SELECT (SELECT max(feeds.priority) FROM feeds WHERE enabled AND feeds.priority < above.priority)
    FROM priorities AS above
    WHERE above.priority IS NOT NULL
),
waiting AS (
    SELECT coalesce(sum(found.feeds), 0) AS feeds, min(found.oldest) AS oldest
    FROM priorities CROSS JOIN LATERAL (
        SELECT count(*) AS feeds, min(due_at) AS oldest
        FROM feeds
        WHERE enabled AND priority = priorities.priority AND due_at <= now()
    ) AS found
)
SELECT feeds::int AS due,
    coalesce(extract(epoch FROM now() - oldest), 0)::float8 AS longest_due,
    greatest(0, extract(epoch FROM now() - greatest(
        (SELECT started_at FROM feed_fetch_log WHERE ok AND started_at <= now() ORDER BY started_at DESC LIMIT 1),
        least(oldest, (SELECT min(issued_at) FROM feeds WHERE enabled AND issued_at IS NOT NULL))
    )))::float8 AS silence,
    oldest IS NOT NULL OR EXISTS (SELECT FROM feeds WHERE enabled AND issued_at IS NOT NULL) AS is_work
FROM waiting
"""


class SilenceWatch:
    """Looks every 30 s, and at what waits for consumers, too. Args: the database; after how many seconds of silence."""

    def __init__(self, database: Database, *, seconds: float) -> None:
        self._database = database
        self._seconds = seconds
        self._silence = 0.0

    def check(self) -> str | None:
        """Return the alarm, if there is one (a `shared.telemetry.Check`)."""
        if self._silence <= self._seconds:
            return None
        return f"feeds are due, and none was fetched successfully for {self._silence:.0f} s"

    async def run(self, stop: asyncio.Event) -> None:
        """Look until `stop`."""
        while not stop.is_set():
            try:
                async with self._database.transaction() as connection:
                    self.note(*await look(connection))
                    pending.note(await pending.look(connection))
            except Unavailable as error:
                log.debug("could not look for silence: %s", error)
            await pause(LOOK_SECONDS, stop)

    def note(self, due: int, longest_due: float, silence: float) -> None:
        """Take what was found; the alarm is logged when it begins and when it ends."""
        DUE.set(due)
        LONGEST_DUE.set(longest_due)
        SILENCE.set(silence)
        before, self._silence = self.check(), silence
        after = self.check()
        if after and not before:
            log.error("alarm: %s", after)
        elif before and not after:
            log.info("the alarm is over: feeds are fetched again, or none is due")


async def look(connection: Connection) -> tuple[int, float, float]:
    """Return how many feeds are due, for how long the longest, and for how long no attempt has succeeded (seconds)."""
    cursor = await connection.execute(_LOOK.encode())
    row = await cursor.fetchone()
    assert row is not None
    return row["due"], row["longest_due"], row["silence"] if row["is_work"] else 0.0
