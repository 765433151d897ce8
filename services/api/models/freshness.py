"""How fresh articles are."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

_DAY: dict[str, JsonValue] = {
    "since": "2026-11-21T12:00:00Z",
    "sure": 46,
    "unsure": 4,
    "ahead": 1,
    "share_sure": 0.92,
    "left_out": {"first_reading": 0, "paused": 0, "old_date": 2, "out_of_order": 0, "duplicate": 5},
    "seconds": {"p50": 160.6, "p95": 1083.7, "p99": 2110.7},
    "at_most": {"p50": 194.4, "p95": 1919.0, "p99": 3738.5},
}
_HOUR: dict[str, JsonValue] = _DAY | {
    "since": "2026-11-22T11:00:00Z",
    "sure": 0,
    "unsure": 0,
    "ahead": 0,
    "share_sure": None,
    "left_out": {"first_reading": 0, "paused": 0, "old_date": 0, "out_of_order": 0, "duplicate": 0},
    "seconds": None,
    "at_most": None,
}
EXAMPLE: dict[str, JsonValue] = {
    "hour": _HOUR,
    "day": _DAY,
    "week": {**_DAY, "since": "2026-11-15T12:00:00Z", "sure": 301, "unsure": 21, "share_sure": 0.9347826086956522},
}


class Percentiles(BaseModel):
    """So many percent of the articles came within so many seconds: never too few, at most 10 % too many."""

    model_config = ConfigDict(from_attributes=True)

    p50: float
    p95: float
    p99: float


class SpanFreshness(BaseModel):
    """Of the articles of one span: how long they took from their publication to their row."""

    model_config = ConfigDict(from_attributes=True)

    since: Annotated[datetime, Field(description="The span begins then, with a full hour.")]
    sure: Annotated[int, Field(description="Articles whose date fits the polls before and after it.")]
    unsure: Annotated[int, Field(description="Articles of which only these two polls are known.")]
    ahead: Annotated[int, Field(description="Of these, articles that are dated after they were read.")]
    share_sure: Annotated[float | None, Field(description="Null: there are none.")]
    left_out: Annotated[dict[str, int], Field(description="Articles that are not counted, by reason.")]
    seconds: Annotated[Percentiles | None, Field(description="Of the sure ones.")]
    at_most: Annotated[
        Percentiles | None,
        Field(description="Of all: an unsure one counts with all the time since the poll before it."),
    ]


class Freshness(BaseModel):
    """How fresh articles are: the last hour, day and week, and the hour that has just begun."""

    model_config = ConfigDict(from_attributes=True, json_schema_extra={"example": EXAMPLE})

    hour: SpanFreshness
    day: SpanFreshness
    week: SpanFreshness
