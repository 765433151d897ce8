"""Pure: a feed's row as the writer knows it, the new items of a result, and the settings of the rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from services.writer.schedule.publication_rate import Limits, PublicationRate
from shared.wire.jobs import DateOrder
from shared.wire.results import Entry


@dataclass(frozen=True)
class Rules:
    """The settings of the feed-state rules; spans in seconds."""

    min_poll_seconds: float = 120.0
    max_poll_seconds: float = 86_400.0
    poll_worth_seconds: float = Limits().poll_worth
    """In article-seconds (publication_rate.py)."""
    gone_span_seconds: float = 3600.0
    moved_span_seconds: float = 86400.0
    moved_sightings: int = 3


@dataclass
class FeedState:
    """The columns of `feeds` that an attempt may change, named as in the table.

    Only `advance` changes one, and that is a copy.
    """

    id: int
    url: str
    claim_id: UUID | None
    claim_expires_at: datetime | None
    issued_at: datetime | None
    enabled: bool
    disabled_reason: str | None
    next_fetch_at: datetime
    interval_seconds: float | None
    shortest_seconds: float | None
    longest_seconds: float | None
    poll_seconds: float | None
    pace: PublicationRate
    """The publication rate."""
    items_per_day: float | None
    ttl_seconds: float | None
    skip_hours: Sequence[int]
    skip_days: Sequence[int]
    etag: str | None
    last_modified: str | None
    validators_url: str | None
    body_hash: str | None
    cursor_at: datetime | None
    failures: int
    failing_since: datetime | None
    """The first failure since the last success."""
    last_attempt_at: datetime | None
    last_success_at: datetime | None
    last_new_at: datetime | None
    last_read_at: datetime | None
    last_outcome: str | None
    last_error: str | None
    gone_since: datetime | None
    moved_to: str | None
    moved_since: datetime | None
    moved_sightings: int
    moved_at: datetime | None
    """When a permanent redirect became the URL."""
    duplicate_of: int | None
    """The feed that brings the same articles."""
    ambiguous_since: datetime | None
    """Since when articles come whose date may be read in two ways."""
    date_order_seen: DateOrder | None
    """What stands first in its numeric dates, as one of them proved."""
    probed_at: datetime | None
    lying_since: datetime | None
    news_gap_seconds: float | None
    """The usual time between two polls that bring new items."""
    title: str | None
    site_url: str | None
    language: str | None
    resumed_at: datetime | None = None
    """When a person enabled it last."""
    has_own_headers: bool = False
    """Whether headers or credentials are sent with its requests. Only a person sets them."""


AMBIGUOUS = "date_ambiguous"
"""The flag of an entry whose date may be read in two ways."""

DOUBTFUL = frozenset({"date_guessed", "date_clamped", AMBIGUOUS})
"""Flags of an entry whose date does not tell when it came."""


def sure_dates(entries: Iterable[Entry]) -> list[datetime]:
    """Return the entries' dates, but for guessed ones."""
    return [entry.published_at for entry in entries if entry.published_at and not DOUBTFUL.intersection(entry.flags)]


@dataclass(frozen=True)
class NewItems:
    """The articles of a result that were unknown."""

    count: int = 0
    published: Sequence[datetime] = ()
    """Their dates, as far as they are known and not guessed."""
    full: int = 0
    """How many have their whole text."""
    duplicates: int = 0
    """How many came before."""
    duplicates_by_title: int = 0
    duplicates_by_text: int = 0
    enriched: int = 0
    """How many an enricher saw."""
    with_language: int = 0
    """How many have a text that tells its language."""
    with_topic: int = 0
