"""The jobs of a run in memory, final results, and the summary."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.batch.summary import Summary, final_result
from services.batch.window import Window, max_in_progress
from services.fetcher.politeness.limits import Limits, parse_policies
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome
from tests.factories import NOW, make_entry, make_job, make_result


def window(size: int = 10, share: int = 1) -> Window:
    return Window(size, lambda _: share)


def job(feed_id: int, group: str) -> FetchFeed:
    return make_job(feed_id=feed_id, group=group)


def take_all(standing: Window, now: float = 0.0) -> list[int]:
    taken = []
    while (one := standing.take(now)) is not None:
        taken.append(one.feed_id)
    return taken


def test_groups_are_served_round_robin_and_none_has_more_in_progress_than_its_share() -> None:
    standing = window(share=2)
    standing.add([job(1, "a"), job(2, "a"), job(3, "a"), job(4, "b"), job(5, "c")])
    assert take_all(standing) == [1, 4, 5, 2]
    standing.done(job(4, "b"))
    assert take_all(standing) == []
    standing.done(job(1, "a"))
    assert take_all(standing) == [3]


def test_a_deferred_job_is_taken_when_its_time_has_come() -> None:
    standing = window()
    standing.add_later(job(1, "a"), at=20.0)
    standing.add_later(job(2, "b"), at=10.0)
    assert (standing.next_at(), take_all(standing, 9.9)) == (10.0, [])
    assert (take_all(standing, 10.0), standing.next_at()) == ([2], 20.0)


def test_room_excludes_waiting_running_and_deferred_jobs() -> None:
    standing = window(size=5)
    standing.add([job(1, "a"), job(2, "a")])
    standing.add_later(job(3, "b"), at=1.0)
    first = standing.take(0.0)
    assert first is not None
    assert (len(standing), standing.in_progress, standing.room) == (3, 1, 2)
    standing.done(first)
    assert (len(standing), standing.room) == (2, 3)
    assert sorted(left.feed_id for left in standing.empty()) == [2, 3]
    assert (len(standing), standing.next_at(), take_all(standing, 9.0)) == (0, None, [])


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ({}, 3),  # two under way, and the next
        ({"max_held_per_group": 1}, 1),
        ({"host_min_interval_seconds": 7.0}, 2),  # a third would wait for longer than it may be held
        ({"host_min_interval_seconds": 60.0}, 1),
        ({"host_min_interval_seconds": 0.0}, 3),
        ({"policies": parse_policies("a.example concurrency=8")}, 9),
    ],
)
def test_the_handler_gets_as_many_jobs_of_a_group_as_it_can_use(settings: dict[str, Any], share: int) -> None:
    assert max_in_progress(Limits(**settings), "a.example") == share


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=40), st.integers(1, 3))
def test_every_job_leaves_once_and_shares_hold(jobs: list[tuple[str, int]], share: int) -> None:
    standing = window(size=3, share=share)
    for number, (group, at) in enumerate(jobs):
        if at:
            standing.add_later(job(number, group), float(at))
        else:
            standing.add([job(number, group)])
    left, in_hand = [], list[FetchFeed]()
    for now in range(200):
        while (one := standing.take(float(now))) is not None:
            assert jobs[one.feed_id][1] <= now
            in_hand.append(one)
        assert all(number <= share for number in Counter(one.group for one in in_hand).values())
        assert standing.in_progress == len(in_hand)
        if in_hand:
            done = in_hand.pop(0)
            left.append(done.feed_id)
            standing.done(done)
    assert (sorted(left), len(standing)) == (list(range(len(jobs))), 0)


def test_the_final_result_on_a_feed_that_failed_gives_it_up() -> None:
    promised = {"final": False, "claim_until": NOW + timedelta(hours=1)}
    said = final_result(make_result(outcome=Outcome.SKIPPED, attempt=1, **promised))
    assert (said.outcome, said.final, said.claim_until) == (Outcome.GAVE_UP, True, None)


def test_the_final_result_on_a_feed_that_was_never_asked_leaves_it_as_due_as_it_was() -> None:
    said = final_result(make_result(outcome=Outcome.SKIPPED, final=False, claim_until=NOW))
    assert (said.outcome, said.final, said.claim_until) == (Outcome.SKIPPED, True, None)


def test_the_summary_counts_attempts_by_outcome_and_skipped_feeds_once() -> None:
    summary = Summary(claimed=3)
    summary.count(make_result(entries=(make_entry(1), make_entry(2))))
    summary.count(make_result(outcome=Outcome.SOFT_ERROR, final=False))
    summary.count(make_result(outcome=Outcome.GAVE_UP, attempt=1), is_retry=True)
    summary.count(make_result(outcome=Outcome.SKIPPED, final=False))
    summary.count(make_result(outcome=Outcome.SKIPPED))
    numbers = summary.as_json()
    assert numbers["outcomes"] == {"fetched": 1, "soft_error": 1, "gave_up": 1}
    assert (numbers["attempts"], numbers["retried"], numbers["skipped"], numbers["entries"]) == (3, 1, 1, 2)
    first, second = summary.in_words()
    assert first == (
        "3 feeds claimed, 3 attempts, 1 of them again, 1 skipped (host down; still due), 2 entries passed on; 0.0 s"
    )
    assert second == "fetched 1 · soft_error 1 · gave_up 1"
