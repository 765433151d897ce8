"""Dry runs: writes a result, sees what is new, and rolls back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from services.writer.fires.tasks import count, describe_error, end_task, show_entries
from services.writer.handler import WriteArticles
from services.writer.store import Written, write_batch
from shared.broker.port import Outgoing
from shared.errors import DatabaseBusy, Unavailable
from shared.observability.secrets import mask_credentials
from shared.wire.results import FeedFetched

log = logging.getLogger(__name__)


ERROR_CHARACTERS = 500


class _RolledBack(Exception):
    """Ends the transaction of a dry run."""

    def __init__(self, written: Written) -> None:
        self.written = written


@dataclass(frozen=True)
class TryArticles:
    """The handler of `writer.trials`."""

    real: WriteArticles
    """Says how results are written."""

    async def __call__(self, batch: Sequence[FeedFetched]) -> Sequence[Outgoing]:
        """End the task of each result. Of the results nothing stays.

        Raises:
            DatabaseUnavailable: the server can't serve anybody now.
        """
        for fetched in batch:
            await self._try(fetched)
        return ()

    async def _try(self, fetched: FeedFetched) -> None:
        written, error = None, describe_error(fetched, self.real.now())
        try:
            written = await self._write_and_roll_back(fetched)
        except DatabaseBusy as busy:
            error = f"the articles could not be compared: {busy}. Try again"
        except Unavailable:
            raise
        except Exception as failure:
            log.exception("the result of a dry run could not be written", extra={"feed_id": fetched.feed_id})
            error = f"the writer could not write this, and would dead-letter it: {_brief(failure)}"
        async with self.real.database.transaction() as connection:
            if written is None or not written.readings:  # or its feed was removed
                await end_task(connection, fetched, None, error, dry_run=True)
            else:
                counts, entries = count(written, 0), show_entries(written, 0)
                await end_task(connection, fetched, counts, error, dry_run=True, entries=entries)

    async def _write_and_roll_back(self, fetched: FeedFetched) -> Written:
        real = self.real
        try:
            async with real.database.transaction() as connection:
                written = await write_batch(
                    connection,
                    [fetched],
                    now=real.now(),
                    rules=real.rules,
                    proxy_hosts=real.proxy_hosts,
                    policy=real.policy,
                )
                raise _RolledBack(written)
        except _RolledBack as end:
            return end.written


def _brief(error: Exception) -> str:
    return mask_credentials(f"{type(error).__name__}: {' '.join(str(error).split())}")[:ERROR_CHARACTERS]
