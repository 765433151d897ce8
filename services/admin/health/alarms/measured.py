"""Pure: what was measured at the servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from services.admin.health.diagnosis import QueueLevel


@dataclass(frozen=True)
class Contact:
    """Whether a server answers this process."""

    trouble: str | None = None
    """Why it does not; None: it does."""
    since: datetime | None = None
    """When it was first seen not to answer."""
    last_at: datetime | None = None
    """When it last answered; None: not since this process asks."""


@dataclass(frozen=True)
class BrokerState:
    """What the broker says."""

    levels: Mapping[str, QueueLevel | None]
    """By queue; None: it is not declared."""
    alarm: str | None = None
    """Why it takes no messages, in its own words: `low on memory`, `low on disk`."""


@dataclass(frozen=True)
class DatabaseState:
    """What PostgreSQL says of itself."""

    schema: int
    """The last migration; 0: there are no tables."""
    needs_schema: int
    """The migration that this version needs."""
    is_read_only: bool = False
    is_standby: bool = False
    is_full: bool = False
    """Its disk takes no temporary file."""
    ahead_seconds: float = 0.0
    """By how much this machine's clock is ahead of the database's."""
    log_ahead_seconds: float = 0.0
    """By how much the newest attempt in the fetch log is ahead of the database's clock, by which it was written."""


@dataclass(frozen=True)
class FeedsInUse:
    """How many feeds fare how, of those that are polled and were asked already."""

    asked: int = 0
    failing: int = 0


@dataclass(frozen=True)
class Failures:
    """Attempts that failed lately, the newest ones if there are many."""

    hosts: int = 0
    """All hosts that were asked, those that answered well among them."""
    causes: Mapping[str, int] = field(default_factory=dict)
    """How many hosts failed for each cause (`services.admin.health.alarms.causes`)."""


@dataclass(frozen=True)
class Waiting:
    """Articles that wait for a consumer."""

    articles: int = 0
    """By PostgreSQL's statistics."""
    longest_seconds: float = 0.0
    """How long the oldest has been claimable."""
