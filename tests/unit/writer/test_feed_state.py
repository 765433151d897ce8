from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from services.writer.schedule.advance import advance
from services.writer.schedule.feed_state import FeedState, NewItems, Rules
from services.writer.schedule.publication_rate import PublicationRate
from shared.wire.outcomes import Outcome
from shared.wire.results import ServerHints
from tests.factories import CLAIM, NOW, make_entry, make_result

RULES = Rules()


def feed(**changes: Any) -> FeedState:
    state = FeedState(
        id=1,
        url="http://news.example/feed",
        claim_id=CLAIM,
        claim_expires_at=NOW + timedelta(hours=1),
        issued_at=NOW - timedelta(seconds=5),
        enabled=True,
        disabled_reason=None,
        next_fetch_at=NOW - timedelta(minutes=1),
        interval_seconds=None,
        shortest_seconds=None,
        longest_seconds=None,
        poll_seconds=None,
        pace=PublicationRate(),
        items_per_day=None,
        ttl_seconds=None,
        skip_hours=[],
        skip_days=[],
        etag='"old"',
        last_modified=None,
        validators_url="http://news.example/feed",
        body_hash=None,
        cursor_at=None,
        failures=0,
        failing_since=None,
        last_attempt_at=None,
        last_success_at=None,
        last_new_at=None,
        last_read_at=None,
        last_outcome=None,
        last_error=None,
        gone_since=None,
        moved_to=None,
        moved_since=None,
        moved_sightings=0,
        moved_at=None,
        duplicate_of=None,
        ambiguous_since=None,
        date_order_seen=None,
        probed_at=None,
        lying_since=None,
        news_gap_seconds=None,
        title=None,
        site_url=None,
        language=None,
    )
    return replace(state, **changes)


def after(state: FeedState, *, new_items: int = 0, now: datetime = NOW, **result: Any) -> FeedState:
    result = {"started_at": now, **result}
    return advance(state, make_result(**result), new=NewItems(new_items), now=now, rules=RULES)


def seconds_until_next(state: FeedState, now: datetime = NOW) -> float:
    return (state.next_fetch_at - now).total_seconds()


def test_a_final_result_ends_the_claim() -> None:
    state = after(feed())
    assert (state.claim_id, state.claim_expires_at) == (None, None)


def test_a_result_of_another_claim_changes_nothing() -> None:
    state = feed(claim_id=uuid4())
    assert after(state, etag='"new"') is state


def test_a_soft_error_renews_the_claim_and_leaves_the_rest_for_the_retry() -> None:
    until = NOW + timedelta(hours=2)
    state = after(feed(), outcome=Outcome.SOFT_ERROR, final=False, claim_until=until, error="timeout")
    assert (state.claim_id, state.claim_expires_at) == (CLAIM, until)
    assert (state.failures, state.etag, state.last_error) == (0, '"old"', "timeout")


def test_a_skip_renews_the_claim_and_is_no_attempt() -> None:
    until = NOW + timedelta(hours=2)
    state = after(feed(), outcome=Outcome.SKIPPED, final=False, claim_until=until)
    assert (state.claim_expires_at, state.last_attempt_at) == (until, None)


def test_a_stale_job_leaves_its_feed_due() -> None:
    state = after(feed(), outcome=Outcome.STALE)
    assert (state.claim_id, state.next_fetch_at, state.last_attempt_at) == (None, feed().next_fetch_at, None)


def test_a_feed_whose_jobs_come_too_late_is_issued_less_and_less_often_and_keeps_its_place() -> None:
    state, now, pauses = feed(next_fetch_at=NOW), NOW + timedelta(seconds=2), list[float]()
    for _ in range(7):
        claimed = replace(state, claim_id=CLAIM, claim_expires_at=now + timedelta(hours=1), issued_at=now)
        state = advance(claimed, make_result(outcome=Outcome.STALE), new=NewItems(), now=now, rules=Rules())
        assert state.claim_expires_at is not None
        pauses.append((state.claim_expires_at - now).total_seconds())
        now = state.claim_expires_at
    assert pauses == [120, 122, 244, 488, 900, 900, 900]
    assert (state.next_fetch_at, state.claim_id, state.issued_at, state.failures) == (NOW, None, None, 0)


