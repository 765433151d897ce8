from __future__ import annotations

import pytest

from services.fetcher.politeness.decisions import Evicted, FastDelay, Held, Idle, NoRoom, Report, Skip, Start, Totals
from services.fetcher.politeness.limits import HostPolicy, Limits
from services.fetcher.politeness.scoreboard import Scoreboard

GOOD = Report(latency_seconds=0.1)
DOWN = Report(latency_seconds=0.1, connected=False, succeeded=False)


def board(**limits: object) -> Scoreboard[str]:
    return Scoreboard(Limits(**limits))  # type: ignore[arg-type]


def throttled(seconds: float | None) -> Report:
    return Report(0.1, succeeded=False, throttled=True, retry_after_seconds=seconds)


def send(scoreboard: Scoreboard[str], group: str, ticket: str, now: float) -> None:
    """Let a job of an idle group go all the way to the wire."""
    assert isinstance(scoreboard.admit(group, ticket, now), Held)
    assert scoreboard.next_decision(now) == Start(ticket)
    assert scoreboard.confirm_start(ticket, now) is None
    scoreboard.sent(ticket, now)


def fetch(scoreboard: Scoreboard[str], group: str, now: float, report: Report, ticket: str = "x") -> None:
    send(scoreboard, group, ticket, now)
    scoreboard.finish(ticket, now, report)


def test_the_first_job_of_a_group_is_called_at_once() -> None:
    scoreboard = board()
    assert scoreboard.admit("a", "1", 100.0) == Held(can_start=True)
    assert scoreboard.next_decision(100.0) == Start("1")
    assert scoreboard.confirm_start("1", 100.0) is None


def test_a_group_that_nothing_was_asked_of_for_a_while_is_new() -> None:
    scoreboard = board(max_hold_seconds=20.0)
    fetch(scoreboard, "a", 0.0, GOOD)
    assert scoreboard.admit("a", "1", 59.0) == Held(can_start=True, is_new_host=False)
    scoreboard.withdraw("1")
    assert scoreboard.admit("a", "2", 119.0) == Held(can_start=True, is_new_host=True)


def test_the_next_one_is_called_an_interval_after_the_request_has_left() -> None:
    scoreboard = board(host_min_interval_seconds=5.0)
    for ticket in "12":
        scoreboard.admit("a", ticket, 0.0)
    assert scoreboard.next_decision(0.0) == Start("1")
    scoreboard.confirm_start("1", 0.0)
    assert isinstance(scoreboard.next_decision(15.0), Idle)  # names are still being resolved
    scoreboard.sent("1", 16.0)
    assert scoreboard.next_decision(16.0) == Idle(4.0)  # the hold ends
    assert scoreboard.admit("a", "3", 16.0) == Held(can_start=False, is_new_host=False)
    assert scoreboard.next_decision(20.0) == Evicted("2", None)
    assert scoreboard.next_decision(20.0) == Idle(1.0)
    assert scoreboard.next_decision(21.0) == Start("3")


def test_the_event_loop_is_woken_only_for_a_request_that_left_late() -> None:
    scoreboard = board(host_min_interval_seconds=5.0, host_concurrency=4)
    for ticket in "123":
        scoreboard.admit("a", ticket, 0.0)
    assert scoreboard.next_decision(0.0) == Start("1")
    assert scoreboard.next_decision(0.0) == Idle(5.0)
    assert not scoreboard.sent("1", 1.0), "the loop looks again by itself, before the next start"
    assert scoreboard.next_decision(5.0) == Idle(1.0)
    assert scoreboard.next_decision(6.0) == Start("2")
    assert scoreboard.next_decision(11.0) == Idle(9.0), "nothing to wait for but the end of the hold"
    assert scoreboard.sent("2", 12.0)
    assert scoreboard.next_decision(12.0) == Idle(5.0)


