"""How a feed is, in words."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from services.admin.feed_health.rule import Word
from services.admin.feed_health.words import FeedHealth, judge
from shared.wire.outcomes import Outcome
from tests.factories import NOW


def ago(**span: float) -> Any:
    return NOW - timedelta(**span)


def make_row(**changes: Any) -> dict[str, Any]:
    """Return the row of a feed that is well."""
    return {
        "id": 1,
        "url": "http://news.example/feed",
        "politeness_group": "news.example",
        "now": NOW,
        "enabled": True,
        "disabled_reason": None,
        "created_at": ago(days=100),
        "due_at": NOW + timedelta(minutes=5),
        "next_fetch_at": NOW + timedelta(minutes=5),
        "last_attempt_at": ago(hours=1),
        "last_success_at": ago(hours=1),
        "last_new_at": ago(hours=3),
        "cursor_at": ago(hours=4),
        "news_gap_seconds": 7200.0,
        "last_outcome": "fetched",
        "last_error": None,
        "failures": 0,
        "failing_since": None,
        "gone_since": None,
        "throttled_until": None,
        "moved_to": None,
        "moved_since": None,
        "moved_sightings": 0,
        "moved_at": None,
        "duplicate_of": None,
        "original_id": None,
        "ambiguous_since": None,
        "date_order": None,
        "date_order_seen": None,
        "has_own_headers": False,
        **changes,
    }


def judged(**changes: Any) -> FeedHealth:
    return judge(make_row(**changes))


def test_a_feed_that_is_well_needs_nothing() -> None:
    found = judged()
    assert (found.word, found.text, found.advice) == (Word.HEALTHY, "healthy", "")
    assert found.reason == "It answers; the last new article came 3 hours ago"


def test_silence_within_the_habit_is_quiet_and_three_gaps_are_stale() -> None:
    quiet = judged(news_gap_seconds=4 * 86400.0, last_new_at=ago(days=5))
    assert (quiet.word, quiet.since) == (Word.QUIET, ago(days=5))
    assert quiet.reason == ("It answers; the last new article came 5 days ago, while usually no more than 4 days pass")
    assert "after 12 days" in quiet.advice
    stale = judged(news_gap_seconds=4 * 86400.0, last_new_at=ago(days=13))
    assert stale.word == Word.STALE
    assert "13 days" in stale.reason
    assert "feedmill parse http://news.example/feed" in stale.advice
    assert "feeds set 1 --disable" in stale.advice


def test_a_gap_below_a_day_counts_as_a_day() -> None:
    assert judged(news_gap_seconds=60.0, last_new_at=ago(hours=23)).word == Word.HEALTHY
    assert judged(news_gap_seconds=60.0, last_new_at=ago(hours=25)).word == Word.QUIET
    assert judged(news_gap_seconds=60.0, last_new_at=ago(hours=73)).word == Word.STALE


def test_a_feed_whose_newest_article_is_years_old_is_stale_from_the_first_poll_on() -> None:
    found = judged(news_gap_seconds=None, last_new_at=ago(hours=1), cursor_at=ago(days=900))
    assert found.word == Word.STALE
    assert "its newest article is 900 days old" in found.reason
    weekly = judged(news_gap_seconds=None, last_new_at=ago(hours=1), cursor_at=ago(days=4))
    assert weekly.word == Word.HEALTHY


def test_a_feed_that_never_brought_anything_is_quiet_then_stale() -> None:
    def empty(days: float) -> FeedHealth:
        return judged(last_new_at=None, cursor_at=None, news_gap_seconds=None, created_at=ago(days=days))

    assert [empty(days).word for days in (5, 11, 31)] == [Word.HEALTHY, Word.QUIET, Word.STALE]
    assert "nothing new in 11 days" in empty(11).reason


def test_a_failure_says_since_when_and_what_to_do() -> None:
    found = judged(failures=2, last_outcome="hard_error", last_error="http 404", failing_since=ago(minutes=50))
    assert (found.word, found.since) == (Word.FAILING, ago(minutes=50))
    assert found.reason == "2 polls in a row failed: refused, or set up wrongly: http 404"
    assert found.advice.startswith("Correct its URL or its login")
    assert "feedmill feeds fetch 1" in found.advice


def test_a_failure_that_an_older_writer_noted_began_after_the_last_success() -> None:
    assert judged(failures=1, last_outcome="gave_up", failing_since=None).since == ago(hours=1)
    assert judged(failures=1, last_outcome="gave_up", failing_since=ago(days=3)).since == ago(hours=1)


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if not outcome.is_success])
def test_every_failure_has_something_to_do(outcome: Outcome) -> None:
    found = judged(failures=1, last_outcome=outcome.value)
    assert found.word == Word.FAILING
    assert found.advice.endswith(".")


def test_a_pause_ends_at_the_later_of_host_and_server() -> None:
    found = judged(throttled_until=NOW + timedelta(hours=1))
    assert (found.word, found.until) == (Word.THROTTLED, NOW + timedelta(hours=1))
    assert "Its host, news.example, asked" in found.reason
    own = judged(last_outcome="throttled", next_fetch_at=NOW + timedelta(hours=2))
    assert (own.word, own.until) == (Word.THROTTLED, NOW + timedelta(hours=2))
    assert own.reason.startswith("Its server asked")
    assert judged(last_outcome="throttled", next_fetch_at=ago(seconds=1)).word == Word.HEALTHY


def test_a_failure_is_told_before_a_pause() -> None:
    assert judged(failures=3, last_outcome="gave_up", throttled_until=NOW + timedelta(hours=1)).word == Word.FAILING


def test_a_new_feed_says_when_its_first_poll_is_due() -> None:
    found = judged(last_attempt_at=None, last_success_at=None, last_new_at=None, last_outcome=None)
    assert found.word == Word.NEW
    assert found.reason == "It was not polled yet; its first poll is due in 5 minutes"


def test_a_feed_that_waits_for_a_fetcher_says_so_and_where_to_look() -> None:
    found = judged(due_at=ago(hours=2))
    assert found.reason.endswith(". It has been due for 2 hours")
    assert found.advice == "`feedmill status` says why nothing fetches it."
    paused = judged(due_at=ago(hours=2), enabled=False, disabled_reason="by hand")
    assert "due" not in paused.reason
    assert "feeds set 1 --enable" in paused.advice


def test_duplicates_name_the_other_feed() -> None:
    found = judged(original_id=7, duplicate_of=7)
    assert (found.text, found.feed_id) == ("duplicate of feed 7", 7)
    assert "feeds set 1 --disable" in found.advice
    ended = judged(enabled=False, disabled_reason="duplicate: moved for good to the URL of feed 7", duplicate_of=7)
    assert (ended.word, ended.feed_id) == (Word.DUPLICATE, 7)
    assert judged(original_id=None, duplicate_of=7).word == Word.HEALTHY, "the other one is disabled or was removed"


def test_moves_say_where_to() -> None:
    found = judged(moved_to="http://new.example/", moved_since=ago(hours=3), moved_sightings=1)
    assert (found.word, found.url, found.since) == (Word.MOVED, "http://new.example/", ago(hours=3))
    assert "(seen 1 time)" in found.reason
    assert found.advice.startswith("Nothing")
    kept = judged(moved_to="http://new.example/", moved_since=ago(days=3), moved_sightings=9, has_own_headers=True)
    assert "not sent to another host" in kept.advice
    assert judged(moved_at=ago(days=6)).url == "http://news.example/feed"
    assert judged(moved_at=ago(days=8)).word == Word.HEALTHY


def test_a_410_is_gone_at_once_and_ends_polling_when_repeated() -> None:
    first = judged(gone_since=ago(minutes=5), failures=1, last_outcome="gone")
    assert (first.word, first.since) == (Word.GONE, ago(minutes=5))
    assert "when it says so again" in first.reason
    last = judged(gone_since=ago(hours=2), enabled=False, disabled_reason="gone: the server answered 410 twice")
    assert (last.word, "polling has ended" in last.reason) == (Word.GONE, True)


def test_ambiguous_dates_are_decided_by_a_person_once() -> None:
    found = judged(ambiguous_since=ago(days=2))
    assert (found.word, found.text) == (Word.DATES_AMBIGUOUS, "dates ambiguous")
    assert "feeds set 1 --date-order day" in found.advice
    assert judged(ambiguous_since=ago(days=2), date_order="day").word == Word.HEALTHY
