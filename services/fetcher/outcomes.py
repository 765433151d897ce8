"""Pure: decides the outcome of an attempt from its status, failure or parse error, and whether the job is retried.

The table in `shared/wire/outcomes.py` explains the outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from services.fetcher.http.failure import Failure
from services.fetcher.parse.model import NotAFeed, ParseError
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched

SOFT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 527, 530})
"""Statuses of a server that may work again in an hour."""

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
    """The limits of retries. Spans are in seconds."""

    max_retries: int = 12
    retry_delay_seconds: float = 3600.0
    claim_seconds: float = 3600.0


def outcome_of_failure(failure: Failure) -> Outcome:
    """Return the outcome of an attempt that got no response."""
    return _FAILURES[failure]


def outcome_of_status(status: int, *, conditional: bool = False) -> Outcome | None:
    """Return the outcome that a status means by itself. None for 200 and most other 2xx: the body decides.

    A 304 to a request that was not `conditional` is an error: it refers to no earlier response.
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


def outcome_of_parse_error(error: ParseError, *, was_feed: bool = False) -> Outcome:
    """Return the outcome of a body that can't be read.

    If the URL `was_feed` before, a body of another kind is probably temporary: an error page with status 200, or the
    portal of a hotel.
    """
    if not isinstance(error, NotAFeed):
        return Outcome.UNPARSEABLE
    return Outcome.SOFT_ERROR if was_feed else Outcome.NOT_A_FEED


def decide_retry(
    job: FetchFeed, fetched: FeedFetched, rules: RetryRules, now: datetime
) -> tuple[FeedFetched, FetchFeed | None]:
    """Return the result as it goes to the next stage, and the job to retry, if any. This function decides all of it.

    - A soft error is retried after the retry delay. After `max_retries` attempts the feed is `gave_up`.
    - A skipped job comes back after the retry delay, too. It counts as a skip, not as an attempt.
    - If the server asks for a longer wait than the retry delay, the job ends as `throttled`, and does not wait in the
      queue.
    - Any other outcome is final.
    """
    if fetched.outcome.is_final:
        return fetched, None
    wait = (fetched.not_before - now).total_seconds() if fetched.not_before else 0.0
    is_skip = not fetched.outcome.is_attempt
    if wait > rules.retry_delay_seconds:
        error_class = Outcome.THROTTLED.value if is_skip else fetched.error_class
        return fetched.model_copy(update={"outcome": Outcome.THROTTLED, "error_class": error_class}), None
    if is_skip:  # its host asked for this wait, not the feed's own response
        fetched = fetched.model_copy(update={"not_before": None})
    attempt, skips = job.attempt + (not is_skip), job.skips + is_skip
    if attempt > rules.max_retries or skips > rules.max_retries:
        return give_up(fetched), None
    until = now + timedelta(seconds=rules.retry_delay_seconds + rules.claim_seconds)
    # No probe any more: a server in trouble, or one that asked us to slow down, is asked conditionally.
    changes = {"attempt": attempt, "skips": skips, "not_after": until, "resume": None, "probe": False}
    return fetched.model_copy(update={"final": False, "claim_until": until}), job.model_copy(update=changes)


def give_up(fetched: FeedFetched) -> FeedFetched:
    """Return a result as the last one of its job: no retry follows."""
    return fetched.model_copy(update={"outcome": Outcome.GAVE_UP, "final": True, "claim_until": None})