def test_after_a_stall_the_distance_holds_all_the_same() -> None:
    scoreboard = board(host_min_interval_seconds=5.0, host_concurrency=4, max_hold_seconds=100.0)
    for ticket in "123":
        scoreboard.admit("a", ticket, 0.0)
    started: list[float] = []
    now = 60.0  # the process stood still; all three turns are long past
    while len(started) < 3:
        call = scoreboard.next_decision(now)
        if isinstance(call, Start):
            scoreboard.confirm_start(call.ticket, now)
            scoreboard.sent(call.ticket, now)
            started.append(now)
        else:
            assert isinstance(call, Idle)
            assert call.seconds is not None
            now += call.seconds
    assert started == [60.0, 65.0, 70.0]


def test_a_failure_to_connect_keeps_the_distance_too() -> None:
    scoreboard = board(host_min_interval_seconds=5.0, connect_failure_seconds=1.0)
    scoreboard.admit("a", "1", 0.0)
    scoreboard.next_decision(0.0)
    scoreboard.confirm_start("1", 0.0)
    scoreboard.finish("1", 2.0, DOWN)  # nothing was sent
    scoreboard.admit("a", "2", 4.0)
    assert scoreboard.next_decision(4.0) == Idle(3.0)


def test_another_group_does_not_wait() -> None:
    scoreboard = board(host_min_interval_seconds=5.0)
    send(scoreboard, "a", "1", 0.0)
    assert scoreboard.admit("b", "2", 0.0) == Held(can_start=True)
    assert scoreboard.next_decision(0.0) == Start("2")


def test_no_more_than_the_cap_run_in_one_group() -> None:
    scoreboard = board(host_min_interval_seconds=0.01, host_concurrency=2)
    send(scoreboard, "a", "1", 0.0)
    send(scoreboard, "a", "2", 1.0)
    scoreboard.admit("a", "3", 2.0)
    assert isinstance(scoreboard.next_decision(2.0), Idle)
    scoreboard.finish("1", 3.0, GOOD)
    assert scoreboard.next_decision(3.0) == Start("3")


def test_no_more_than_the_total_cap_run_at_all() -> None:
    scoreboard = board(max_active=1)
    send(scoreboard, "a", "1", 0.0)
    scoreboard.admit("b", "2", 0.0)
    assert isinstance(scoreboard.next_decision(0.0), Idle)
    scoreboard.finish("1", 1.0, GOOD)
    assert scoreboard.next_decision(1.0) == Start("2")


def test_with_one_thread_groups_take_turns_whatever_the_length_of_their_queues() -> None:
    scoreboard = board(max_active=1, host_min_interval_seconds=0.01, max_hold_seconds=1000.0)
    for number in range(50):
        scoreboard.admit("long", f"long{number}", 0.0)
    scoreboard.admit("short", "short", 0.0)
    order, now = [], 0.0
    for _ in range(4):
        call = scoreboard.next_decision(now)
        assert isinstance(call, Start)
        order.append(call.ticket)
        scoreboard.confirm_start(call.ticket, now)
        scoreboard.sent(call.ticket, now)
        now += 1.0
        scoreboard.finish(call.ticket, now, GOOD)
    assert order == ["long0", "short", "long1", "long2"]


def test_whoever_is_due_first_goes_first_also_before_a_group_that_is_new() -> None:
    scoreboard = board(max_active=1)
    for ticket in ("a1", "a2"):
        scoreboard.admit("a", ticket, 100.0)
    assert scoreboard.next_decision(100.0) == Start("a1")
    scoreboard.confirm_start("a1", 100.0)
    scoreboard.sent("a1", 100.0)
    scoreboard.admit("new", "n", 102.0)
    scoreboard.finish("a1", 103.0, GOOD)
    assert scoreboard.next_decision(103.0) == Start("a2"), "it has been due since 101"


def test_there_is_no_room_for_a_turn_beyond_the_hold() -> None:
    scoreboard = board(host_min_interval_seconds=5.0, max_hold_seconds=15.0)
    admissions = [scoreboard.admit("a", str(n), 0.0) for n in range(4)]
    assert [type(admission) for admission in admissions] == [Held, Held, Held, NoRoom]


