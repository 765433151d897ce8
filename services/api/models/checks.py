"""Checks of feeds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictInt, StrictStr

from services.admin.feeds.tags import MAX_TAG_CHARACTERS
from services.api.models.texts import PLAIN

EXAMPLE: dict[str, JsonValue] = {
    "feed_id": 1,
    "url": "https://news.example/feed",
    "name": "News",
    "source_type": "feed",
    "well": True,
    "outcome": "fetched",
    "words": "the feed was read",
    "error": None,
    "status": 200,
    "redirects": 0,
    "final_url": "https://news.example/feed",
    "moved_to": None,
    "tier": "strict",
    "title": "News",
    "entries": 20,
    "newest_at": "2026-11-22T12:00:00Z",
    "sure_dates": 20,
    "full_bodies": 12,
    "warnings": [],
    "bytes": 31415,
    "seconds": 0.213,
}


class CheckedFeed(BaseModel):
    """What one fetch of a feed found. Credentials in URLs are masked."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    feed_id: int
    url: str
    name: str | None
    source_type: str
    well: Annotated[bool, Field(description="Whether it was fetched and read.")]
    outcome: Annotated[str, Field(description="As in the fetch log; `not_asked`: its host must get no request now.")]
    words: str
    error: str | None
    status: int | None = None
    redirects: int = 0
    final_url: str | None = None
    moved_to: Annotated[str | None, Field(description="Where permanent redirects led.")] = None
    tier: Annotated[str | None, Field(description="How tolerant its reader had to be.")] = None
    title: str | None = None
    entries: int = 0
    newest_at: datetime | None = None
    sure_dates: Annotated[int, Field(description="Entries whose date nobody had to guess.")] = 0
    full_bodies: Annotated[int, Field(description="Entries with their full text.")] = 0
    warnings: list[str] = []
    bytes: int = 0
    seconds: float = 0.0


class ChosenFeeds(BaseModel):
    """Which feeds to check: those that fit all that is given; all feeds if nothing is."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"tag": "news"}})

    feeds: Annotated[
        list[
            Annotated[StrictInt, Field(ge=1, lt=2**63)]
            | Annotated[StrictStr, Field(min_length=1, max_length=2000, pattern=PLAIN)]
        ]
        | None,
        Field(max_length=1000, description="By id or URL."),
    ] = None
    tag: Annotated[str | None, Field(max_length=MAX_TAG_CHARACTERS, pattern=PLAIN)] = None
    source_type: Annotated[str | None, Field(max_length=100, pattern=PLAIN)] = None
