"""The scheduler's settings."""

from __future__ import annotations

from pydantic import Field

from shared.settings import BrokerSettings, ClaimSettings, Count, DatabaseSettings, Seconds, TelemetrySettings


class SchedulerSettings(BrokerSettings, ClaimSettings, DatabaseSettings, TelemetrySettings):
    """All that the scheduler reads."""

    tick_seconds: Seconds = Field(1.0, description="How often the scheduler looks for feeds that are due.")
    claim_batch: Count = Field(500, description="Feeds claimed and published in one go.")
    fetcher_high_water: Count = Field(5000, description="No jobs are published while this many wait in the shards.")
    silence_seconds: Seconds = Field(
        1800.0, description="An alarm is raised when feeds are due and none, anywhere, was fetched for so long."
    )
    group_jobs: Count = Field(
        30,
        description="Jobs of one politeness group under way at most. The backlog of a host stays in PostgreSQL, where "
        "it keeps no other host waiting. Raise it for hosts that take more than 15 requests a second.",
    )