def test_a_group_holds_no_more_than_its_share_and_a_withdrawn_job_makes_room() -> None:
    scoreboard = board(host_min_interval_seconds=0.001, max_held_per_group=2)
    assert [type(scoreboard.admit("a", str(n), 0.0)) for n in range(3)] == [Held, Held, NoRoom]
    assert scoreboard.withdraw("0")
    assert not scoreboard.withdraw("0")
    assert isinstance(scoreboard.admit("a", "2", 0.0), Held)


def test_a_job_that_goes_on_stands_before_those_that_have_not_begun() -> None:
    scoreboard = board(max_held_per_group=2, host_min_interval_seconds=0.1)
    for ticket in ("new1", "new2"):
        scoreboard.admit("a", ticket, 0.0)
    for ticket in ("on1", "on2"):
        assert isinstance(scoreboard.admit("a", ticket, 0.0, front=True), Held)
    order = []
    for n in range(4):
        call = scoreboard.next_decision(n * 1.0)
        assert isinstance(call, Start)
        order.append(call.ticket)
        scoreboard.confirm_start(call.ticket, n * 1.0)
        scoreboard.sent(call.ticket, n * 1.0)
        scoreboard.finish(call.ticket, n * 1.0, GOOD)
    assert order == ["on1", "on2", "new1", "new2"]


def test_what_was_held_for_too_long_is_let_out_even_if_nobody_asks_for_that_group() -> None:
    scoreboard = board(max_active=1, max_hold_seconds=20.0)
    send(scoreboard, "a", "1", 0.0)
    scoreboard.admit("b", "2", 5.0)
    assert scoreboard.next_decision(5.0) == Idle(20.0)
    assert scoreboard.next_decision(25.0) == Evicted("2", None)
    assert scoreboard.totals(25.0).held == 0


def test_a_failure_to_connect_puts_the_group_down_for_a_while_and_longer_on_repeat() -> None:
    scoreboard = board(connect_failure_seconds=600.0)
    fetch(scoreboard, "a", 0.0, DOWN)
    assert scoreboard.admit("a", "x", 599.0) == Skip(1.0)
    fetch(scoreboard, "a", 601.0, DOWN)
    assert scoreboard.admit("a", "x", 601.0 + 1199.0) == Skip(1.0)
    fetch(scoreboard, "a", 601.0 + 1200.0, DOWN)
    for n in range(10):
        fetch(scoreboard, "a", 10_000.0 + n * 3600.0, DOWN)
    assert scoreboard.admit("a", "x", 10_000.0 + 9 * 3600.0) == Skip(3600.0)


def test_those_in_line_are_let_out_when_their_group_goes_down() -> None:
    scoreboard = board()
    send(scoreboard, "a", "1", 0.0)
    scoreboard.admit("a", "2", 0.0)
    scoreboard.finish("1", 0.5, DOWN)
    assert scoreboard.next_decision(0.5) == Evicted("2", Skip(600.0))


def test_one_that_was_called_is_turned_away_if_its_group_went_down_meanwhile() -> None:
    scoreboard = board(host_min_interval_seconds=0.01)
    send(scoreboard, "a", "1", 0.0)
    scoreboard.admit("a", "2", 0.0)
    assert scoreboard.next_decision(1.0) == Start("2")
    scoreboard.finish("1", 1.0, DOWN)
    assert scoreboard.confirm_start("2", 1.0) == Skip(600.0)
    assert scoreboard.counts() == (0, 0)


def test_after_a_down_time_one_probe_goes_before_the_crowd() -> None:
    scoreboard = board(host_min_interval_seconds=0.001, host_concurrency=4)
    fetch(scoreboard, "a", 0.0, DOWN)
    send(scoreboard, "a", "1", 700.0)
    scoreboard.admit("a", "2", 701.0)
    assert isinstance(scoreboard.next_decision(701.0), Idle)
    scoreboard.finish("1", 702.0, GOOD)
    assert scoreboard.next_decision(702.0) == Start("2")