def test_a_feed_that_a_batch_did_not_reach_is_due_at_once() -> None:
    state = after(feed(), outcome=Outcome.STALE, reason="batch")
    assert (state.claim_id, state.claim_expires_at, state.next_fetch_at) == (None, None, feed().next_fetch_at)


@pytest.mark.parametrize("interval", [None, 600.0])
@pytest.mark.parametrize("outcome", [Outcome.FETCHED, Outcome.NOT_MODIFIED, Outcome.HARD_ERROR, Outcome.THROTTLED])
@pytest.mark.parametrize("slow", [timedelta(days=-400), timedelta(hours=-2), timedelta(hours=2), timedelta(days=400)])
def test_a_fetchers_wrong_clock_neither_hammers_a_feed_nor_loses_it(
    interval: float | None, outcome: Outcome, slow: timedelta
) -> None:
    known = feed(interval_seconds=interval, poll_seconds=600.0)
    state = after(known, outcome=outcome, started_at=NOW - slow, queued_at=NOW - timedelta(seconds=5))
    right = after(known, outcome=outcome)
    assert abs((state.next_fetch_at - right.next_fetch_at).total_seconds()) <= 600
    assert seconds_until_next(state) > 60
    assert state.last_attempt_at is not None
    assert abs((state.last_attempt_at - NOW).total_seconds()) <= 5


@pytest.mark.parametrize("slow", [timedelta(hours=-2), timedelta(hours=2)])
def test_the_moments_of_a_wrong_clock_are_taken_as_spans(slow: timedelta) -> None:
    then, hour = NOW - slow, timedelta(hours=1)
    times: dict[str, Any] = {"queued_at": NOW - timedelta(seconds=5), "started_at": then}
    state = after(feed(), outcome=Outcome.SOFT_ERROR, final=False, claim_until=then + 2 * hour, **times)
    assert state.claim_expires_at is not None
    assert abs((state.claim_expires_at - NOW - 2 * hour).total_seconds()) <= 5
    state = after(feed(), outcome=Outcome.THROTTLED, not_before=then + hour, **times)
    assert 3595 <= seconds_until_next(state) <= 4205


def test_a_result_that_waited_for_its_writer_counts_from_when_it_was_fetched() -> None:
    hours = timedelta(hours=3)
    state = after(feed(issued_at=NOW - hours), started_at=NOW - hours, queued_at=NOW - hours)
    assert state.last_success_at == NOW - hours


def test_validators_and_body_hash_come_from_a_body_that_was_read() -> None:
    state = after(feed(), etag=None, last_modified="x", body_hash="h", final_url="http://news.example/2")
    assert (state.etag, state.last_modified, state.body_hash) == (None, "x", "h")
    assert state.validators_url == "http://news.example/2"


def test_an_unreadable_body_leaves_the_old_validators() -> None:
    assert after(feed(), outcome=Outcome.NOT_A_FEED, etag='"new"').etag == '"old"'


def test_a_304_keeps_what_it_does_not_replace() -> None:
    known = feed(last_modified="monday", body_hash="h")
    state = after(known, outcome=Outcome.NOT_MODIFIED, status=304, etag='"newer"')
    assert (state.etag, state.last_modified, state.body_hash) == ('"newer"', "monday", "h")


def test_the_cursor_is_the_newest_date_that_is_not_in_the_future() -> None:
    entries = (make_entry(1), make_entry(2, published_at=NOW + timedelta(days=3)), make_entry(3))
    assert after(feed(), entries=entries).cursor_at == NOW - timedelta(minutes=1)


def poll_for(hours: int, *, every: float, items: int) -> FeedState:
    """Return a feed after so many hours of polls, each of which brought so many new articles."""
    state, now = feed(), NOW
    for _ in range(int(hours * 3600 / every)):
        state = after(replace(state, claim_id=CLAIM), new_items=items, now=now)
        now += timedelta(seconds=every)
    return state


def test_a_busy_feed_is_polled_often_and_a_silent_one_rarely() -> None:
    busy, silent = poll_for(48, every=600, items=3), poll_for(30 * 24, every=7200, items=0)
    assert RULES.min_poll_seconds <= (busy.poll_seconds or 0) < 300
    assert (silent.poll_seconds or 0) > 3 * 3600
    assert (busy.items_per_day or 0) > 200
    assert (silent.items_per_day or 9) < 1


