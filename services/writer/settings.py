"""The writer's settings."""

from __future__ import annotations

from pydantic import Field

from services.writer.feed_state import Rules
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
    """All that the writer reads."""

    writer_batch: Count = Field(500, description="Entries that the writer commits in one transaction, at most.")
    writer_linger_seconds: Seconds = Field(0.25, description="How long a batch waits to become full.")
    writer_prefetch: Prefetch = Field(200, description="Messages that the writer holds unacknowledged, at most.")
    min_poll_seconds: Seconds = Field(120.0, description="Shortest adaptive poll interval of a feed.")
    max_poll_seconds: Seconds = Field(14400.0, description="Longest adaptive poll interval of a feed.")
    max_backoff_seconds: Seconds = Field(86400.0, description="Longest wait for the next poll after failures.")
    poll_worth_seconds: Seconds = Field(
        Rules().poll_worth,
        description="What a poll costs, in seconds that one article waits: less polls more often (docs/polling.md).",
    )
    gone_span_seconds: Seconds = Field(
        3600.0, description="A feed is disabled after two answers 410 that are at least this far apart."
    )
    moved_span_seconds: Seconds = Field(
        86400.0, description="A permanent redirect is adopted after being seen for at least this long ..."
    )
    moved_sightings: Count = Field(3, description="... and at least this often.")

    def rules(self) -> Rules:
        """Return what the pure feed-state rules need of these settings."""
        return Rules(
            min_poll_seconds=self.min_poll_seconds,
            max_poll_seconds=self.max_poll_seconds,
            max_backoff_seconds=self.max_backoff_seconds,
            poll_worth=self.poll_worth_seconds,
            gone_span_seconds=self.gone_span_seconds,
            moved_span_seconds=self.moved_span_seconds,
            moved_sightings=self.moved_sightings,
        )
