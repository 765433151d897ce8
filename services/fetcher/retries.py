"""Pure: decides whether a job is retried, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched


@dataclass(frozen=True)
class RetryRules:
    """The limits of retries. Spans are in seconds."""

    max_retries: int = 12
    retry_delay_seconds: float = 3600.0
    claim_seconds: float = 3600.0


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
