"""Pure: the findings of one attempt, before they become the message `FeedFetched`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from services.fetcher.http.client import HttpResponse
from services.fetcher.http.hints import max_age_seconds, retry_after_seconds
from services.fetcher.outcomes import WAIT_STATUSES
from services.fetcher.sources import Reading
from shared.observability.secrets import mask_credentials
from shared.wire.jobs import DateOrder, FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import Entry, FeedFetched, FeedInfo, ServerHints

ERROR_CHARACTERS = 500
"""Longer error texts are cut. They are masked before: a cut could hide the `@` behind a password."""


@dataclass(frozen=True)
class Findings:
    """The findings of one attempt. Each field becomes the field of `FeedFetched` with the same name."""

    outcome: Outcome
    status: int | None = None
    error_class: str | None = None
    error: str | None = None
    final_url: str | None = None
    moved_to: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    body_hash: str | None = None
    hints: ServerHints = ServerHints()  # noqa: RUF009  # immutable
    not_before: datetime | None = None
    wire_bytes: int = 0
    decoded_bytes: int = 0
    tier: str | None = None
    feed: FeedInfo = FeedInfo()  # noqa: RUF009  # immutable
    entries: tuple[Entry, ...] = ()
    known: bytes = b""
    digests: bytes = b""
    date_order: DateOrder | None = None

    def failed(self, outcome: Outcome, error_class: str, error: str) -> Findings:
        """Return the same with a failure as its outcome."""
        return replace(self, outcome=outcome, error_class=error_class, error=error)

    def without_validators(self) -> Findings:
        """Return the same without the body's validators, so that the server sends the body again next time."""
        return replace(self, etag=None, last_modified=None)

    def with_reading(self, reading: Reading, body_hash: str) -> Findings:
        """Return the same with the contents of the body."""
        hints = ServerHints(
            max_age_seconds=self.hints.max_age_seconds,
            retry_after_seconds=self.hints.retry_after_seconds,
            ttl_seconds=reading.hints.ttl_seconds,
            skip_hours=reading.hints.skip_hours,
            skip_days=reading.hints.skip_days,
        )
        return replace(
            self,
            body_hash=body_hash,
            hints=hints,
            tier=reading.tier,
            feed=reading.feed,
            entries=reading.entries,
            known=reading.known,
            digests=reading.digests,
            date_order=reading.date_order,
        )

    def to_result(self, job: FetchFeed, started_at: datetime, elapsed_seconds: float) -> FeedFetched:
        """Return the message. It is final until `decide_retry` says otherwise."""
        error = self.error and mask_credentials(self.error)[:ERROR_CHARACTERS]
        fetched = FeedFetched(
            feed_id=job.feed_id,
            url=job.url,
            claim_id=job.claim_id,
            reason=job.reason,
            probe=job.probe,
            attempt=job.attempt,
            queued_at=job.queued_at,
            final=True,
            started_at=started_at,
            elapsed_seconds=elapsed_seconds,
            **(vars(self) | {"error": error}),
        )
        return fetched.traced(job.span)


def read_response(response: HttpResponse, outcome: Outcome, moved_to: str | None, now: datetime) -> Findings:
    """Return the findings in the status and the headers of a response with this outcome."""
    headers, wait = response.headers, None
    if response.status in WAIT_STATUSES:
        wait = retry_after_seconds(headers.get("retry-after"), now)
    max_age = max_age_seconds(headers.get("cache-control"), headers.get("expires"), headers.get("date"))
    return Findings(
        outcome,
        response.status,
        final_url=response.url,
        moved_to=moved_to,
        etag=headers.get("etag"),
        last_modified=headers.get("last-modified"),
        hints=ServerHints(max_age_seconds=max_age, retry_after_seconds=wait),
        not_before=now + timedelta(seconds=wait) if wait is not None else None,
        wire_bytes=response.wire_bytes,
        decoded_bytes=len(response.body),
    )
