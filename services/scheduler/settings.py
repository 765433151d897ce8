"""The scheduler's settings."""

from __future__ import annotations

from pydantic import Field

from shared.settings import BrokerSettings, ClaimSettings, Count, DatabaseSettings, Seconds, TelemetrySettings


class SchedulerSettings(BrokerSettings, ClaimSettings, DatabaseSettings, TelemetrySettings):
    """All that the scheduler reads."""

    tick_seconds: Seconds = Field(1.0, description="How often the scheduler looks for due feeds.")
    claim_batch: Count = Field(500, description="Feeds claimed and published together.")
    fetcher_high_water: Count = Field(
        5000, description="The scheduler publishes no jobs while more wait in the shards."
    )
    silence_seconds: Seconds = Field(
        1800.0, description="The alarm is raised when feeds are due and no fetch has succeeded for so long."
    )
    group_jobs: Count = Field(
        400,
        description="Jobs of one politeness group under way, at most, so that one host's feeds don't fill the queue.",
    )
