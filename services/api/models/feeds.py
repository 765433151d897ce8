"""Feeds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

EXAMPLE: dict[str, JsonValue] = {
    "id": 1,
    "url": "https://news.example/feed",
    "name": "News",
    "tags": ["news", "europe/berlin"],
    "enabled": True,
    "disabled_reason": None,
    "priority": 0,
    "interval_seconds": None,
    "poll_seconds": 1800.0,
    "next_fetch_at": "2026-11-22T12:30:00Z",
    "last_attempt_at": "2026-11-22T12:00:00Z",
    "last_success_at": "2026-11-22T12:00:00Z",
    "last_outcome": "fetched",
    "last_error": None,
    "failures": 0,
    "in_flight": False,
    "failing": False,
    "retry_at": None,
    "retry": None,
    "retries": None,
}


class FeedRow(BaseModel):
    """A feed in a list. Credentials in URLs are masked."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    id: int
    url: str
    name: Annotated[str | None, Field(description="Given by a person, else the feed's own title.")]
    tags: list[str]
    enabled: bool
    disabled_reason: str | None
    priority: int
    interval_seconds: Annotated[float | None, Field(description="Fixed by a person; null: it adapts.")]
    poll_seconds: Annotated[float | None, Field(description="The adaptive interval at present.")]
    next_fetch_at: datetime
    last_attempt_at: datetime | None
    last_success_at: datetime | None
    last_outcome: str | None
    last_error: str | None
    failures: Annotated[int, Field(description="In a row.")]
    in_flight: bool | None
    failing: bool | None
    retry_at: Annotated[datetime | None, Field(description="When the feed leaves the retry queue.")]
    retry: Annotated[int | None, Field(description="The number of the next retry; 0: its host was not asked.")]
    retries: int | None
