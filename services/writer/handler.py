"""Writes a batch of results in one transaction, and counts what it wrote."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import get_args

from prometheus_client import Counter, Histogram

from services.writer.article import DuplicateKind
from services.writer.fires.tasks import end_fires
from services.writer.freshness.rules import Counted, LeftOut
from services.writer.schedule.feed_state import Rules
from services.writer.store import Policy, write_batch
from services.writer.tracing import tracing
from shared.broker.port import Outgoing
from shared.database.postgres import Database
from shared.errors import Blocked, DatabaseBusy
from shared.wire.results import FeedFetched

log = logging.getLogger(__name__)

ARTICLES = Counter(
    "feedmill_articles_total", "Articles written: new, updated, or repeated (known already).", ["result"]
)
DUPLICATES = Counter(
    "feedmill_duplicates_total",
    "New articles that had come before, by what tells it: address, title or text (FEEDMILL_DUPLICATES).",
    ["kind"],
)
for _kind in get_args(DuplicateKind):
    DUPLICATES.labels(_kind)  # 0 until there is one: a rate begins with it
CLAIMS = Counter(
    "feedmill_claims_ended_total",
    "Claims that ended with a result: completed, failed, or dropped (stale job); late: the claim was over before.",
    ["how"],
)
FRESHNESS = Histogram(
    "feedmill_freshness_seconds",
    "From an article's publication to its row; of an unsure date (unsure, ahead) since the poll before, at most.",
    ["date"],
    buckets=(10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800, 86_400, 172_800),
)
NOT_COUNTED = Counter(
    "feedmill_freshness_not_counted_total", "New articles of which freshness can't be told, by reason.", ["reason"]
)
for _date in get_args(Counted):
    FRESHNESS.labels(_date)
for _reason in get_args(LeftOut):
    NOT_COUNTED.labels(_reason)
BATCH_SECONDS = Histogram("feedmill_write_batch_seconds", "Time of one transaction of the writer, in seconds.")


@dataclass(frozen=True)
class WriteArticles:
    """The writer's handler."""

    database: Database
    rules: Rules
    policy: Policy
    proxy_hosts: frozenset[str]
    now: Callable[[], datetime]
    """A clock of aware datetimes."""
    retry_seconds: float = 3600.0
    """How long a feed with a soft error waits for its retry."""

    async def __call__(self, batch: Sequence[FeedFetched]) -> Sequence[Outgoing]:
        """Commit the batch; return no messages.

        Raises:
            DatabaseUnavailable: the server can't serve anybody now.
            Blocked: another transaction holds rows of the batch, or it is too large for the server at present.
        """
        with BATCH_SECONDS.time(), tracing(batch) as spans:
            try:
                async with self.database.transaction() as connection:
                    written = await write_batch(
                        connection,
                        batch,
                        now=self.now(),
                        rules=self.rules,
                        proxy_hosts=self.proxy_hosts,
                        policy=self.policy,
                    )
                    await end_fires(connection, written, self.now() + timedelta(seconds=self.retry_seconds))
            except DatabaseBusy as error:
                raise Blocked(str(error)) from error
            spans.note(written)
        articles = {"new": written.new, "updated": written.updated, "repeated": written.repeated}
        for result, count in articles.items():
            ARTICLES.labels(result).inc(count)
        for article in written.duplicate_articles():
            DUPLICATES.labels(article.duplicate_kind or "address").inc()
        for arrival in written.arrivals:
            if arrival.seconds is None:
                NOT_COUNTED.labels(arrival.kind).inc()
            else:
                FRESHNESS.labels(arrival.kind).observe(arrival.seconds)
        for how, count in written.claims.items():
            CLAIMS.labels(how).inc(count)
        log.info(
            "wrote %d results",
            len(batch),
            extra={"feed_ids": sorted({fetched.feed_id for fetched in batch}), **articles},
        )
        return ()
