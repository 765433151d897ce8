from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.writer.schedule.publication_rate import (
    WINDOW_SWING,
    Limits,
    PublicationRate,
    items_per_day,
    next_poll,
    observe,
)

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
LIMITS = Limits(poll_worth=60.0, shortest=60.0, longest=86400.0)

any_moments = st.datetimes(timezones=st.just(UTC))
counts = st.integers(0, 10**9)
polls = st.tuples(any_moments, counts, st.none() | counts, st.lists(any_moments, max_size=8))


def begin(*published: datetime, now: datetime = MONDAY, entries: int = 20) -> PublicationRate:
    return observe(PublicationRate(), now=now, new_items=entries, items_seen=entries, published=published)


def poll(
    rate: PublicationRate, now: datetime, new_items: int = 0, published: Sequence[datetime] = ()
) -> PublicationRate:
    return observe(rate, now=now, new_items=new_items, items_seen=20, published=published)


def backlog(*, every: timedelta, count: int = 20, newest: timedelta = timedelta(0)) -> list[datetime]:
    # Dates that look like people's: not on the full hour.
    return [MONDAY - newest - every * n - timedelta(seconds=17) for n in range(count)]


def wait(rate: PublicationRate, now: datetime | None = None, limits: Limits = LIMITS) -> float:
    return next_poll(rate, now=now or rate.seen_at or MONDAY, limits=limits)


def publish(
    rate: PublicationRate, now: datetime, days: int, per_day: int, hours: range = range(24)
) -> tuple[PublicationRate, datetime]:
    """Poll every hour; on each day `per_day` items come, evenly over `hours`."""
    for hour in range(days * 24):
        here = now + timedelta(hours=hour + 1)
        came = per_day // len(hours) if (here - timedelta(hours=1)).hour in hours else 0
        rate = poll(rate, here, came)
    return rate, now + timedelta(days=days)


def test_at_a_constant_rate_the_wait_is_the_square_root_that_costs_least() -> None:
    rate = PublicationRate(seen_at=MONDAY, recent_items=239.0, recent_days=9.5)
    assert items_per_day(rate) == pytest.approx(24.0)
    assert wait(rate) == pytest.approx(math.sqrt(2 * 60 * 3600), rel=1e-6)
    dearer = Limits(poll_worth=240.0, shortest=60.0, longest=86400.0)
    assert wait(rate, limits=dearer) == pytest.approx(2 * wait(rate), rel=1e-6)


def test_the_backlogs_dates_are_a_prior() -> None:
    hourly, daily = begin(*backlog(every=timedelta(hours=1))), begin(*backlog(every=timedelta(days=1)))
    assert 8 < items_per_day(hourly) < 24
    assert 0.8 < items_per_day(daily) < 1.5
    assert wait(hourly) < wait(daily)


@pytest.mark.parametrize(
    "made_up",
    [
        [],
        [MONDAY] * 20,
        [MONDAY, MONDAY - timedelta(minutes=5)] * 10,
        [MONDAY + timedelta(days=n) for n in range(1, 20)],
    ],
)
def test_dates_that_were_made_up_are_no_prior(made_up: list[datetime]) -> None:
    assert begin(*made_up) == begin()


def test_days_without_a_time_say_nothing_of_the_hour() -> None:
    by_day = begin(*[MONDAY - timedelta(days=n) for n in range(20)])
    assert not any(by_day.rhythm)
    assert items_per_day(by_day) == pytest.approx(1.0, rel=0.4)


def test_a_feed_whose_last_item_is_years_old_is_polled_rarely_from_the_first_day() -> None:
    assert wait(begin(*backlog(every=timedelta(days=1), newest=timedelta(days=900)))) > 6 * 3600


def test_an_unknown_feed_starts_in_between() -> None:
    assert 600 < wait(begin()) < 7200


def test_more_items_mean_shorter_waits() -> None:
    waits = [wait(publish(begin(), MONDAY, 7, per_day)[0]) for per_day in (0, 24, 96, 480, 4800)]
    assert waits == sorted(waits, reverse=True)
    assert len(set(waits)) == 5


def test_silence_makes_waits_longer_and_one_item_ends_that() -> None:
    rate, now = publish(begin(*backlog(every=timedelta(hours=2))), MONDAY, 3, 24)
    busy = wait(rate)
    waits = []
    for day in range(1, 60):
        rate = poll(rate, now + timedelta(days=day))
        waits.append(wait(rate))
    assert all(later > earlier for earlier, later in pairwise(waits[::7]))
    assert waits[-1] > 6 * busy
    assert rate.empty_polls == 59
    assert wait(poll(rate, now + timedelta(days=60), 1)) < waits[-1] / 2


