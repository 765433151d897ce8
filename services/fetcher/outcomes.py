"""Pure: what an attempt means. From a status or a failure to one outcome, and from there to what happens next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from services.fetcher.http.failure import Failure
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched

SOFT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 527, 530})
"""Statuses of a server that may be well again in an hour (DESIGN: soft errors)."""

WAIT_STATUSES = frozenset({429, 503})
"""Statuses on which Retry-After is honoured (RFC 9110, RFC 6585)."""

_FAILURES = {
    Failure.CONNECT: Outcome.SOFT_ERROR,
    Failure.TIMEOUT: Outcome.SOFT_ERROR,
    Failure.PROTOCOL: Outcome.SOFT_ERROR,
    Failure.TOO_LARGE: Outcome.TOO_LARGE,
    Failure.BLOCKED: Outcome.BLOCKED,
    Failure.REDIRECT: Outcome.HARD_ERROR,
    Failure.BAD_URL: Outcome.HARD_ERROR,
}


@dataclass(frozen=True)
class RetryRules:
    """Spans in seconds."""

    max_retries: int = 12
    retry_delay_seconds: float = 3600.0
    claim_seconds: float = 3600.0


def outcome_of_failure(failure: Failure) -> Outcome:
    """Return the outcome of an attempt that got no answer."""
    return _FAILURES[failure]


def outcome_of_status(status: int, *, conditional: bool = False) -> Outcome | None:
    """Return the outcome that a status means by itself; None for 200 and its kin, whose body decides.

    A 304 to a request that was not `conditional` tells nothing: there is no earlier answer that it could stand for.
    """
    if status == 304:
        return Outcome.NOT_MODIFIED if conditional else Outcome.HARD_ERROR
    if 200 <= status < 300 and status not in {204, 205}:
        return None
    if status in {204, 205}:
        return Outcome.NOT_A_FEED
    if status == 410:
        return Outcome.GONE
    if status in SOFT_STATUSES:
        return Outcome.SOFT_ERROR
    return Outcome.HARD_ERROR


def decide_retry(
    job: FetchFeed, fetched: FeedFetched, rules: RetryRules, now: datetime
) -> tuple[FeedFetched, FetchFeed | None]:
    """Return the result as it goes to the writer, and the job that is to be retried, if any.

    A soft error is retried after the retry delay, up to `max_retries` times, then it is `gave_up`. A wait that the
    server asks for and that is longer than the retry delay is not kept in the queue: the job ends as `throttled`.
    """
    if fetched.outcome.is_final:
        return fetched, None
    if not fetched.outcome.is_attempt:
        return _come_back(job, fetched, rules, now, job.attempt, job.skips + 1)
    wait = (fetched.not_before - now).total_seconds() if fetched.not_before else 0.0
    if wait > rules.retry_delay_seconds:
        return fetched.model_copy(update={"outcome": Outcome.THROTTLED}), None
    return _come_back(job, fetched, rules, now, job.attempt + 1, job.skips)


def _come_back(
    job: FetchFeed, fetched: FeedFetched, rules: RetryRules, now: datetime, attempt: int, skips: int
) -> tuple[FeedFetched, FetchFeed | None]:
    if attempt > rules.max_retries or skips > rules.max_retries:
        return fetched.model_copy(update={"outcome": Outcome.GAVE_UP, "final": True}), None
    until = now + timedelta(seconds=rules.retry_delay_seconds + rules.claim_seconds)
    # No probe any more: a server in trouble, or one that asked us to slow down, is asked conditionally.
    changes = {"attempt": attempt, "skips": skips, "not_after": until, "resume": None, "probe": False}
    again = job.model_copy(update=changes)
    return fetched.model_copy(update={"final": False, "claim_until": until}), again
