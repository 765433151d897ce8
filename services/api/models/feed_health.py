"""How a feed is."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from services.admin.feed_health.rule import Word

HEALTH: dict[str, JsonValue] = {
    "word": "failing",
    "text": "failing",
    "since": "2026-11-22T11:00:00Z",
    "until": None,
    "reason": "2 polls in a row failed: refused, or set up wrongly: the server answered 404",
    "advice": "Correct its URL or its login, if they are wrong; then `feedmill feeds fetch 1` tries it now.",
    "feed_id": None,
    "url": None,
}


class FeedHealth(BaseModel):
    """How a feed is, in one word, with the reason and what to do."""

    model_config = ConfigDict(from_attributes=True, json_schema_extra={"example": HEALTH})

    word: Word
    text: Annotated[str, Field(description="The word as people write it, such as `duplicate of feed 7`.")]
    since: datetime | None
    until: datetime | None
    reason: str
    advice: Annotated[str, Field(description="What to do; empty: nothing.")]
    feed_id: Annotated[int | None, Field(description="The feed that this one is a duplicate of.")]
    url: Annotated[str | None, Field(description="Where it moved to.")]
