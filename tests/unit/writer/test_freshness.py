"""Which articles count for freshness, how long they took, and how exact the percentiles are."""

from __future__ import annotations

import math
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.writer.freshness.buckets import GROWTH, bucket_of, edge_of, percentile
from services.writer.freshness.rules import MARGIN, OLD, PAUSE, Arrival, find_polls, judge
from shared.wire.results import Entry
from tests.factories import NOW, make_entry, make_result
from tests.unit.writer.test_feed_state import feed

POLL_BEFORE = NOW - timedelta(hours=1)
STARTED = NOW - timedelta(seconds=5)
"""The fetch began then; its row is written at NOW."""

SPANS = st.floats(min_value=0.0, max_value=3e7)


def known_feed(**changes: Any) -> Any:
    """Return a feed that was read a day ago and found unchanged an hour ago."""
    read_at = NOW - timedelta(days=1)
    state = {"last_read_at": read_at, "last_success_at": POLL_BEFORE, "body_hash": "a hash", "poll_seconds": 3600.0}
    return feed(**{**state, **changes})


def arrival(entry: Entry, *, result: dict[str, Any] | None = None, **state: Any) -> Arrival:
    fetched = make_result(**{"started_at": STARTED, "queued_at": STARTED, "elapsed_seconds": 1.0, **(result or {})})
    return judge(1, find_polls(fetched, known_feed(**state), NOW), entry, NOW)


def dated(age: timedelta, **changes: Any) -> Entry:
    return make_entry(published_at=NOW - age, **changes)


def test_an_article_dated_between_two_polls_is_sure() -> None:
    assert arrival(dated(timedelta(minutes=40))) == Arrival(1, "sure", 2400.0)


def test_a_304_counts_as_the_poll_before() -> None:
    found = arrival(dated(timedelta(hours=3)), last_read_at=NOW - timedelta(days=2))
    assert found == Arrival(1, "unsure", 3600.0)


def test_a_304_that_may_be_untrue_does_not() -> None:
    read_at, entry = NOW - timedelta(hours=5), dated(timedelta(hours=3))
    of_a_liar = arrival(entry, last_read_at=read_at, lying_since=NOW - timedelta(days=9))
    of_a_probe = arrival(entry, last_read_at=read_at, result={"probe": True})
    assert of_a_liar == of_a_probe == Arrival(1, "sure", 3 * 3600.0)


def test_a_date_somewhat_before_the_poll_before_may_be_true() -> None:
    age = timedelta(hours=1) + MARGIN
    assert arrival(dated(age)).kind == "sure"
    assert arrival(dated(age + timedelta(seconds=1))) == Arrival(1, "unsure", 3600.0)


@pytest.mark.parametrize(
    "entry",
    [
        make_entry(published_at=None),
        dated(timedelta(minutes=40), flags=("date_guessed",)),
        dated(timedelta(minutes=40), flags=("date_ambiguous",)),
        dated(timedelta(days=2, hours=1)),
    ],
    ids=["none", "guessed", "ambiguous", "before the poll before"],
)
def test_an_unsure_date_counts_with_all_the_time_since_the_poll_before(entry: Entry) -> None:
    assert arrival(entry) == Arrival(1, "unsure", 3600.0)


def test_a_date_that_is_only_a_day_is_unsure() -> None:
    midnight = NOW.replace(hour=0)
    found = arrival(make_entry(published_at=midnight), last_success_at=midnight - timedelta(hours=1))
    assert found == Arrival(1, "unsure", 13 * 3600.0)


@pytest.mark.parametrize(
    "entry",
    [dated(-timedelta(minutes=3)), dated(timedelta(seconds=2)), dated(timedelta(), flags=("date_clamped",))],
    ids=["after now", "after the fetch", "clamped"],
)
def test_a_date_after_the_fetch_is_no_zero_but_unsure(entry: Entry) -> None:
    assert arrival(entry) == Arrival(1, "ahead", 3600.0)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"last_read_at": None, "last_success_at": None, "body_hash": None}, "first_reading"),
        ({"body_hash": None}, "first_reading"),  # its URL or source type was changed
        ({"resumed_at": NOW - timedelta(minutes=5)}, "paused"),
        ({"last_success_at": STARTED - PAUSE - timedelta(seconds=1)}, "paused"),
        ({"last_success_at": STARTED}, "out_of_order"),
    ],
)
def test_articles_that_nobody_could_have_had_sooner_are_left_out(state: dict[str, Any], reason: str) -> None:
    assert arrival(dated(timedelta(minutes=40)), **state) == Arrival(1, reason, None)  # type: ignore[arg-type]