def test_a_read_timeout_does_not_put_the_group_down() -> None:
    scoreboard = board()
    fetch(scoreboard, "a", 0.0, Report(15.0, connected=True, succeeded=False))
    assert isinstance(scoreboard.admit("a", "x", 16.0), Held)


def test_a_throttle_lasts_as_long_as_the_server_asked_and_outlives_fast_pages() -> None:
    scoreboard = board(throttle_seconds=30.0, host_concurrency=4)
    for number, ticket in enumerate("123"):
        send(scoreboard, "a", ticket, float(number))
    scoreboard.finish("1", 3.0, throttled(120.0))
    scoreboard.finish("2", 4.0, GOOD)
    scoreboard.finish("3", 5.0, GOOD)
    scoreboard.forget_idle(100.0, idle_seconds=5.0)
    assert scoreboard.admit("a", "x", 5.0) == Skip(118.0, throttled=True)
    assert isinstance(scoreboard.admit("a", "x", 123.0), Held)


@pytest.mark.parametrize(("asked", "span"), [(1.0, 30.0), (45.0, 45.0), (None, 30.0), (1e9, 86400.0)])
def test_a_throttle_is_at_least_the_floor_and_at_most_a_day(asked: float | None, span: float) -> None:
    scoreboard = board(throttle_seconds=30.0)
    fetch(scoreboard, "a", 0.0, throttled(asked))
    scoreboard.admit("a", "x", span - 10.0)
    assert scoreboard.next_decision(span - 10.0) == Idle(10.0)
    assert scoreboard.next_decision(span) == Start("x")


def test_a_throttle_is_waited_for_here_or_in_fast_delay_or_in_the_retry_queue_by_its_length() -> None:
    scoreboard = board(max_hold_seconds=20.0)
    fetch(scoreboard, "a", 0.0, throttled(100.0))
    found = [scoreboard.admit("a", str(now), now) for now in (39.0, 41.0, 85.0)]
    assert found == [Skip(61.0, throttled=True), FastDelay(), Held(can_start=False, is_new_host=False)]


def test_several_429_of_requests_that_were_under_way_together_are_one_throttle() -> None:
    scoreboard = board(throttle_seconds=30.0, host_concurrency=8, host_min_interval_seconds=0.1)
    for number in range(8):
        send(scoreboard, "a", str(number), float(number))
    for number in range(8):
        scoreboard.finish(str(number), 8.0, throttled(None))
    assert scoreboard.dump(8.0)[0]["throttled_seconds"] == 30.0


def test_a_shortage_of_our_own_is_no_sign_of_life_of_a_host_that_is_down() -> None:
    scoreboard = board(connect_failure_seconds=600.0)
    fetch(scoreboard, "a", 0.0, DOWN)
    fetch(scoreboard, "a", 700.0, Report(0.0, connected=None, succeeded=False))
    fetch(scoreboard, "a", 800.0, DOWN)
    assert scoreboard.admit("a", "x", 800.0) == Skip(1200.0)


def test_a_bare_429_doubles_on_repeat_also_an_hour_later() -> None:
    scoreboard = board(throttle_seconds=30.0)
    fetch(scoreboard, "a", 0.0, throttled(None))
    scoreboard.forget_idle(3600.0, idle_seconds=60.0)
    fetch(scoreboard, "a", 3600.0, throttled(None))
    assert scoreboard.admit("a", "x", 3639.0) == FastDelay()
    assert isinstance(scoreboard.admit("a", "x", 3660.0), Held)


def test_a_slow_host_is_asked_less_often_and_a_fast_failure_does_not_change_that() -> None:
    scoreboard = board(host_min_interval_seconds=1.0, host_concurrency=2)
    fetch(scoreboard, "a", 0.0, Report(8.0))
    fetch(scoreboard, "a", 8.0, Report(0.1, succeeded=False))
    scoreboard.admit("a", "x", 8.0)
    assert scoreboard.next_decision(8.0) == Idle(4.0)


