"""What consumers send and get."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from services.api.models.chosen import these_or_all
from services.api.models.labels import (
    LABELS,
    Confidence,
    DetectedLanguage,
    Entities,
    Kind,
    Original,
    Score,
    Topic,
)
from services.api.models.texts import PLAIN

MOST = 1000
"""Articles of one call."""

MD5: dict[str, JsonValue] = {"md5": "9e107d9d372bb6826bd81d3542a419d6"}
LEASE: dict[str, JsonValue] = {"lease_id": "5f0c1d3e-7a52-4c55-9d0f-2c1b6a3e8f10"}

CLAIMED: dict[str, JsonValue] = {
    **MD5,
    "feed_id": 1,
    "entry_id": "https://news.example/1",
    "url": "https://news.example/1",
    "title": "The title",
    "body": "The whole text.",
    "html": None,
    "content_quality": "full",
    "content_hash": "4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865",
    "published_at": "2026-11-22T12:00:00Z",
    "updated_at": None,
    "author": "A. Writer",
    "categories": ["europe"],
    "enclosures": [{"url": "https://news.example/1.mp3", "type": "audio/mpeg", "length": 1000}],
    "language": "en",
    "flags": [],
    **LABELS,
    "revision": 0,
    "retry_count": 0,
    "expiries": 0,
    "created_at": "2026-11-22T12:05:00Z",
    "claimed_until": "2026-11-22T12:15:00Z",
    **LEASE,
}

Md5 = Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="The article's key.")]
Hash = Annotated[str, Field(max_length=200, pattern=PLAIN)]
# An error's text may quote anything; PostgreSQL takes no NUL.
Text = Annotated[str, Field(max_length=100_000), AfterValidator(lambda text: text.replace("\0", ""))]
LeaseSeconds = Annotated[
    float, Field(ge=0.1, le=86_400, allow_inf_nan=False, description="Nobody else is given the articles for so long.")
]
ByHand = Annotated[
    Annotated[str, Field(max_length=1000), AfterValidator(lambda text: text.replace("\0", ""))] | None,
    Field(description="Why a person does it; with it the audit log names the call."),
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ClaimRequest(_Body):
    """How many articles, and for how long."""

    model_config = ConfigDict(json_schema_extra={"example": {"max": 50, "lease_seconds": 300, "max_expiries": 5}})

    max: Annotated[int, Field(ge=1, le=MOST, description="So many at most.")] = 50
    lease_seconds: LeaseSeconds = 300.0
    max_expiries: Annotated[
        int, Field(ge=1, le=1000, description="An article whose lease ran out so often is dead instead.")
    ] = 5


class ClaimedArticle(BaseModel):
    """An article with its lease. Every text is a stranger's."""

    model_config = ConfigDict(json_schema_extra={"example": CLAIMED})

    md5: str
    feed_id: int
    entry_id: str
    url: str
    title: str
    body: str
    html: Annotated[str | None, Field(description="The body as HTML that is safe to show, where it is kept.")]
    content_quality: str
    content_hash: Annotated[str, Field(description="Of this text; an acknowledgement counts for it alone.")]
    published_at: datetime | None
    updated_at: datetime | None
    author: str | None
    categories: list[str]
    enclosures: list[dict[str, Any]]
    language: Annotated[str | None, Field(description="As the feed says.")]
    flags: list[str]
    duplicate_of: Original
    revision: Annotated[int, Field(description="Grows with every change of the text.")]
    retry_count: Annotated[int, Field(description="Failures reported of this text.")]
    expiries: Annotated[int, Field(description="Leases on this text that ran out.")]
    created_at: datetime
    claimed_until: Annotated[datetime, Field(description="By the database's clock.")]
    lease_id: UUID
    detected_language: DetectedLanguage
    language_confidence: Confidence
    topic: Topic
    topic_confidence: Confidence
    entities: Entities
    duplicate_kind: Kind
    duplicate_score: Score


class Claimed(BaseModel):
    """The articles, in the order in which they came; none: there is nothing to do."""

    model_config = ConfigDict(json_schema_extra={"example": {"articles": [CLAIMED]}})

    articles: list[ClaimedArticle]


class Done(_Body):
    """An article that is done."""

    md5: Md5
    content_hash: Annotated[
        Hash | None, Field(description="Of the text that is done; null: of the one that was claimed last.")
    ] = None


class Held(_Body):
    """An article, and the lease under which it was claimed."""

    md5: Md5
    lease_id: Annotated[
        UUID | None, Field(description="Given with all articles of a call, or with none: then it counts for anybody's.")
    ] = None