def test_a_feeds_own_bounds_go_before_the_settings() -> None:
    assert (after(feed(shortest_seconds=7200.0), new_items=500)).poll_seconds == 7200
    assert (after(feed(longest_seconds=60.0))).poll_seconds == RULES.min_poll_seconds
    assert (after(feed(shortest_seconds=30.0, longest_seconds=60.0))).poll_seconds == 60
    assert (after(feed(shortest_seconds=7200.0, longest_seconds=600.0))).poll_seconds == 7200


def test_a_fixed_interval_has_its_slots_which_failures_and_lateness_do_not_move() -> None:
    fixed = feed(interval_seconds=60.0)
    slot = after(fixed, new_items=1).next_fetch_at
    assert timedelta(seconds=30) <= slot - NOW <= timedelta(seconds=90)
    for seconds in (0, 2, 10):
        state = after(fixed, now=slot + timedelta(seconds=seconds))
        assert state.next_fetch_at == slot + timedelta(seconds=60)
    failed = after(fixed, now=slot, outcome=Outcome.HARD_ERROR)
    assert failed.next_fetch_at == slot + timedelta(seconds=60)


def test_the_servers_lower_bound_goes_before_a_fixed_interval() -> None:
    state = after(feed(interval_seconds=60.0), hints=ServerHints(max_age_seconds=600))
    assert 600 <= seconds_until_next(state) <= 660


def test_failures_slow_a_fixed_interval_down_too() -> None:
    state, waits = feed(interval_seconds=600.0), []
    now = NOW
    for _ in range(12):
        state = after(replace(state, claim_id=CLAIM), now=now, outcome=Outcome.HARD_ERROR, status=404)
        waits.append(seconds_until_next(state, now))
        now = state.next_fetch_at
    assert waits[0] <= 900
    assert waits[:7] == sorted(waits[:7])
    assert all(0.7 * 86400 < wait <= 86400 + 600 for wait in waits[9:])


def test_an_absurd_interval_is_a_year() -> None:
    assert seconds_until_next(after(feed(interval_seconds=1e300))) < 2 * 366 * 86400


@pytest.mark.parametrize(
    ("hints", "least"),
    [
        (ServerHints(max_age_seconds=7200), 7200),
        (ServerHints(ttl_seconds=5400), 5400),
        (ServerHints(max_age_seconds=10**9), 86400),
    ],
)
def test_what_the_server_asks_for_is_a_lower_bound_of_at_most_a_day(hints: ServerHints, least: float) -> None:
    assert least <= seconds_until_next(after(feed(), hints=hints)) <= least + 600
    without = seconds_until_next(after(feed()))
    assert seconds_until_next(after(feed(), hints=ServerHints(max_age_seconds=10))) == without


def test_skipped_hours_and_days_are_kept_from_the_body_that_was_read_last() -> None:
    hours = tuple(range(13, 24))  # it is Saturday noon
    state = after(feed(interval_seconds=7200.0), hints=ServerHints(skip_hours=hours, skip_days=(6,)))
    assert (state.next_fetch_at.weekday(), state.next_fetch_at.hour in hours) == (0, False)
    again = after(replace(state, claim_id=CLAIM), outcome=Outcome.NOT_MODIFIED)
    assert again.next_fetch_at.weekday() == 0
    without = after(replace(state, claim_id=CLAIM))
    assert without.next_fetch_at.weekday() == 5


@pytest.mark.parametrize("outcome", [Outcome.NOT_MODIFIED, Outcome.UNCHANGED, Outcome.HARD_ERROR])
def test_the_ttl_of_the_body_that_was_read_last_stays_a_lower_bound(outcome: Outcome) -> None:
    state = after(feed(interval_seconds=60.0), hints=ServerHints(ttl_seconds=5400))
    assert seconds_until_next(after(replace(state, claim_id=CLAIM), outcome=outcome)) >= 5400
    without = after(replace(state, claim_id=CLAIM))
    assert seconds_until_next(without) <= 90


