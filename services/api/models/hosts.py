"""Hosts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from services.api.models.freshness import EXAMPLE as FRESHNESS_EXAMPLE
from services.api.models.freshness import Freshness

EXAMPLE: dict[str, JsonValue] = {
    "host": "news.example",
    "feeds": 12,
    "disabled": 1,
    "due": 2,
    "in_flight": 3,
    "backlog": 5,
    "failing": 0,
    "throttled_until": "2026-11-22T12:30:00Z",
    "down_until": None,
    "last_success_at": "2026-11-22T12:00:00Z",
    "mean_seconds": 0.41,
}


class HostRow(BaseModel):
    """A host, that is a politeness group: the feeds that share one rate limit."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    host: str
    feeds: int
    disabled: int
    due: Annotated[int, Field(description="Feeds that may be claimed now.")]
    in_flight: Annotated[int, Field(description="Feeds with a job that has no result yet.")]
    backlog: Annotated[int, Field(description="Both together.")]
    failing: int
    throttled_until: Annotated[datetime | None, Field(description="The host asked to be left alone until then.")]
    down_until: Annotated[datetime | None, Field(description="No connection came about: left alone until then.")]
    last_success_at: datetime | None
    mean_seconds: Annotated[
        float | None, Field(description="A successful fetch takes so long: the mean of the last few.")
    ]


class Host(HostRow):
    """One host, with the freshness of its feeds' articles."""

    model_config = ConfigDict(json_schema_extra={"example": {**EXAMPLE, "freshness": FRESHNESS_EXAMPLE}})

    freshness: Annotated[Freshness | None, Field(description="Null: an older API does not tell it.")] = None