def test_a_policy_takes_the_place_of_the_general_limits_for_its_hosts() -> None:
    policies = (HostPolicy("*.slow.example", 1, 10.0), HostPolicy("hub.example/reddit", None, 3.0))
    scoreboard = board(host_concurrency=2, host_min_interval_seconds=1.0, policies=policies)
    for group in ("www.slow.example:8080", "hub.example/reddit", "hub.example/other"):
        scoreboard.admit(group, group, 0.0)
    intervals = {group["group"]: group["interval_seconds"] for group in scoreboard.dump(0.0)}
    assert intervals == {"www.slow.example:8080": 10.0, "hub.example/reddit": 3.0, "hub.example/other": 1.0}
    for _ in range(3):
        scoreboard.next_decision(0.0)
    scoreboard.sent("www.slow.example:8080", 0.0)
    scoreboard.admit("www.slow.example:8080", "second", 5.0)
    assert isinstance(scoreboard.next_decision(15.0), Idle)  # one at a time


def test_idle_groups_are_forgotten_only_when_nothing_about_them_matters() -> None:
    scoreboard = board(throttle_seconds=500.0)
    fetch(scoreboard, "idle", 0.0, GOOD)
    fetch(scoreboard, "throttled", 0.0, throttled(None))
    fetch(scoreboard, "down", 0.0, DOWN)
    send(scoreboard, "busy", "1", 0.0)
    scoreboard.forget_idle(200.0, idle_seconds=60.0)
    assert {group["group"] for group in scoreboard.dump(200.0)} == {"throttled", "down", "busy"}
    scoreboard.forget_idle(7000.0, idle_seconds=60.0)
    assert len(scoreboard.dump(7000.0)) == 3
    scoreboard.forget_idle(9000.0, idle_seconds=60.0)
    assert {group["group"] for group in scoreboard.dump(9000.0)} == {"busy"}


def test_the_board_in_numbers_and_in_full() -> None:
    scoreboard = board(max_active=1)
    send(scoreboard, "a", "1", 0.0)
    scoreboard.admit("a", "2", 0.0)
    scoreboard.admit("b", "3", 0.0)
    assert scoreboard.totals(0.5) == Totals(active=1, held=2, ready=1, groups=2, groups_active=2, groups_recent=2)
    first, second = scoreboard.dump(0.5)
    assert (first["group"], first["active"], first["held"], first["next_start_seconds"]) == ("a", 1, 1, 0.5)
    assert (second["group"], second["active"], second["held"]) == ("b", 0, 1)


def test_a_group_that_was_another_fetchers_rests_for_its_interval_first() -> None:
    scoreboard = board(host_min_interval_seconds=5.0)
    assert scoreboard.admit("a", "1", 101.0, since=100.0) == Held(can_start=False)
    assert scoreboard.next_decision(101.0) == Idle(4.0)
    assert scoreboard.next_decision(105.0) == Start("1")
    scoreboard.confirm_start("1", 105.0)
    scoreboard.sent("1", 105.0)
    assert scoreboard.admit("a", "2", 106.0, since=100.0) == Held(can_start=False, is_new_host=False)
    assert scoreboard.next_decision(106.0) == Idle(4.0)
    assert scoreboard.admit("b", "3", 106.0, since=100.0) == Held(can_start=True), "it has rested"


def test_a_group_that_was_ours_before_rests_again_when_it_comes_back() -> None:
    scoreboard = board(host_min_interval_seconds=5.0)
    fetch(scoreboard, "a", 100.0, GOOD)
    assert scoreboard.admit("a", "1", 200.0, since=199.0) == Held(can_start=False, is_new_host=True)
    assert scoreboard.next_decision(200.0) == Idle(4.0)


def test_a_group_that_is_asked_once_a_day_rests_for_a_minute_only() -> None:
    scoreboard = board(host_min_interval_seconds=86_400.0)
    assert scoreboard.admit("a", "1", 100.0, since=100.0) == FastDelay()
    assert isinstance(scoreboard.admit("a", "1", 160.0, since=100.0), Held)
    assert scoreboard.next_decision(160.0) == Start("1")
