"""The writer's settings."""

from __future__ import annotations

from dataclasses import fields

from pydantic import Field

from services.writer.pruning import Retention
from services.writer.schedule.feed_state import Rules
from services.writer.store import Duplicates, Policy
from shared.settings import (
    BrokerSettings,
    Count,
    DatabaseSettings,
    PolitenessSettings,
    Prefetch,
    Seconds,
    TelemetrySettings,
)


class WriterSettings(BrokerSettings, DatabaseSettings, PolitenessSettings, TelemetrySettings):
    """Every setting that the writer reads."""

    writer_batch: Count = Field(500, description="Entries that the writer commits in one transaction, at most.")
    writer_linger_seconds: Seconds = Field(0.25, description="How long a batch waits to become full.")
    writer_prefetch: Prefetch = Field(200, description="Messages that the writer holds unacknowledged, at most.")
    duplicates: Duplicates = Field(
        "flag",
        description="A new article that came before under another address (http, www., tracking, AMP), or from"
        " another feed with nearly the same text (if the enricher runs): `flag` it in `duplicate_of`, `drop` it"
        " (only the ledger keeps it), or don't look (`off`).",
    )
    duplicate_days: Seconds = Field(7.0, description="Days for which near-duplicates of an article are looked for.")
    requeue_updates: bool = Field(
        False, description="Whether a drained article is pending again when its text changes."
    )
    min_poll_seconds: Seconds = Field(120.0, description="Shortest adaptive poll interval of a feed.")
    max_poll_seconds: Seconds = Field(86400.0, description="Longest poll interval, also after failures.")
    poll_worth_seconds: Seconds = Field(
        Rules().poll_worth_seconds,
        description="What a poll costs, in seconds that one article waits: less polls more often.",
    )
    gone_span_seconds: Seconds = Field(
        3600.0, description="A feed is disabled after two 410 answers at least this far apart."
    )
    moved_span_seconds: Seconds = Field(
        86400.0, description="A permanent redirect is adopted after it was seen for at least this long ..."
    )
    moved_sightings: Count = Field(3, description="... and at least this often.")

    ledger_days: Seconds = Field(
        90.0, description="Days after which the ledger forgets an article that its feed no longer lists."
    )
    log_days: Seconds = Field(30.0, description="Days for which the fetch log keeps attempts ...")
    log_per_feed: Count = Field(500, description="... and how many of each feed, at most.")
    fire_days: Seconds = Field(1.0, description="Days for which a fetch by hand can be looked up.")

    def policy(self) -> Policy:
        """Return what to do with duplicates and changed articles."""
        return Policy(self.duplicates, self.duplicate_days, self.requeue_updates)

    def retention(self) -> Retention:
        """Return how long rows are kept."""
        return Retention(self.ledger_days, self.log_days, self.log_per_feed, self.fire_days, self.duplicate_days)

    def rules(self) -> Rules:
        """Return the settings of the feed-state rules."""
        return Rules(**{field.name: getattr(self, field.name) for field in fields(Rules)})
