"""Jobs without room: they wait here, and make way for others only while others may stand behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.fetcher.politeness.deferred import MAX_STAY_SECONDS, REQUEUES_PER_SECOND, Deferred


@dataclass(eq=False)
class Job:
    group: str
    arrived_at: float = 0.0


def fill(deferred: Deferred[Job], group: str, number: int) -> list[Job]:
    jobs = [Job(group) for _ in range(number)]
    for job in jobs:
        deferred.add(job)
    return jobs


def never(job: Job) -> bool:
    return False


def full(job: Job) -> float | None:
    """Its group starts one job a second."""
    return 1.0


def always(job: Job) -> bool:
    return True


def room_for(number: int, group: str) -> Callable[[Job], float | None]:
    places = [group] * number

    def admit(job: Job) -> float | None:
        if job.group in places:
            places.remove(job.group)
            return None
        return 1.0

    return admit


def test_deferred_jobs_stay_here_as_long_as_no_others_can_stand_behind_them() -> None:
    deferred = Deferred[Job](400, 5.0)
    fill(deferred, "a", 100)
    for now in range(0, 200, 10):
        assert deferred.review(float(now), admit=full, may_hide_others=never) == []
    assert len(deferred.remove(always)) == 100


def test_the_oldest_are_admitted_first_and_a_full_group_keeps_no_other_waiting() -> None:
    deferred = Deferred[Job](400, 5.0)
    first, second = fill(deferred, "a", 2)
    (other,) = fill(deferred, "b", 1)
    assert not deferred.review(0.0, admit=room_for(1, "a"), may_hide_others=never)
    assert deferred.remove(lambda job: job is first) == []
    assert not deferred.review(0.0, admit=room_for(1, "b"), may_hide_others=never)
    assert deferred.remove(always) == [second]
    assert other not in deferred.remove(always)


def test_with_a_full_window_the_youngest_make_way_and_those_that_have_room_soon_stay() -> None:
    deferred = Deferred[Job](400, 5.0)
    jobs = fill(deferred, "a", 10)
    requeued = deferred.review(0.0, admit=full, may_hide_others=always)
    assert requeued == jobs[:4:-1]
    assert deferred.remove(always) == jobs[:5]


def test_one_window_may_go_round_at_once_and_then_so_many_a_second() -> None:
    deferred = Deferred[Job](400, 5.0)
    fill(deferred, "a", 1000)
    assert len(deferred.review(0.0, admit=full, may_hide_others=always)) == 400
    assert deferred.review(0.0, admit=full, may_hide_others=always) == []
    assert len(deferred.review(3.0, admit=full, may_hide_others=always)) == 3 * REQUEUES_PER_SECOND


def test_nothing_stays_for_as_long_as_a_broker_waits_for_an_acknowledgement() -> None:
    deferred = Deferred[Job](400, 5.0)
    jobs = fill(deferred, "a", 5)
    assert deferred.review(MAX_STAY_SECONDS - 1, admit=full, may_hide_others=never) == []
    assert deferred.review(MAX_STAY_SECONDS, admit=full, may_hide_others=never) == jobs
    assert not deferred


def test_what_is_deferred_during_a_review_is_not_lost() -> None:
    deferred = Deferred[Job](400, 5.0)
    fill(deferred, "a", 1)
    late = Job("b")

    def admit(job: Job) -> None:
        deferred.add(late)

    assert deferred.review(0.0, admit=admit, may_hide_others=never) == []
    assert deferred.remove(always) == [late]
