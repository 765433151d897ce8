"""Messages for tests, with everything filled in that a test does not care about."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import Entry, FeedFetched

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
CLAIM = UUID("00000000-0000-4000-8000-000000000001")


def make_job(**changes: Any) -> FetchFeed:
    return FetchFeed(
        **{
            "feed_id": 1,
            "url": "http://news.example/feed",
            "group": "news.example",
            "claim_id": CLAIM,
            "not_after": NOW + timedelta(hours=1),
            "queued_at": NOW,
            **changes,
        }
    )


def make_result(**changes: Any) -> FeedFetched:
    return FeedFetched(
        **{
            "feed_id": 1,
            "url": "http://news.example/feed",
            "claim_id": CLAIM,
            "outcome": Outcome.FETCHED,
            "final": True,
            "status": 200,
            "queued_at": NOW,
            "started_at": NOW,
            "elapsed_seconds": 0.25,
            **changes,
        }
    )


def make_entry(number: int = 1, **changes: Any) -> Entry:
    url, title, body = f"http://news.example/{number}", f"Article {number}", f"The text of article {number}."
    fields: dict[str, Any] = {"url": url, "title": title, "body": body, **changes}
    return Entry(
        **{
            "entry_id": fields["url"],
            "content_quality": "full",
            "published_at": NOW - timedelta(minutes=number),
            "md5": hashlib.md5((fields["url"] + fields["title"]).encode()).hexdigest(),
            "content_hash": hashlib.sha256(fields["body"].encode()).hexdigest(),
            **fields,
        }
    )
