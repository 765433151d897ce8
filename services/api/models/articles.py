"""Articles as people look at them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from services.api.models.claims import CLAIMED, MD5
from services.api.models.labels import Confidence, DetectedLanguage, Entities, Kind, Original, Score, Topic

_ROW: dict[str, JsonValue] = {
    name: CLAIMED[name]
    for name in (
        "md5",
        "feed_id",
        "title",
        "url",
        "retry_count",
        "expiries",
        "revision",
        "published_at",
        "language",
        "detected_language",
        "language_confidence",
        "topic",
        "topic_confidence",
        "duplicate_of",
        "duplicate_kind",
        "duplicate_score",
        "flags",
        "content_hash",
        "created_at",
    )
}


class _Row(BaseModel):
    md5: str
    feed_id: int
    title: str
    url: str
    retry_count: Annotated[int, Field(description="Failures reported of this text.")]
    expiries: Annotated[int, Field(description="Leases on this text that ran out.")]
    revision: int
    published_at: datetime | None
    language: Annotated[str | None, Field(description="As the feed says.")]
    detected_language: DetectedLanguage
    language_confidence: Confidence
    topic: Topic
    topic_confidence: Confidence
    duplicate_of: Original
    duplicate_kind: Kind
    duplicate_score: Score
    flags: list[str]
    content_hash: str
    created_at: datetime


class PendingArticle(_Row):
    """A pending article in a list."""

    model_config = ConfigDict(
        json_schema_extra={"example": _ROW | {"state": "new", "claimed_until": None, "last_error": None}}
    )

    state: Literal["new", "claimed", "lease expired", "waiting for retry", "back"]
    claimed_until: Annotated[datetime | None, Field(description="Nobody is given it before; null: it is new.")]
    last_error: str | None


class DeadArticle(_Row):
    """A dead article in a list."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": _ROW | {"state": "dead", "failed_at": "2026-11-22T13:00:00Z", "error": "the model refused it"}
        }
    )

    state: Literal["dead"]
    failed_at: datetime
    error: str


class Article(_Row):
    """All columns of one article. A dead one has no lease; only it has `error` and `failed_at`."""

    model_config = ConfigDict(json_schema_extra={"example": CLAIMED | {"state": "claimed", "last_error": None}})

    state: Literal["new", "claimed", "lease expired", "waiting for retry", "back", "dead"]
    entry_id: str
    body: str
    html: str | None
    content_quality: str
    updated_at: datetime | None
    author: str | None
    categories: list[str]
    enclosures: list[dict[str, Any]]
    entities: Entities
    claimed_until: datetime | None = None
    lease_id: UUID | None = None
    claimed_hash: str | None = None
    last_error: str | None = None
    error: str | None = None
    failed_at: datetime | None = None


class ArticleCounts(BaseModel):
    """How many articles there are, by what they wait for."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "pending": 120,
                "claimable": 100,
                "claimed": 15,
                "waiting_for_retry": 5,
                "lease_expired": 0,
                "dead": 2,
                "oldest_seconds": 90.5,
            }
        }
    )

    pending: int
    claimable: int
    claimed: int
    waiting_for_retry: int
    lease_expired: Annotated[int, Field(description="Of the claimable ones: their consumer went silent.")]
    dead: int
    oldest_seconds: Annotated[float | None, Field(description="Since the oldest pending article came.")]


class LedgerRow(BaseModel):
    """An article that came once, whatever became of it."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                **MD5,
                "feed_id": 1,
                "url": "https://news.example/1",
                "first_seen_at": "2026-11-22T12:05:00Z",
                "last_seen_at": "2026-11-22T18:05:00Z",
                "updates": 0,
                "duplicate_of": None,
            }
        }
    )

    md5: str
    feed_id: int
    url: str
    first_seen_at: datetime
    last_seen_at: datetime
    updates: Annotated[int, Field(description="So often its text has changed.")]
    duplicate_of: str | None
