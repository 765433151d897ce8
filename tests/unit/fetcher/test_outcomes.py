from __future__ import annotations

from datetime import timedelta

import pytest

from services.fetcher.outcomes import SOFT_STATUSES, outcome_of_status
from services.fetcher.retries import RetryRules, decide_retry
from shared.wire.outcomes import Outcome
from tests.factories import NOW, make_job, make_result

RULES = RetryRules(max_retries=12, retry_delay_seconds=3600, claim_seconds=600)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, None),
        (203, None),
        (226, None),
        (204, Outcome.NOT_A_FEED),
        (304, Outcome.HARD_ERROR),
        (400, Outcome.HARD_ERROR),
        (401, Outcome.HARD_ERROR),
        (404, Outcome.HARD_ERROR),
        (410, Outcome.GONE),
        (501, Outcome.HARD_ERROR),
        *[(status, Outcome.SOFT_ERROR) for status in sorted(SOFT_STATUSES)],
    ],
)
def test_a_status_means_one_outcome(status: int, outcome: Outcome | None) -> None:
    assert outcome_of_status(status) is outcome


def test_a_304_is_not_modified_only_if_it_was_asked_for() -> None:
    assert outcome_of_status(304, conditional=True) is Outcome.NOT_MODIFIED


def test_a_soft_error_is_retried_with_a_renewed_claim() -> None:
    result, again = decide_retry(make_job(), make_result(outcome=Outcome.SOFT_ERROR), RULES, NOW)
    until = NOW + timedelta(seconds=4200)
    assert (result.outcome, result.final, result.claim_until) == (Outcome.SOFT_ERROR, False, until)
    assert again is not None
    assert (again.attempt, again.not_after, again.claim_id) == (1, until, make_job().claim_id)


def test_after_twelve_retries_it_gives_up() -> None:
    result, again = decide_retry(make_job(attempt=11), make_result(outcome=Outcome.SOFT_ERROR), RULES, NOW)
    assert again is not None
    result, again = decide_retry(again, make_result(outcome=Outcome.SOFT_ERROR), RULES, NOW)
    assert (result.outcome, result.final, again) == (Outcome.GAVE_UP, True, None)


def test_a_skip_burns_no_attempt() -> None:
    result, again = decide_retry(make_job(attempt=3), make_result(outcome=Outcome.SKIPPED), RULES, NOW)
    assert again is not None
    assert (result.final, again.attempt, again.skips) == (False, 3, 1)


def test_a_wait_longer_than_the_retry_delay_ends_the_job_as_throttled() -> None:
    soft = make_result(outcome=Outcome.SOFT_ERROR, status=429, not_before=NOW + timedelta(hours=3))
    result, again = decide_retry(make_job(), soft, RULES, NOW)
    assert (result.outcome, result.final, again) == (Outcome.THROTTLED, True, None)


@pytest.mark.parametrize("outcome", [Outcome.FETCHED, Outcome.HARD_ERROR, Outcome.GONE, Outcome.STALE])
def test_everything_else_ends_at_once(outcome: Outcome) -> None:
    result = make_result(outcome=outcome)
    assert decide_retry(make_job(), result, RULES, NOW) == (result, None)