def test_failures_back_off_up_to_a_day_and_a_success_clears_them() -> None:
    state, waits = feed(), []
    for _ in range(9):
        state = after(replace(state, claim_id=CLAIM), outcome=Outcome.HARD_ERROR, status=404)
        waits.append(seconds_until_next(state))
    assert waits[:5] == sorted(waits[:5])
    assert 0.75 * 3600 <= waits[0] <= 3600 * 1.1
    assert all(0.75 * 86400 <= wait <= 86400 for wait in waits[5:])
    assert state.enabled
    assert after(replace(state, claim_id=CLAIM)).failures == 0


def test_a_throttled_feed_waits_as_asked_and_counts_no_failure() -> None:
    state = after(feed(), outcome=Outcome.THROTTLED, not_before=NOW + timedelta(hours=5))
    assert 5 * 3600 <= seconds_until_next(state) <= 5 * 3600 + 600
    assert state.failures == 0


def test_410_disables_only_when_seen_twice_an_hour_apart() -> None:
    first = after(feed(), outcome=Outcome.GONE, status=410)
    assert (first.enabled, seconds_until_next(first)) == (True, 3600)
    soon = NOW + timedelta(minutes=30)
    assert after(replace(first, claim_id=CLAIM), now=soon, outcome=Outcome.GONE, status=410).enabled
    later = NOW + timedelta(minutes=60)
    second = after(replace(first, claim_id=CLAIM), now=later, outcome=Outcome.GONE, status=410)
    assert not second.enabled
    assert "410" in (second.disabled_reason or "")


def test_the_second_look_at_a_410_is_in_no_skipped_hour() -> None:
    state = after(feed(skip_hours=[13, 14]), outcome=Outcome.GONE)
    assert state.next_fetch_at.hour == 15


def test_anything_else_between_two_410_starts_the_count_anew() -> None:
    first = after(feed(), outcome=Outcome.GONE, status=410)
    other = after(replace(first, claim_id=CLAIM), outcome=Outcome.HARD_ERROR, status=404)
    again = after(replace(other, claim_id=CLAIM), now=NOW + timedelta(hours=2), outcome=Outcome.GONE, status=410)
    assert again.enabled


def test_a_permanent_redirect_is_adopted_after_three_sightings_over_a_day() -> None:
    new_url = "http://new.example/feed"
    state = feed()
    for hours, url in ((0, state.url), (12, state.url), (23, state.url), (25, new_url)):
        state = after(replace(state, claim_id=CLAIM), now=NOW + timedelta(hours=hours), moved_to=new_url)
        assert state.url == url


@pytest.mark.parametrize(
    ("url", "new_url", "moves"),
    [
        ("http://news.example/feed", "http://news.example/new", True),
        ("http://news.example/feed", "https://news.example/new", True),
        ("http://news.example/feed", "http://new.example/feed", False),
        ("https://news.example/feed", "http://news.example/feed", False),
        ("http://news.example/feed", "http://news.example:8080/feed", False),
    ],
)
def test_a_feed_with_credentials_moves_within_its_origin_only(url: str, new_url: str, moves: bool) -> None:
    state = feed(url=url, has_own_headers=True)
    for days in range(5):
        state = after(replace(state, claim_id=CLAIM), now=NOW + timedelta(days=days), moved_to=new_url)
    assert state.url == (new_url if moves else url)


@pytest.mark.parametrize(
    ("url", "secured"),
    [
        ("http://news.example/feed?a", "https://news.example/feed?a"),
        ("http://news.example", "https://news.example/"),
        ("http://news.example:80/feed", "https://news.example/feed"),
        ("http://news.example:8080/feed", "https://news.example:8080/feed"),
    ],
)
def test_the_same_url_over_tls_is_adopted_at_once(url: str, secured: str) -> None:
    state = after(feed(url=url), moved_to=secured)
    assert (state.url, state.moved_to, state.moved_sightings) == (secured, None, 0)


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("http://news.example/feed", "https://www.news.example/feed"),
        ("http://news.example/feed", "https://news.example/"),
        ("http://news.example/feed", "https://news.example:8443/feed"),
        ("http://news.example/feed", "https://me@news.example/feed"),
        ("https://news.example/feed", "http://news.example/feed"),
    ],
)
def test_any_other_url_over_tls_is_a_move_like_others(url: str, other: str) -> None:
    state = after(feed(url=url), moved_to=other)
    assert (state.url, state.moved_to, state.moved_sightings) == (url, other, 1)


