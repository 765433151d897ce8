"""Fetches by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from services.api.models.labels import Kind, Score
from shared.wire.results import ContentQuality

_ROW: dict[str, JsonValue] = {
    "id": "5f0c3b0e-8a68-4c3e-9d5b-0c5f6f9f2a11",
    "feed_id": 1,
    "dry_run": True,
    "status": "done",
    "requested_by": "desk fm_7Qx2",
    "queued_at": "2026-11-22T12:00:00Z",
    "deadline_at": "2026-11-22T12:05:00Z",
    "started_at": "2026-11-22T12:00:01Z",
    "finished_at": "2026-11-22T12:00:02Z",
    "outcome": "fetched",
    "fetched": 20,
    "new": 1,
    "changed": 0,
    "known": 19,
    "error": None,
}
_ENTRY: dict[str, JsonValue] = {
    "md5": "0cc175b9c0f1b6a831c399e269772661",
    "url": "https://news.example/1",
    "title": "One",
    "published_at": "2026-11-22T11:58:00Z",
    "content_quality": "summary",
    "flags": [],
    "state": "new",
    "detected_language": None,
    "topic": None,
    "duplicate_of": "9e107d9d372bb6826bd81d3542a419d6",
    "duplicate_kind": "address",
    "duplicate_score": None,
}


class FireRequest(BaseModel):
    """How to fetch."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"example": {"dry_run": True}})

    dry_run: Annotated[
        bool,
        Field(description="Show what would be written, and write nothing. As often as one likes, also if disabled."),
    ] = False


class FireRow(BaseModel):
    """A fetch by hand in a list."""

    model_config = ConfigDict(json_schema_extra={"example": _ROW})

    id: UUID
    feed_id: int
    dry_run: bool
    status: Literal["running", "done", "error"]
    requested_by: str
    queued_at: datetime
    deadline_at: Annotated[datetime, Field(description="Without a result until then it is an error.")]
    started_at: datetime | None
    finished_at: datetime | None
    outcome: Annotated[str | None, Field(description="Of the first attempt; null: no result has come.")]
    fetched: Annotated[int | None, Field(description="Entries that the feed lists.")]
    new: int | None
    changed: int | None
    known: int | None
    error: Annotated[str | None, Field(description="Why it did not work, and when it is retried.")]


class FireEntry(BaseModel):
    """An entry that a dry run read."""

    md5: str
    url: str
    title: str
    published_at: datetime | None
    content_quality: ContentQuality
    flags: list[str]
    state: Annotated[Literal["new", "changed", "known"], Field(description="What it would be.")]
    detected_language: Annotated[str | None, Field(description="Null: no enricher saw it, as in most dry runs.")] = None
    topic: str | None = None
    duplicate_of: Annotated[str | None, Field(description="The article that came before with the same story.")]
    duplicate_kind: Kind = None
    duplicate_score: Score = None


class Fire(FireRow):
    """A fetch by hand."""

    model_config = ConfigDict(json_schema_extra={"example": {**_ROW, "entries": [_ENTRY]}})

    entries: Annotated[
        list[FireEntry] | None, Field(description="Of a dry run, the first 500; null: of a real one, or none has come.")
    ]
