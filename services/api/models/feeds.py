"""Feeds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from services.admin.feeds.retries import Polling
from services.admin.feeds.tags import MAX_TAG_CHARACTERS
from services.api.models.feed_health import HEALTH, FeedHealth
from services.api.models.freshness import EXAMPLE as FRESHNESS_EXAMPLE
from services.api.models.freshness import Freshness
from services.api.models.texts import PLAIN
from shared.wire.jobs import DateOrder

YEAR_SECONDS = 31_536_000

EXAMPLE: dict[str, JsonValue] = {
    "id": 1,
    "url": "https://news.example/feed",
    "name": "News",
    "tags": ["news", "europe/berlin"],
    "source_type": "feed",
    "politeness_group": "news.example",
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
    "health": HEALTH,
}

STATE_EXAMPLE: dict[str, JsonValue] = {
    **EXAMPLE,
    "config": {"headers": {"X-Key": "***"}, "timeout_seconds": 60.0},
    "site_url": "https://news.example/",
    "shortest_seconds": None,
    "longest_seconds": 86400.0,
    "items_per_day": 12.5,
    "ttl_seconds": 600.0,
    "skip_hours": [1, 2],
    "skip_days": [6],
    "claim_expires_at": None,
    "issued_at": None,
    "last_new_at": "2026-11-22T12:00:00Z",
    "moved_to": None,
    "moved_sightings": 0,
    "date_order": None,
    "date_order_seen": "day",
    "lying_since": None,
    "news_gap_seconds": 7200.0,
    "attempts": 336,
    "success_rate": 0.99,
    "mean_seconds": 0.4,
    "stale": False,
    "seconds_since_success": 600.0,
    "seconds_since_news": 600.0,
    "throttled_until": None,
    "pending_articles": 3,
    "freshness": FRESHNESS_EXAMPLE,
}

CHANGES_EXAMPLE: dict[str, JsonValue] = {"name": "News", "interval_seconds": 600, "add_tags": ["news"]}
NEW_EXAMPLE: dict[str, JsonValue] = {"url": "https://news.example/", "tags": ["news"], "check": None, "choose": "ask"}

Url = Annotated[str, Field(max_length=10_000, description="http(s), as it is polled; `feed://` stands for http.")]
Name = Annotated[str, Field(max_length=500, pattern=PLAIN, description="For people.")]
Tag = Annotated[str, Field(max_length=MAX_TAG_CHARACTERS)]
Tags = Annotated[list[Tag], Field(max_length=100, description="Such as `news` or `a/b`, a folder within a folder.")]
Priority = Annotated[int, Field(ge=-1000, le=1000, description="Higher goes first when many feeds are due.")]
Span = Annotated[float, Field(ge=1, le=YEAR_SECONDS, allow_inf_nan=False)]
SourceType = Annotated[str, Field(max_length=100, description="One of `GET /api/sources`.")]
Config = Annotated[
    dict[str, JsonValue],
    Field(
        max_length=100,
        description="As the schema of the source type has it: `headers`, `user`, `password`, `timeout_seconds`.",
    ),
]


class FeedRow(BaseModel):
    """A feed in a list. Credentials in URLs are masked."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    id: int
    url: str
    name: Annotated[str | None, Field(description="Given by a person, else the feed's own title.")]
    tags: list[str]
    source_type: str
    politeness_group: Annotated[str, Field(description="The host, which all limits are kept for.")]
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
    in_flight: bool
    failing: bool
    retry_at: Annotated[datetime | None, Field(description="When the feed leaves the retry queue.")]
    retry: Annotated[int | None, Field(description="The number of the next retry; 0: its host was not asked.")]
    retries: int | None
    health: Annotated[FeedHealth, Field(description="How it is, why, and what to do.")]


class Feed(FeedRow):
    """One feed, with its health over a week. Secrets are masked."""

    model_config = ConfigDict(json_schema_extra={"example": STATE_EXAMPLE})

    config: Annotated[dict[str, Any], Field(description="Its own settings; secrets are `***`.")]
    site_url: str | None
    shortest_seconds: Annotated[float | None, Field(description="Set by a person: the adaptive interval's bound.")]
    longest_seconds: float | None
    items_per_day: Annotated[float | None, Field(description="New articles that a day is expected to bring.")]
    ttl_seconds: Annotated[float | None, Field(description="What the feed asks for.")]
    skip_hours: Annotated[list[int], Field(description="The feed asks not to be polled then (UTC).")]
    skip_days: Annotated[list[int], Field(description="Monday is 0.")]
    claim_expires_at: datetime | None
    issued_at: datetime | None
    last_new_at: datetime | None
    moved_to: str | None
    moved_sightings: int
    date_order: Annotated[DateOrder | None, Field(description="What stands first in dates as 03/04/2026, as set.")]
    date_order_seen: Annotated[DateOrder | None, Field(description="The same, as its dates proved it.")]
    lying_since: Annotated[datetime | None, Field(description="Its server answers 304 although there is more.")]
    news_gap_seconds: float | None
    attempts: int
    success_rate: float | None
    mean_seconds: float | None
    stale: Annotated[bool | None, Field(description="It answers, and nothing new comes.")]
    seconds_since_success: float | None
    seconds_since_news: float | None
    throttled_until: Annotated[datetime | None, Field(description="Its host asked to be left alone.")]
    pending_articles: int
    freshness: Annotated[Freshness | None, Field(description="Null: an older API does not tell it.")] = None


