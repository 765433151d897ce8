"""From results to one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from prometheus_client import Counter, Histogram

from services.writer.schedule.feed_state import Rules
from services.writer.store import Policy, Written, write_batch
from shared.broker.port import Outgoing
from shared.database.postgres import Database
from shared.errors import Blocked, DatabaseBusy
from shared.wire.results import FeedFetched

log = logging.getLogger(__name__)

ARTICLES = Counter(
    "feedmill_articles_total", "Articles written: new, updated, or repeated (known already).", ["result"]
)
DUPLICATES = Counter(
    "feedmill_duplicates_total", "New articles that had come before under another address (FEEDMILL_DUPLICATES)."
)
CLAIMS = Counter(
    "feedmill_claims_ended_total",
    "Claims that ended with a result: completed, failed, or dropped (stale job); late: the claim was over before.",
    ["how"],
)
BATCH_SECONDS = Histogram("feedmill_write_batch_seconds", "Time of one transaction of the writer, in seconds.")


class WriteArticles:
    """The writer's handler. Args: the database, the feed-state rules, and a clock of aware datetimes."""

    def __init__(
        self,
        database: Database,
        *,
        rules: Rules,
        proxy_hosts: frozenset[str],
        now: Callable[[], datetime],
        policy: Policy,
    ) -> None:
        self._database = database
        self._rules = rules
        self._proxy_hosts = proxy_hosts
        self._now = now
        self._policy = policy

    async def __call__(self, batch: Sequence[FeedFetched]) -> Sequence[Outgoing]:
        """Commit the batch. Nothing follows from it but rows.

        Raises:
            DatabaseUnavailable: the server can't serve anybody now.
            Blocked: some rows of the batch are held by somebody else, or it is too large for the server as it is now.
        """
        with BATCH_SECONDS.time():
            try:
                written = await self._write(batch)
            except DatabaseBusy as error:
                raise Blocked(str(error)) from error
        for result, count in (("new", written.new), ("updated", written.updated), ("repeated", written.repeated)):
            ARTICLES.labels(result).inc(count)
        DUPLICATES.inc(written.duplicates)
        for how, count in written.claims.items():
            CLAIMS.labels(how).inc(count)
        log.info(
            "wrote %d results",
            len(batch),
            extra={
                "feed_ids": sorted({fetched.feed_id for fetched in batch}),
                "new": written.new,
                "updated": written.updated,
                "repeated": written.repeated,
            },
        )
        return ()

    async def _write(self, batch: Sequence[FeedFetched]) -> Written:
        async with self._database.transaction() as connection:
            return await write_batch(
                connection,
                batch,
                now=self._now(),
                rules=self._rules,
                proxy_hosts=self._proxy_hosts,
                policy=self._policy,
            )