def test_a_feed_of_office_hours_is_left_alone_at_night() -> None:
    rate, now = publish(begin(), MONDAY, 21, 36, range(8, 17))
    noon, night = now + timedelta(hours=12), now + timedelta(hours=21)
    assert wait(rate, night) > 4 * wait(rate, noon)


def test_a_silent_weekend_is_learnt_and_an_unseen_one_is_not_presumed() -> None:
    rate, now = begin(), MONDAY
    waits = []
    for _ in range(4):
        waits.append(
            wait(rate, MONDAY + timedelta(days=5, hours=12)) / wait(rate, MONDAY + timedelta(days=1, hours=12))
        )
        for day in range(7):
            rate, now = publish(rate, now, 1, 96 if day < 5 else 0)
    assert waits[0] == pytest.approx(1.0)
    waits.append(wait(rate, now + timedelta(days=5, hours=12)) / wait(rate, now + timedelta(days=1, hours=12)))
    assert waits[-1] > 2.5


def test_a_weekend_that_no_poll_has_seen_is_not_taken_for_silent() -> None:
    rate, now = publish(begin(), MONDAY, 3, 96)
    assert wait(rate, now + timedelta(days=2)) < 1.5 * wait(rate, now)


def test_a_poll_is_made_while_even_a_burst_fits_into_the_window() -> None:
    patient = Limits(poll_worth=1e15, shortest=1.0, longest=86400.0)
    waits = []
    for window in (5, 10, 20, 50, 100):
        rate = PublicationRate(seen_at=MONDAY, recent_items=2399.0, recent_days=9.5, window_items=window)
        waits.append(wait(rate, limits=patient))
        expected = waits[-1] * 240 / 86400
        assert expected + WINDOW_SWING * math.sqrt(expected) == pytest.approx(window, rel=1e-6)
    assert waits == sorted(waits)


def test_a_304_keeps_what_is_known_of_the_window() -> None:
    rate = observe(begin(entries=15), now=MONDAY + timedelta(hours=1), new_items=0, items_seen=None)
    assert (rate.window_items, rate.empty_polls) == (15, 1)


def test_the_counts_of_the_rhythm_fade_and_fit_into_a_smallint() -> None:
    rate = begin()
    for half_day in range(1, 240):
        rate = poll(rate, MONDAY + timedelta(hours=12 * half_day), 3000)
    assert max(rate.rhythm) <= 32767
    assert rate.rhythm_since
    assert rate.rhythm_since > MONDAY + timedelta(days=30)


@given(st.lists(polls, max_size=6), any_moments, st.floats(0, 1e9), st.floats(0, 1e7), st.floats(0, 1e7))
def test_whatever_was_seen_the_wait_is_within_its_limits(
    seen: list[tuple[datetime, int, int | None, list[datetime]]],
    now: datetime,
    worth: float,
    shortest: float,
    longest: float,
) -> None:
    rate = PublicationRate()
    for moment, new_items, items_seen, published in seen:
        rate = observe(rate, now=moment, new_items=new_items, items_seen=items_seen, published=published)
        assert 0 <= rate.recent_items < math.inf
        assert 0 <= rate.silent_days < math.inf
        assert len(rate.rhythm) == 31
        assert all(0 <= slot <= 32767 for slot in rate.rhythm)
        assert rate.seen_at is None or rate.seen_at.tzinfo is UTC
    found = next_poll(rate, now=now, limits=Limits(worth, shortest, longest))
    assert shortest <= found <= max(shortest, longest)


@given(st.lists(st.tuples(st.floats(60, 1e6), st.integers(0, 50)), max_size=30))
def test_the_clock_may_go_backwards(seen: list[tuple[float, int]]) -> None:
    rate, now = begin(), MONDAY
    for number, (seconds, new_items) in enumerate(seen):
        now += timedelta(seconds=-seconds if number % 3 else seconds)
        before = rate.seen_at
        rate = poll(rate, now, new_items, [now])
        assert before
        assert rate.seen_at == max(before, now)


@given(st.floats(0.01, 1e6), st.floats(0.01, 1e6), st.floats(1, 1e4), st.floats(1, 1e4))
def test_dearer_polls_and_slower_feeds_never_shorten_the_wait(
    items: float, more: float, worth: float, dearer: float
) -> None:
    slow, fast = (PublicationRate(seen_at=MONDAY, recent_items=n, recent_days=10.0) for n in (items, items + more))
    cheap, dear = (Limits(price, 1.0, 1e7) for price in (worth, worth + dearer))
    assert wait(fast, limits=cheap) <= wait(slow, limits=cheap) * (1 + 1e-9)
    assert wait(fast, limits=cheap) <= wait(fast, limits=dear) * (1 + 1e-9)


def test_a_publication_rate_is_small() -> None:
    assert len(fields(PublicationRate)) <= 10