@pytest.mark.parametrize(
    "url", ["http://a.example/" + "x" * 5000, "ftp://a.example/", "http:///feed", "http://me and you@a.example/"]
)
def test_an_address_that_the_registry_would_not_take_is_never_adopted(url: str) -> None:
    state = after(feed(), moved_to=url)
    assert (state.moved_to, state.moved_sightings) == (None, 0)


def test_a_redirect_that_changes_its_mind_is_counted_anew() -> None:
    state = after(feed(), moved_to="http://a.example/")
    state = after(replace(state, claim_id=CLAIM), now=NOW + timedelta(days=2), moved_to="http://b.example/")
    assert (state.moved_to, state.moved_sightings) == ("http://b.example/", 1)
    assert after(replace(state, claim_id=CLAIM), now=NOW + timedelta(days=3)).moved_to is None


HIDDEN = NOW - timedelta(minutes=30)


@pytest.mark.parametrize(
    ("before", "result", "has_lied"),
    [
        ({}, {"etag": '"old"'}, True),  # the validators of before, and another body
        ({}, {"etag": '"new"'}, False),  # changed since, which is nobody's fault
        ({}, {"etag": '"new"', "entries": (make_entry(1, published_at=HIDDEN),)}, True),  # was there at the last 304
        ({}, {"etag": '"new"', "entries": (make_entry(1, published_at=HIDDEN, flags=("date_guessed",)),)}, False),
        ({}, {"etag": '"new"', "entries": (make_entry(1, published_at=NOW - timedelta(minutes=12)),)}, False),
        ({"cursor_at": HIDDEN}, {"etag": '"new"', "entries": (make_entry(1, published_at=HIDDEN),)}, False),
        ({"last_outcome": "fetched"}, {"etag": '"old"'}, False),
        ({}, {"etag": '"old"', "outcome": Outcome.UNCHANGED}, False),
        ({}, {"etag": '"old"', "probe": False}, False),
    ],
)
def test_a_probe_finds_out_servers_whose_304_are_untrue(
    before: dict[str, Any], result: dict[str, Any], has_lied: bool
) -> None:
    known = {"last_outcome": "not_modified", "last_attempt_at": NOW - timedelta(minutes=15)}
    known |= {"cursor_at": NOW - timedelta(hours=5)} | before
    state = after(feed(**known), **({"probe": True} | result))
    assert (state.lying_since is not None) == has_lied
    assert state.probed_at == (None if result.get("probe") is False else NOW)


def test_a_probe_that_ends_elsewhere_says_nothing_of_the_server_that_answered_304() -> None:
    hidden = make_entry(1, published_at=NOW - timedelta(hours=5))
    known = feed(
        last_outcome="not_modified", cursor_at=NOW - timedelta(days=9), last_attempt_at=NOW - timedelta(hours=1)
    )
    assert after(known, probe=True, etag='"new"', entries=(hidden,)).lying_since == NOW
    elsewhere = "http://other.example/feed"
    assert after(known, probe=True, etag='"new"', entries=(hidden,), final_url=elsewhere).lying_since is None


def test_an_untrue_304_is_never_forgotten() -> None:
    assert after(feed(lying_since=HIDDEN, last_outcome="not_modified"), probe=True, etag='"x"').lying_since == HIDDEN


def test_the_usual_gap_between_new_items_is_smoothed() -> None:
    first = after(feed(), new_items=3)
    assert first.news_gap_seconds is None
    second = after(replace(first, claim_id=CLAIM), new_items=1, now=NOW + timedelta(hours=1))
    assert second.news_gap_seconds == 3600
    none = after(replace(second, claim_id=CLAIM), now=NOW + timedelta(hours=2))
    assert none.news_gap_seconds == 3600
    third = after(replace(none, claim_id=CLAIM), new_items=1, now=NOW + timedelta(hours=3))
    assert third.news_gap_seconds == pytest.approx(0.8 * 3600 + 0.2 * 7200)


def test_after_its_first_result_a_job_no_longer_counts_as_queued() -> None:
    assert after(feed(), outcome=Outcome.SOFT_ERROR, final=False, claim_until=NOW).issued_at is None
    assert after(feed()).issued_at is None
