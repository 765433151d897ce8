"""What is wrong, as page, API and command show it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

EXAMPLE: dict[str, JsonValue] = {
    "name": "silent",
    "severity": "critical",
    "sentence": "no feed was fetched successfully for 45 minutes: name resolution fails for all of 120 hosts",
    "action": "is there a resolver? Try `feedmill parse URL` where a fetcher runs",
    "page": "how-to/alerts.md#feedmillsilent",
    "since": "2026-11-22T12:15:00Z",
}


class AlarmRow(BaseModel):
    """One thing that is wrong."""

    model_config = ConfigDict(from_attributes=True, json_schema_extra={"example": EXAMPLE})

    name: str
    severity: Literal["warning", "critical"]
    sentence: str
    action: Annotated[str, Field(description="What to do.")]
    page: Annotated[str, Field(description="The section of the documentation that says more.")]
    since: Annotated[datetime | None, Field(description="As far as it is known.")] = None
