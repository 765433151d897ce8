"""One attempt at one feed, on a worker thread: fetch, judge, read. Blocking code, no queue, no scoreboard."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from services.fetcher.client import Answer, FeedClient, Request
from services.fetcher.failure import Failure, FetchFailed
from services.fetcher.hints import max_age_seconds, retry_after_seconds
from services.fetcher.parse import NotAFeed, ParsedFeed, ParseError, parse_feed
from services.fetcher.scoreboard import Report
from services.fetcher.trail import Trail
from services.fetcher.verdict import WAIT_STATUSES, outcome_of_failure, outcome_of_status
from shared.messages import FeedFetched, FetchFeed, Outcome, ServerHints
from shared.politeness import politeness_group

ERROR_CHARACTERS = 500


@dataclass(frozen=True)
class Attempt:
    """What one attempt brought: the result for the writer, the report for the scoreboard."""

    fetched: FeedFetched
    report: Report


@dataclass(frozen=True)
class Clock:
    """Both clocks as functions: aware wall time, and monotonic seconds."""

    now: Callable[[], datetime]
    monotonic: Callable[[], float]


@dataclass
class _Findings:
    """What is known so far; becomes the result."""

    outcome: Outcome
    fields: dict[str, Any] = field(default_factory=dict)


class FeedReader:
    """Fetches and reads feeds; safe to use from many threads."""

    def __init__(self, client: FeedClient, clock: Clock, *, max_entries: int) -> None:
        self._client = client
        self._clock = clock
        self._max_entries = max_entries

    def attempt(self, job: FetchFeed) -> Attempt:
        """Return how the feed was found. A failing feed is a fact, not an exception."""
        started_at, start = self._clock.now(), self._clock.monotonic()
        failure: Failure | None = None
        latency, asked = None, job.url
        try:
            trail, answer = follow_redirects(self._client, job)
            latency, asked = self._clock.monotonic() - start, answer.url
            findings = self._judge(job, answer, started_at)
            findings.fields["moved_to"] = trail.moved_to
        except FetchFailed as error:
            failure, asked = error.failure, error.url or job.url
            findings = _Findings(
                outcome_of_failure(failure),
                {"status": error.status, "error_class": failure.value, "error": str(error)[:ERROR_CHARACTERS]},
            )
        elapsed = self._clock.monotonic() - start
        fetched = FeedFetched(
            **result_identity(job),
            outcome=findings.outcome,
            final=True,
            started_at=started_at,
            elapsed_seconds=elapsed,
            **findings.fields,
        )
        own = asked == job.url or politeness_group(asked) == politeness_group(job.url)
        return Attempt(fetched, _report(fetched, failure, elapsed if latency is None else latency, own_group=own))

    def _judge(self, job: FetchFeed, answer: Answer, now: datetime) -> _Findings:
        facts = _facts(answer, now)
        outcome = outcome_of_status(answer.status, conditional=_is_conditional(job, answer.url))
        if outcome is not None:
            if not outcome.is_success:
                facts |= {"error_class": f"http_{answer.status}", "error": f"the server answered {answer.status}"}
            return _Findings(outcome, facts)
        body_hash = hashlib.sha256(answer.body).hexdigest()
        if body_hash == job.body_hash:
            return _Findings(Outcome.UNCHANGED, facts | {"body_hash": body_hash})
        return self._read(answer, facts, body_hash, now)

    def _read(self, answer: Answer, facts: dict[str, Any], body_hash: str, now: datetime) -> _Findings:
        try:
            parsed = parse_feed(
                answer.body,
                url=answer.url,
                content_type=answer.headers.get("content-type"),
                now=now,
                max_entries=self._max_entries,
            )
        except ParseError as error:
            outcome = Outcome.NOT_A_FEED if isinstance(error, NotAFeed) else Outcome.UNPARSEABLE
            # Without its articles the body's validators must not be kept, or we would never see it again.
            facts |= {"etag": None, "last_modified": None}
            return _Findings(
                outcome, facts | {"error_class": type(error).__name__, "error": str(error)[:ERROR_CHARACTERS]}
            )
        return _Findings(Outcome.FETCHED, facts | {"body_hash": body_hash} | _contents(parsed, facts["hints"]))


def follow_redirects(client: FeedClient, job: FetchFeed) -> tuple[Trail, Answer]:
    """Return the answer at the end of the redirects, each hop at once.

    Raises:
        FetchFailed: see `Failure`.
    """
    trail = Trail(job.url)
    while True:
        own = _is_conditional(job, trail.url)
        answer = client.get(Request(trail.url, *((job.etag, job.last_modified) if own else ())))
        if answer.redirect is None:
            return trail, answer
        trail = trail.follow(answer.status, answer.redirect)


def _is_conditional(job: FetchFeed, url: str) -> bool:
    """Whether the job's validators belong to `url` and are sent to it."""
    return job.validators_url == url and bool(job.etag or job.last_modified)


def result_identity(job: FetchFeed) -> dict[str, Any]:
    """Return the fields of a result that it has from its job."""
    return {
        "feed_id": job.feed_id,
        "url": job.url,
        "claim_id": job.claim_id,
        "reason": job.reason,
        "attempt": job.attempt,
        "queued_at": job.queued_at,
    }


def unattempted(job: FetchFeed, outcome: Outcome, now: datetime, error: str) -> FeedFetched:
    """Return the result of a job that never reached its server (`stale`, `skipped`)."""
    return FeedFetched(
        **result_identity(job),
        outcome=outcome,
        final=True,
        started_at=now,
        elapsed_seconds=0.0,
        error_class=outcome.value,
        error=error,
    )


def _facts(answer: Answer, now: datetime) -> dict[str, Any]:
    headers = answer.headers
    wait = retry_after_seconds(headers.get("retry-after"), now) if answer.status in WAIT_STATUSES else None
    return {
        "status": answer.status,
        "final_url": answer.url,
        "etag": headers.get("etag"),
        "last_modified": headers.get("last-modified"),
        "hints": ServerHints(
            max_age_seconds=max_age_seconds(headers.get("cache-control"), headers.get("expires"), headers.get("date")),
            retry_after_seconds=wait,
        ),
        "not_before": now + timedelta(seconds=wait) if wait is not None else None,
        "wire_bytes": answer.wire_bytes,
        "decoded_bytes": len(answer.body),
    }


def _contents(parsed: ParsedFeed, hints: ServerHints) -> dict[str, Any]:
    of_feed = parsed.hints.model_dump(include={"ttl_seconds", "skip_hours", "skip_days"})
    return {
        "tier": parsed.tier,
        "feed": parsed.feed,
        "entries": parsed.entries,
        "hints": hints.model_copy(update=of_feed),
    }


def _report(fetched: FeedFetched, failure: Failure | None, latency: float, *, own_group: bool) -> Report:
    """Return what the job's group is to learn. What happened on another host behind a redirect is not its fault."""
    return Report(
        latency_seconds=latency,
        connected=not (own_group and failure is Failure.CONNECT),
        succeeded=fetched.outcome.is_success,
        throttled=own_group and fetched.status == 429,
        retry_after_seconds=fetched.hints.retry_after_seconds,
    )
