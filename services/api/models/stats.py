"""How things stand: queues, feeds, articles."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from services.admin.feed_health.rule import Word
from services.admin.health.stats import Stats
from services.api.models.alarms import EXAMPLE as ALARM
from services.api.models.alarms import AlarmRow
from services.api.models.freshness import EXAMPLE as FRESHNESS_EXAMPLE
from services.api.models.freshness import Freshness
from services.api.models.health import COMPARED, Compared

EXAMPLE: dict[str, JsonValue] = {
    "alarms": [ALARM],
    "queues_at": "2026-11-22T13:00:00Z",
    "counts_at": "2026-11-22T13:00:00Z",
    "queues": {"fetcher.00": 12, "fetcher.01": 0, "writer": 3},
    "consumers": {"fetcher.00": 1, "fetcher.01": 1, "writer": 1},
    "counts": {
        "feeds": 1200,
        "disabled": 4,
        "due": 3,
        "overdue": 0,
        "left_alone": 0,
        "queued": 14,
        "retrying": 20,
        "failing": 31,
        "pending_articles": 5120,
        "longest_due_seconds": 0.4,
        "next_due_seconds": 0.2,
        "seconds_since_success": 1.5,
    },
    "busiest": {"news.example": 4},
    "reasons": ["1,200 overdue feeds wait for hosts that asked to be left alone for a while"],
    "articles": {"pending": 5120, "claimed": 200, "dead": 0, "ledger": 812000},
    "hours": [{"at": "2026-11-22T12:00:00Z", "succeeded": 2210, "failed": 40, "articles": 318}],
    "quality": COMPARED,
    "health": dict.fromkeys(Word, 100),
    "freshness": FRESHNESS_EXAMPLE,
}


class FeedStates(BaseModel):
    """How many feeds are in which state. Spans in seconds."""

    model_config = ConfigDict(from_attributes=True)

    feeds: int
    disabled: int
    due: Annotated[int, Field(description="They may be claimed now.")]
    overdue: Annotated[int, Field(description="Of these, due for more than a minute.")]
    left_alone: Annotated[int, Field(description="Overdue feeds at hosts that are throttled now.")]
    queued: Annotated[int, Field(description="Claimed, and no result has come yet.")]
    retrying: Annotated[int, Field(description="Claimed, and to be tried again.")]
    failing: int
    pending_articles: int
    longest_due_seconds: float | None
    next_due_seconds: float | None
    seconds_since_success: float | None


class Articles(BaseModel):
    """How many articles are where."""

    pending: int
    claimed: Annotated[int, Field(description="Of the pending ones.")]
    dead: int
    ledger: Annotated[int, Field(description="Ever seen; an estimate.")]


class HourRow(BaseModel):
    """One hour."""

    model_config = ConfigDict(from_attributes=True)

    at: Annotated[datetime, Field(description="When it begins.")]
    succeeded: Annotated[int, Field(description="Fetches.")]
    failed: Annotated[int, Field(description="Attempts that failed, or were put off without a request.")]
    articles: Annotated[int, Field(description="New ones.")]


class StatsAnswer(BaseModel):
    """How things stand, at most five seconds ago. If a server is away: as this API has last seen them."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    alarms: Annotated[list[AlarmRow], Field(description="What is wrong, the worst first.")] = []
    queues: Annotated[dict[str, int | None], Field(description="Messages ready; null: the queue is not declared.")]
    consumers: dict[str, int]
    queues_at: Annotated[datetime | None, Field(description="When the queues were seen; null: never.")] = None
    counts: Annotated[FeedStates | None, Field(description="Null: never counted, since the database is away.")]
    counts_at: Annotated[datetime | None, Field(description="When they were counted.")] = None
    busiest: Annotated[dict[str, int], Field(description="The hosts with the most jobs under way.")]
    reasons: Annotated[list[str], Field(description="What keeps feeds from being fetched.")]
    articles: Articles | None
    hours: Annotated[list[HourRow], Field(description="The last 24, the present one last.")]
    quality: Annotated[Compared | None, Field(description="What new articles are like; null: not counted.")] = None
    freshness: Annotated[Freshness | None, Field(description="Of all feeds; null: not counted.")] = None

    health: Annotated[dict[Word, int], Field(description="How many feeds are how.")] = {}

    @classmethod
    def of(cls, found: Stats) -> Self:
        """Return the answer."""
        levels, counts = found.levels or {}, found.counts
        return cls(
            alarms=[AlarmRow.model_validate(alarm) for alarm in found.alarms],
            queues={name: level.ready if level else None for name, level in levels.items()},
            consumers={name: level.consumers if level else 0 for name, level in levels.items()},
            queues_at=found.levels_at,
            counts=counts and FeedStates.model_validate(counts.feeds),
            counts_at=found.counts_at,
            busiest=counts.busiest if counts else {},
            reasons=found.reasons,
            articles=Articles(**counts.articles) if counts else None,
            hours=[HourRow.model_validate(hour) for hour in found.hours],
            freshness=found.freshness and Freshness.model_validate(found.freshness),
            quality=found.quality and Compared.of_all(found.quality),
            health=dict(counts.health) if counts else {},
        )