def test_a_feed_that_is_polled_once_a_week_is_not_paused() -> None:
    found = arrival(dated(timedelta(days=6)), last_success_at=NOW - timedelta(days=7), interval_seconds=7 * 86_400.0)
    assert found == Arrival(1, "sure", 6 * 86_400.0)


def test_a_pause_that_ended_before_the_poll_before_does_not_matter() -> None:
    assert arrival(dated(timedelta(minutes=40)), resumed_at=POLL_BEFORE - timedelta(minutes=5)).kind == "sure"


def test_an_old_article_that_is_listed_again_and_a_duplicate_are_left_out() -> None:
    assert arrival(dated(timedelta(hours=1, seconds=1) + OLD)).kind == "old_date"
    assert judge(1, "duplicate", dated(timedelta(minutes=40)), NOW) == Arrival(1, "duplicate", None)


def test_a_fetchers_slow_clock_makes_no_poll_before_come_later() -> None:
    found = arrival(dated(timedelta(minutes=40)), result={"started_at": NOW - timedelta(hours=9)})
    assert found == Arrival(1, "sure", 2400.0)


@given(age=st.integers(-100_000, 400_000), gap=st.integers(6, 400_000), flags=st.sampled_from([(), ("date_guessed",)]))
def test_what_counts_took_from_nothing_to_the_time_between_the_polls(age: int, gap: int, flags: tuple[str]) -> None:
    found = arrival(dated(timedelta(seconds=age), flags=flags), last_success_at=NOW - timedelta(seconds=gap))
    longest = gap + MARGIN.total_seconds()
    assert found.seconds is None or 0 <= found.seconds <= longest


@given(SPANS)
def test_a_span_is_in_its_bucket(seconds: float) -> None:
    bucket = bucket_of(seconds)
    assert seconds <= edge_of(bucket)
    assert bucket == 0 or seconds > edge_of(bucket - 1)


@given(st.lists(SPANS, min_size=1), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_percentile_is_never_too_small_and_at_most_a_tenth_too_large(spans: list[float], share: float) -> None:
    true = sorted(spans)[math.ceil(share * len(spans)) - 1]
    found = percentile(Counter(map(bucket_of, spans)), share)
    assert found is not None
    assert true <= found <= max(true, 1.0) * GROWTH * (1 + 1e-9)


@given(st.lists(st.lists(SPANS)), st.sampled_from([0.5, 0.95, 0.99]))
def test_sums_of_histograms_in_any_order_have_the_percentiles_of_the_whole(parts: list[list[float]], p: float) -> None:
    histograms = [Counter(map(bucket_of, part)) for part in parts]
    whole = Counter(bucket_of(seconds) for part in parts for seconds in part)
    forwards, backwards = sum(histograms, Counter()), sum(reversed(histograms), Counter())
    assert percentile(forwards, p) == percentile(backwards, p) == percentile(whole, p)


@given(st.lists(st.tuples(SPANS, SPANS), min_size=1), st.sampled_from([0.5, 0.95, 0.99]))
def test_with_upper_bounds_a_percentile_is_an_upper_bound(pairs: list[tuple[float, float]], p: float) -> None:
    true = percentile(Counter(bucket_of(seconds) for seconds, _ in pairs), p)
    bound = percentile(Counter(bucket_of(seconds + more) for seconds, more in pairs), p)
    assert true is not None
    assert bound is not None
    assert true <= bound


def test_nothing_has_no_percentile() -> None:
    assert percentile({}, 0.5) is None
    assert percentile({3: 0}, 0.5) is None