class AddedFeed(Feed):
    """A feed that was added, or was there already and is unchanged."""

    model_config = ConfigDict(json_schema_extra={"example": STATE_EXAMPLE | {"is_new": True, "notes": []}})

    is_new: bool
    notes: Annotated[list[str], Field(description="What a person should know: where it was found, what failed.")]


class PolledFeed(Feed):
    """What becomes of a feed that is to be polled now."""

    model_config = ConfigDict(json_schema_extra={"example": STATE_EXAMPLE | {"polling": "due", "until": None}})

    polling: Annotated[
        Polling,
        Field(
            description="`due`: with the schedulers' next look. `in_flight`: it is being fetched. `retried`: its retry"
            " was brought forward. The others wait: its host asked for it (`throttled`) or can't be connected to"
            " (`unreachable`), or its job could not be found (`waiting`)."
        ),
    ]
    until: datetime | None


class RemovedFeed(BaseModel):
    """A feed that was removed."""

    model_config = ConfigDict(json_schema_extra={"example": {"id": 1, "pending_articles": 3}})

    id: int
    pending_articles: Annotated[int, Field(description="Removed with it.")]


class NewFeed(BaseModel):
    """A feed to add."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"example": NEW_EXAMPLE})

    url: Annotated[str, Field(max_length=10_000, description="The feed's, or that of a page that links to it.")]
    name: Name | None = None
    tags: Tags = []
    interval_seconds: Annotated[Span | None, Field(description="Poll exactly this often; null: adapt.")] = None
    shortest_seconds: Annotated[Span | None, Field(description="Adapt, but poll at most this often.")] = None
    longest_seconds: Annotated[Span | None, Field(description="Adapt, but poll at least this often.")] = None
    priority: Priority = 0
    source_type: SourceType = "feed"
    config: Config = {}
    check: Annotated[
        bool | None,
        Field(
            description="Whether to request the URL and look for a feed there; null: only if it does not look like a"
            " feed's. A feed that is found with that has had its first poll."
        ),
    ] = None
    found_at: Annotated[
        Annotated[str, Field(max_length=10_000)] | None,
        Field(description="The page that led to the URL: headers and credentials are kept within its origin only."),
    ] = None
    choose: Annotated[
        Literal["first", "ask"],
        Field(description="Of a page with several feeds: take the first, or answer 409 with all of them."),
    ] = "first"


class FeedChanges(BaseModel):
    """What is to change (RFC 7396): a member that is left out stays, and null takes a value away."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"example": CHANGES_EXAMPLE})

    url: Annotated[
        Url, Field(description="A new address. Headers and credentials are dropped if it is another origin's.")
    ] = ""
    name: Name | None = None
    tags: Tags | None = None
    add_tags: Tags = []
    remove_tags: Tags = []
    enabled: Annotated[bool, Field(description="Whether it is polled; true again forgets its failures.")] = True
    priority: Priority = 0
    interval_seconds: Annotated[Span | None, Field(description="null: adapt.")] = None
    shortest_seconds: Span | None = None
    longest_seconds: Span | None = None
    date_order: Annotated[
        DateOrder | None, Field(description="What stands first in dates as 03/04/2026; null: its dates tell.")
    ] = None
    source_type: SourceType = "feed"
    config: Annotated[
        Config | None, Field(description="Merged into its settings: null for a member, or for all, takes them away.")
    ] = None

    def given(self) -> dict[str, Any]:
        """Return what the request has."""
        return self.model_dump(exclude_unset=True)


class FeedUrl(BaseModel):
    """Which feed is looked for. URLs may hold passwords, so this one is no part of the request's."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"url": "https://news.example/feed"}}
    )

    url: Annotated[str, Field(max_length=10_000, pattern=PLAIN)]


class Attempt(BaseModel):
    """One fetch of a feed."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": 42,
                "started_at": "2026-11-22T12:00:00Z",
                "outcome": "fetched",
                "attempt": 0,
                "status": 200,
                "items_seen": 20,
                "items_new": 2,
                "elapsed_seconds": 0.4,
                "tier": "strict",
                "error": None,
            }
        }
    )

    id: int
    started_at: datetime
    outcome: str
    attempt: Annotated[int, Field(description="0: the first try; else the number of the retry.")]
    status: int | None
    items_seen: int
    items_new: int
    elapsed_seconds: float
    tier: Annotated[str | None, Field(description="How tolerant the reader had to be.")]
    error: str | None


class TagRow(BaseModel):
    """A tag, in one of its spellings."""

    model_config = ConfigDict(json_schema_extra={"example": {"tag": "news", "feeds": 12, "enabled": 11}})

    tag: str
    feeds: int
    enabled: Annotated[int, Field(description="Of these, how many are polled.")]
