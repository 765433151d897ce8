"""The database's part in a run: claims, by the scheduler's own statement, and claims given back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from services.scheduler.store import claim_due_feeds, release_claims
from shared.clock import ServerClock
from shared.database.postgres import Database
from shared.wire.messages import FetchFeed


class Claims:
    """See the module. What becomes due while the run lasts is left to the next one: a run has an end.

    Args:
        clock: set by the database's, which the claims' deadlines are made by.
        batch: feeds claimed in one go, at most.
        seconds: how long the claims live.
    """

    def __init__(self, database: Database, clock: ServerClock, *, batch: int, seconds: float) -> None:
        self._database = database
        self._clock = clock
        self._batch = batch
        self.seconds = seconds
        self._due_by: datetime | None = None

    async def take(self, limit: int) -> tuple[list[FetchFeed], int]:
        """Claim up to `limit` feeds; return their jobs, and how many were claimed (a row may make no job).

        Raises:
            DatabaseUnavailable: away; what may have been claimed nevertheless runs out.
        """
        if self._due_by is None:
            self._due_by = await self._database.read_clock()
            self._clock.hear(self._due_by)
        async with self._database.transaction() as connection:
            claimed = await claim_due_feeds(
                connection, limit=min(limit, self._batch), claim_seconds=self.seconds, due_by=self._due_by
            )
        return [job.model_copy(update={"reason": "batch"}) for job in claimed.jobs], claimed.feeds

    async def release(self, jobs: Sequence[FetchFeed]) -> None:
        """Give claims back: their feeds are due again at once. Raises DatabaseUnavailable."""
        async with self._database.transaction() as connection:
            await release_claims(connection, jobs)
