"""Why a feed is polled when it is, in sentences."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.admin.health.diagnosis import QueueLevel
from services.admin.polling.timing import Sentence, Surroundings, Timing, explain_timing

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)

FEED: dict[str, Any] = {
    "enabled": True, "disabled_reason": None, "politeness_group": "news.example",
    "next_fetch_at": NOW + HOUR / 2, "claim_expires_at": None, "issued_at": None, "in_flight": False,
    "throttled_until": None, "retry_at": None, "retry": None, "retries": None, "now": NOW,
    "last_attempt_at": NOW, "last_outcome": "fetched", "last_error": None, "failures": 0,
    "interval_seconds": None, "shortest_seconds": None, "longest_seconds": None, "poll_seconds": 1800.0,
    "items_per_day": 10.0, "ttl_seconds": None, "skip_hours": [], "skip_days": [], "lying_since": None,
}  # fmt: skip

AROUND = Surroundings(
    shard="fetcher.07", level=QueueLevel(0, 1), jobs_waiting=0, fetcher_high_water=1000, group_jobs=20, host_jobs=0,
    down_until=None, due_before=0, shortest_seconds=120.0, longest_seconds=86400.0,
)  # fmt: skip


def text(sentence: Sentence) -> str:
    return "".join(f"{part:%H:%M}" if isinstance(part, datetime) else part for part in sentence)


def why(around: Surroundings = AROUND, **changes: Any) -> Timing:
    return explain_timing(FEED | changes, around, NOW)


def said(timing: Timing) -> str:
    return " ".join(map(text, [timing.headline, *timing.reasons, timing.advice]))


def test_a_feed_that_is_well_is_polled_at_its_pace() -> None:
    timing = why()
    assert text(timing.headline) == "It is polled next at 12:30."
    assert [text(reason) for reason in timing.reasons] == [
        "A day is expected to bring 10 articles, and so it is polled about every 30 minutes."
    ]
    assert (timing.is_late, timing.advice, timing.next_at) == (False, (), NOW + HOUR / 2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"interval_seconds": 600.0, "next_fetch_at": NOW + HOUR / 6}, "A person set its interval: every 10 minutes."),
        ({"poll_seconds": 120.0, "next_fetch_at": NOW + HOUR / 30}, "(FEEDMILL_MIN_POLL_SECONDS)"),
        ({"poll_seconds": 3600.0, "longest_seconds": 3600.0}, "the longest interval (set for this feed)"),
        ({"poll_seconds": 600.0, "shortest_seconds": 600.0}, "the shortest interval (set for this feed)"),
        ({"ttl_seconds": 7200.0, "next_fetch_at": NOW + 2 * HOUR}, "asks to be polled at most every 2 hours (ttl"),
        ({"skip_hours": [12], "next_fetch_at": NOW + HOUR}, "skipHours"),
        ({"skip_days": [6], "next_fetch_at": NOW + 12 * HOUR}, "skipDays"),
        ({"next_fetch_at": NOW + 5 * HOUR}, "Cache-Control"),
        ({"items_per_day": 0.001}, "hardly an article"),
        ({"lying_since": NOW - HOUR}, "“not modified” although the feed has changed (seen 11:00)"),
        ({"last_outcome": "throttled"}, "It waits for its server until 12:30. Its server asked for a pause"),
        ({"poll_seconds": 86400.0, "next_fetch_at": NOW + 24 * HOUR}, "polled about every day."),
        ({"last_attempt_at": None, "last_outcome": None, "poll_seconds": None}, "It was never polled"),
    ],
)
def test_what_moves_the_next_poll_is_said(changes: dict[str, Any], words: str) -> None:
    timing = why(**changes)
    assert words in said(timing)
    assert not timing.is_late


def test_what_moves_nothing_is_not_said() -> None:
    timing = why(ttl_seconds=600.0, skip_hours=[3], skip_days=[0], shortest_seconds=60.0)
    assert len(timing.reasons) == 1


def test_what_made_a_wait_longer_is_said_only_where_it_is_known() -> None:
    for changes in (
        {"last_outcome": "throttled", "next_fetch_at": NOW + 5 * HOUR},
        {"last_attempt_at": NOW - 5 * HOUR, "next_fetch_at": NOW + HOUR / 12},  # resumed
        {"last_attempt_at": NOW - 50 * HOUR},  # put off
        {"last_outcome": "stale", "next_fetch_at": NOW + 5 * HOUR},
    ):
        assert "longer" not in said(why(**changes)), changes


def test_failures_make_a_feed_late() -> None:
    timing = why(failures=3, last_outcome="hard_error", poll_seconds=None)
    assert [text(reason) for reason in timing.reasons] == ["Each failure in a row doubles the wait, up to 1 day."]
    assert timing.is_late


def test_a_disabled_feed_is_not_polled() -> None:
    timing = why(enabled=False, disabled_reason="gone: the server answered 410 twice")
    assert text(timing.headline) == "It is not polled: gone: the server answered 410 twice."
    assert (timing.next_at, timing.is_late) == (None, False)


def test_a_throttled_host_is_named() -> None:
    timing = why(throttled_until=NOW + 2 * HOUR)
    assert text(timing.headline) == "It waits for its host until 14:00."
    both = why(throttled_until=NOW + HOUR, last_outcome="throttled", next_fetch_at=NOW + 2 * HOUR)
    assert text(both.headline) == "It waits for its host until 14:00.", "as its badge says"
    assert (timing.is_late, timing.next_at) == (True, NOW + 2 * HOUR)
    assert "No feed at news.example is polled before" in said(timing)
    assert not why(throttled_until=NOW + HOUR / 4).is_late, "its poll comes later than that anyway"


def test_a_retry_has_its_number_and_its_reason() -> None:
    retrying: dict[str, Any] = {"retry_at": NOW + HOUR, "retry": 1, "retries": 12}
    timing = why(**retrying, in_flight=True, claim_expires_at=NOW + 2 * HOUR)
    assert text(timing.headline) == "It is tried again at 13:00 (retry 1 of 12)."
    assert "Fetch now ends the wait" in said(timing)
    assert timing.is_late
    assert "Its retry is due since 11:00" in said(why(**retrying | {"retry_at": NOW - HOUR}))
    assert "its job was put off" in said(why(**retrying | {"retry": 0}))
    down = said(why(replace(AROUND, down_until=NOW + HOUR / 6), **retrying))
    assert "news.example could not be connected to: fetchers leave it alone until 12:10" in down


def in_flight(around: Surroundings, ago: timedelta = HOUR) -> Timing:
    return why(around, in_flight=True, issued_at=NOW - ago, claim_expires_at=NOW + HOUR, next_fetch_at=NOW - ago)


def test_a_job_under_way_is_where_its_queue_says() -> None:
    assert not in_flight(AROUND, HOUR / 100).is_late
    assert "No job waits in its queue `fetcher.07`" in said(in_flight(AROUND))
    assert "1,200 jobs wait in its queue" in said(in_flight(replace(AROUND, level=QueueLevel(1200, 1))))
    unread = in_flight(replace(AROUND, level=QueueLevel(5, 0)))
    assert "Nobody reads its queue `fetcher.07`, where 5 jobs wait" in said(unread)
    assert (unread.is_late, text(unread.advice)) == (True, "Start a fetcher.")
    assert "is not declared" in said(in_flight(replace(AROUND, level=None)))
    assert "can't be seen: away" in said(in_flight(replace(AROUND, level=None, broker_trouble="away")))
    assert "has 7 jobs under way" in said(in_flight(replace(AROUND, host_jobs=7)))


def test_a_job_that_was_dropped_lets_its_feed_wait() -> None:
    timing = why(in_flight=True, claim_expires_at=NOW + HOUR, next_fetch_at=NOW - HOUR)
    assert text(timing.headline) == "It waits until 13:00, then it is due again."
    assert timing.is_late


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "No due feed goes before it, and nobody claims it: is a scheduler running?"),
        ({"due_before": 3000}, "3,000 due feeds go before it"),
        ({"jobs_waiting": 1000}, "FEEDMILL_FETCHER_HIGH_WATER is 1,000"),
        ({"host_jobs": 20}, "FEEDMILL_GROUP_JOBS is 20"),
        ({"broker_trouble": "RabbitMQ does not answer", "level": None}, "RabbitMQ does not answer"),
    ],
)
def test_an_overdue_feed_says_what_holds_it_up(changes: dict[str, Any], words: str) -> None:
    timing = why(replace(AROUND, **changes), next_fetch_at=NOW - HOUR)
    assert text(timing.headline) == "It is due since 11:00."
    assert words in said(timing)
    assert timing.is_late
    assert timing.advice
    assert not why(replace(AROUND, **changes), next_fetch_at=NOW).is_late
