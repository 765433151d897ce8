"""An article as a consumer is given it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

AWAY = (
    psycopg.OperationalError,  # connection lost or refused, shutdown, deadlock, time-out
    psycopg.InterfaceError,  # the connection is closed
    psycopg.errors.ReadOnlySqlTransaction,  # a fail-over: connecting anew finds the primary
)
"""The server is away or can't serve now: trying again is right, and harmless with every call of ours."""


@dataclass(frozen=True, slots=True)
class Article:
    """A pending article that was claimed: nobody else is given it until `claimed_until`."""

    md5: str
    feed_id: int
    entry_id: str
    url: str
    title: str
    body: str
    html: str | None
    """The body as HTML that is safe to show, where fetchers keep it (FEEDMILL_KEEP_HTML)."""
    content_quality: str
    content_hash: str
    published_at: datetime | None
    updated_at: datetime | None
    author: str | None
    categories: list[str]
    enclosures: list[dict[str, Any]]
    language: str | None
    flags: list[str]
    duplicate_of: str | None
    """md5 of the article that came first under another address, where the writer marks them (FEEDMILL_DUPLICATES)."""
    revision: int
    """Grows with every change of the text: don't let a lower one overwrite a higher one in your index."""
    retry_count: int
    """Failures reported of this text."""
    expiries: int
    """Leases on this text that ran out unanswered."""
    created_at: datetime
    claimed_until: datetime
    lease_id: UUID
