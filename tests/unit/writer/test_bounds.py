from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.writer.schedule.bounds import (
    END,
    add_seconds,
    back_off,
    jitter_span,
    next_slot,
    phase_seconds,
    plan_fixed,
    plan_poll,
    server_lower_bound,
    skip_forbidden,
)
from shared.wire.outcomes import Outcome
from tests.factories import NOW

DAY = 86400.0
BOUNDS = (300.0, DAY)
FAILED = sorted(
    set(Outcome) - {Outcome.FETCHED, Outcome.NOT_MODIFIED, Outcome.UNCHANGED, Outcome.STALE, Outcome.SKIPPED}
)

moments = st.integers(31_536_000, 253_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
any_moments = st.datetimes(timezones=st.just(UTC))
ids = st.integers(0, 2**63)
waits = st.floats(-1e18, 1e18)
hours = st.sets(st.integers(-3, 30))
days = st.sets(st.integers(-3, 9))


@given(ids, moments, waits, st.floats(1, 1e5), st.floats(1, 1e7))
def test_a_planned_poll_is_within_its_bounds(
    feed_id: int, now: datetime, wait: float, shortest: float, longest: float
) -> None:
    bounds = shortest, max(shortest, longest)
    planned = plan_poll(feed_id, now=now, wait=wait, bounds=bounds)
    assert bounds[0] - 1e-3 <= (planned - now).total_seconds() <= bounds[1] + 1e-3
    assert planned.tzinfo is UTC


@given(ids, moments, waits, st.floats(-1e9, 1e9), hours, days)
def test_no_jitter_undercuts_a_lower_bound(
    feed_id: int, now: datetime, wait: float, asked: float, skip_hours: set[int], skip_days: set[int]
) -> None:
    lower_bound = add_seconds(now, asked)
    planned = plan_poll(
        feed_id, now=now, wait=wait, bounds=BOUNDS, lower_bound=lower_bound, skip_hours=skip_hours, skip_days=skip_days
    )
    assert planned >= lower_bound
    if not skip_hours and not skip_days:
        assert planned <= max(lower_bound, add_seconds(now, BOUNDS[1]))


@given(ids, moments, st.floats(300, DAY))
def test_jitter_is_at_most_a_tenth_and_ten_minutes(feed_id: int, now: datetime, wait: float) -> None:
    late = (plan_poll(feed_id, now=now, wait=wait, bounds=BOUNDS) - now).total_seconds() - wait
    assert -600.001 <= late <= min(wait / 10, 600) + 0.001
    if wait <= DAY - 600:
        assert late >= -0.001


@pytest.mark.parametrize(("wait", "span"), [(100, 10), (300, 30), (600, 60), (3600, 360), (6000, 600), (86400, 600)])
def test_the_span_of_the_jitter(wait: float, span: float) -> None:
    assert jitter_span(wait) == span


def test_feeds_and_polls_get_different_jitter_and_the_same_poll_the_same() -> None:
    def plan(feed_id: int, now: datetime = NOW) -> timedelta:
        return plan_poll(feed_id, now=now, wait=3600, bounds=BOUNDS) - now

    assert len({plan(feed_id) for feed_id in range(100)}) == 100
    assert plan(1) == plan(1) != plan(1, NOW + timedelta(seconds=1))


@given(ids, any_moments, st.floats(0, 1e300), any_moments, hours, days)
def test_the_ends_of_the_calendar_hold(
    feed_id: int, now: datetime, amount: float, lower_bound: datetime, skip_hours: set[int], skip_days: set[int]
) -> None:
    for planned in (
        plan_poll(feed_id, now=now, wait=amount, bounds=(1.0, amount), lower_bound=lower_bound, skip_hours=skip_hours),
        plan_fixed(feed_id, now=now, period=amount, lower_bound=lower_bound, skip_days=skip_days),
        next_slot(feed_id, after=now, period=amount),
        server_lower_bound([amount, None, -amount], now, lower_bound),
        skip_forbidden(now, skip_hours, skip_days),
    ):
        assert now <= planned <= END


@given(ids, moments, st.floats(1, 30 * DAY))
def test_slots_of_a_fixed_interval_neither_drift_nor_jitter(feed_id: int, now: datetime, period: float) -> None:
    slots = [plan_fixed(feed_id, now=now, period=period)]
    for late in (0.0, 0.1, 0.45, 0.0, 0.3):
        slots.append(plan_fixed(feed_id, now=slots[-1] + timedelta(seconds=late * period), period=period))
    for one, following in pairwise(slots):
        assert (following - one).total_seconds() == pytest.approx(period, abs=1e-2)
    assert period / 2 - 1e-3 <= (slots[0] - now).total_seconds() <= period * 1.5 + 1e-3


def test_the_phase_is_the_one_of_the_design() -> None:
    expected = int(hashlib.md5(b"feed-17").hexdigest(), 16) % 900_000 / 1000
    assert phase_seconds(17, 900) == expected
    first = next_slot(17, after=NOW, period=900)
    assert first.timestamp() % 900 == pytest.approx(expected, abs=1e-3)
    assert NOW < first <= NOW + timedelta(seconds=900)


def test_new_feeds_are_spread_over_their_first_period() -> None:
    minutes = [int((next_slot(n, after=NOW, period=600) - NOW).total_seconds() // 60) for n in range(1000)]
    assert all(60 < minutes.count(minute) < 140 for minute in range(10))


def test_a_lower_bound_moves_a_fixed_poll_to_a_later_slot_of_its_own() -> None:
    plain = plan_fixed(3, now=NOW, period=600)
    lower_bound = plain + timedelta(seconds=700)
    held = plan_fixed(3, now=NOW, period=600, lower_bound=lower_bound)
    assert held >= lower_bound
    assert (held - plain).total_seconds() == pytest.approx(1200, abs=1e-3)


def test_a_manual_poll_just_before_a_slot_takes_its_place() -> None:
    slot = next_slot(3, after=NOW, period=600)
    assert plan_fixed(3, now=slot - timedelta(seconds=10), period=600) == slot + timedelta(seconds=600)


@given(any_moments, hours, days)
def test_no_poll_in_skipped_hours_and_days(moment: datetime, skip_hours: set[int], skip_days: set[int]) -> None:
    found = skip_forbidden(moment, skip_hours, skip_days)
    closed_hours = {hour % 24 for hour in skip_hours if 0 <= hour <= 24}
    closed_days = {day for day in skip_days if 0 <= day <= 6}
    assert moment <= found <= add_seconds(moment, 8 * DAY)
    if moment.year < 9999:
        assert len(closed_hours) == 24 or found.hour not in closed_hours
        assert len(closed_days) == 7 or found.weekday() not in closed_days


@pytest.mark.parametrize(
    ("skip_hours", "skip_days", "expected"),
    [
        ((), (), "2026-11-20T23:30"),  # a Friday
        ((23,), (), "2026-11-21T00:00"),
        ((23, 24, 1), (), "2026-11-21T02:00"),
        ((), (4, 5, 6), "2026-11-23T00:00"),
        ((23,), (5, 6), "2026-11-23T00:00"),
        (range(24), (), "2026-11-20T23:30"),
        (range(1, 25), (4,), "2026-11-21T00:00"),
        ((), range(7), "2026-11-20T23:30"),
        ((99, -1), (7, -1), "2026-11-20T23:30"),
    ],
)
def test_skipped_hours_end_at_the_next_open_one(
    skip_hours: tuple[int, ...], skip_days: tuple[int, ...], expected: str
) -> None:
    moment = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
    assert skip_forbidden(moment, skip_hours, skip_days) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@given(ids, moments, st.floats(1, 30 * DAY), hours, days)
def test_fixed_polls_are_outside_of_skipped_hours_too(
    feed_id: int, now: datetime, period: float, skip_hours: set[int], skip_days: set[int]
) -> None:
    planned = plan_fixed(feed_id, now=now, period=period, skip_hours=skip_hours, skip_days=skip_days)
    assert skip_forbidden(planned, skip_hours, skip_days) == planned


def test_feeds_with_the_same_skipped_hours_do_not_come_back_together() -> None:
    night = datetime(2026, 11, 20, 1, tzinfo=UTC)
    planned = [plan_poll(feed_id, now=night, wait=3600, bounds=BOUNDS, skip_hours=range(6)) for feed_id in range(50)]
    assert len(set(planned)) == 50
    assert {moment.hour for moment in planned} == {6}


def test_server_lower_bounds_count_for_a_day_at_most() -> None:
    assert server_lower_bound([7200, None, 60], NOW, None) == NOW + timedelta(hours=2)
    assert server_lower_bound([1e300], NOW, None) == NOW + timedelta(days=1)
    assert server_lower_bound([float("nan"), -5], NOW, None) == NOW
    assert server_lower_bound([], NOW, NOW + timedelta(days=400)) == NOW + timedelta(days=1)
    assert server_lower_bound([60], NOW, NOW + timedelta(hours=5)) == NOW + timedelta(hours=5)


@given(ids, st.sampled_from(FAILED), st.floats(1, 2 * DAY), st.integers(-5, 10**6))
def test_a_back_off_is_never_under_the_usual_wait_nor_over_the_longest(
    feed_id: int, outcome: Outcome, usual: float, failures: int
) -> None:
    wait = back_off(failures, outcome, None, feed_id=feed_id, usual=usual, longest=DAY)
    assert min(usual, DAY) <= wait <= DAY


@pytest.mark.parametrize("outcome", FAILED)
def test_a_back_off_grows_up_to_a_day(outcome: Outcome) -> None:
    several = [back_off(n, outcome, None, feed_id=1, usual=300, longest=DAY) for n in range(1, 16)]
    assert all(later >= 0.75 * earlier for earlier, later in pairwise(several))
    assert several[-1] >= 0.75 * DAY
    assert several[0] <= 21600


def test_errors_that_no_retry_mends_back_off_longer_than_passing_ones() -> None:
    def first(outcome: Outcome, error_class: str | None = None) -> float:
        return back_off(1, outcome, error_class, feed_id=1, usual=60, longest=DAY)

    soft, missing, refused = (
        first(Outcome.SOFT_ERROR), first(Outcome.HARD_ERROR, "http_404"), first(Outcome.HARD_ERROR, "http_403")
    )  # fmt: skip
    assert soft < missing < refused < first(Outcome.BLOCKED)