class AckRequest(_Body):
    """Articles that are done."""

    model_config = ConfigDict(json_schema_extra={"example": {"articles": [MD5 | {"content_hash": "4355a46b19d3"}]}})

    articles: Annotated[list[Done], Field(max_length=MOST)]
    reason: ByHand = None


class Acked(BaseModel):
    """What became of them."""

    model_config = ConfigDict(json_schema_extra={"example": {"acknowledged": 1, "still_pending": []}})

    acknowledged: Annotated[int, Field(description="So many were removed. The others are below, or were gone before.")]
    still_pending: Annotated[
        list[str], Field(description="These stay, because their text has changed: they are given out again.")
    ]


class _OfHeld(_Body):
    articles: Annotated[list[Held], Field(max_length=MOST)]

    @model_validator(mode="after")
    def _all_or_none(self) -> _OfHeld:
        if len({article.lease_id is None for article in self.articles}) > 1:
            raise ValueError("give lease_id with all articles, or with none")
        return self

    @property
    def md5s(self) -> list[str]:
        """The articles' keys."""
        return [article.md5 for article in self.articles]

    @property
    def leases(self) -> list[UUID] | None:
        """Each lease once; None: none was given."""
        return list({article.lease_id for article in self.articles if article.lease_id}) or None


class FailRequest(_OfHeld):
    """Articles that could not be worked on."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"articles": [MD5 | LEASE], "error": "the model refused it", "max_failures": 5}}
    )

    error: Annotated[Text, Field(description="What went wrong; the first 1,000 characters are stored.")] = ""
    retry_after_seconds: Annotated[
        float | None,
        Field(ge=0, le=31_536_000, allow_inf_nan=False, description="Null: 1, 5, 25, 125 minutes, then 6 hours."),
    ] = None
    max_failures: Annotated[int, Field(ge=1, le=1000, description="An article that failed so often is dead.")] = 5


class Failure(BaseModel):
    """An article whose failure was counted."""

    md5: str
    retry_count: int
    retry_at: Annotated[datetime | None, Field(description="When it is given out again; null: it is dead.")]


class Failed(BaseModel):
    """What was counted; the others are somebody else's by now, or gone."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"failed": [MD5 | {"retry_count": 1, "retry_at": "2026-11-22T12:11:00Z"}]}}
    )

    failed: list[Failure]


class RenewRequest(_OfHeld):
    """Articles whose lease shall run from now."""

    model_config = ConfigDict(json_schema_extra={"example": {"articles": [MD5 | LEASE], "lease_seconds": 300}})

    lease_seconds: LeaseSeconds = 300.0


class Renewed(BaseModel):
    """The keys of those that are still held; the others are somebody else's by now, or gone."""

    model_config = ConfigDict(json_schema_extra={"example": {"held": [MD5["md5"]]}})

    held: list[str]


class ReleaseRequest(_OfHeld):
    """Articles that others may have at once."""

    model_config = ConfigDict(json_schema_extra={"example": {"articles": [MD5 | LEASE]}})

    reason: ByHand = None


class Released(BaseModel):
    """How many were held."""

    model_config = ConfigDict(json_schema_extra={"example": {"released": 1}})

    released: int


class BuryRequest(_Body):
    """Articles that no consumer shall be given."""

    model_config = ConfigDict(json_schema_extra={"example": {"md5s": [MD5["md5"]], "reason": "not news"}})

    md5s: Annotated[list[Md5], Field(max_length=MOST)]
    reason: Annotated[Text, Field(description="The first 1,000 characters are stored.")] = "by hand"


class Buried(BaseModel):
    """How many were moved to the dead ones."""

    model_config = ConfigDict(json_schema_extra={"example": {"buried": 1}})

    buried: int


class ReviveRequest(_Body):
    """Dead articles: their keys, or all."""

    model_config = ConfigDict(json_schema_extra={"example": {"md5s": [MD5["md5"]]}, **these_or_all("md5s")})

    md5s: Annotated[list[Md5], Field(max_length=MOST)] = []
    all: Annotated[bool, Field(description="In place of keys.")] = False

    @model_validator(mode="after")
    def _one_of_both(self) -> ReviveRequest:
        if bool(self.md5s) == self.all:
            raise ValueError("say which: keys of dead articles, or `all`")
        return self


class Revived(BaseModel):
    """How many are pending again; the others were not dead, or their feed was removed."""

    model_config = ConfigDict(json_schema_extra={"example": {"revived": 1}})

    revived: int
