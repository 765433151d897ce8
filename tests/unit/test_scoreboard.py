from __future__ import annotations

from services.fetcher.scoreboard import Hold, Limits, Report, Requeue, Scoreboard, Skip, Started

GOOD = Report(latency_seconds=0.1)


def board(**limits: float) -> Scoreboard:
    return Scoreboard(Limits(**limits))  # type: ignore[arg-type]


def begin(scoreboard: Scoreboard, group: str, now: float) -> None:
    assert isinstance(scoreboard.admit(group, now), Hold)
    assert scoreboard.start(group, now) == Started()


def test_the_first_job_of_a_group_starts_at_once() -> None:
    scoreboard = board()
    assert scoreboard.admit("a", 100.0) == Hold(0.0)
    assert scoreboard.start("a", 100.0) == Started()


def test_starts_of_one_group_keep_their_distance_also_after_a_stall() -> None:
    scoreboard = board(host_min_interval_seconds=5.0, host_concurrency=4)
    for _ in range(3):
        scoreboard.admit("a", 0.0)
    begun_at: list[float] = []
    now = 60.0  # the process stood still; all three turns are long past
    while len(begun_at) < 3:
        turn = scoreboard.start("a", now)
        if isinstance(turn, Started):
            begun_at.append(now)
        else:
            assert isinstance(turn, Hold)
            now += turn.seconds
    assert begun_at == [60.0, 65.0, 70.0]


def test_another_group_does_not_wait() -> None:
    scoreboard = board(host_min_interval_seconds=5.0)
    begin(scoreboard, "a", 0.0)
    assert scoreboard.admit("b", 0.0) == Hold(0.0)


def test_no_more_than_the_cap_run_in_one_group() -> None:
    scoreboard = board(host_min_interval_seconds=0.01, host_concurrency=2)
    begin(scoreboard, "a", 0.0)
    begin(scoreboard, "a", 1.0)
    scoreboard.admit("a", 2.0)
    assert isinstance(scoreboard.start("a", 2.0), Hold)
    scoreboard.finish("a", 3.0, GOOD)
    assert scoreboard.start("a", 3.0) == Started()


def test_no_more_than_the_total_cap_run_at_all() -> None:
    scoreboard = board(max_active=1)
    begin(scoreboard, "a", 0.0)
    scoreboard.admit("b", 0.0)
    assert isinstance(scoreboard.start("b", 0.0), Hold)
    scoreboard.finish("a", 1.0, GOOD)
    assert scoreboard.start("b", 1.0) == Started()


def test_a_turn_beyond_the_hold_is_requeued() -> None:
    scoreboard = board(host_min_interval_seconds=5.0, max_hold_seconds=12.0)
    admissions = [scoreboard.admit("a", 0.0) for _ in range(4)]
    assert admissions == [Hold(0.0), Hold(5.0), Hold(10.0), Requeue()]


def test_a_group_holds_no_more_than_its_share() -> None:
    scoreboard = board(host_min_interval_seconds=0.001, max_held_per_group=2)
    assert [type(scoreboard.admit("a", 0.0)) for _ in range(3)] == [Hold, Hold, Requeue]


def test_a_withdrawn_job_makes_room() -> None:
    scoreboard = board(max_held_per_group=1)
    scoreboard.admit("a", 0.0)
    assert scoreboard.admit("a", 0.0) == Requeue()
    scoreboard.withdraw("a")
    assert scoreboard.admit("a", 0.0) == Hold(0.0)


def test_a_failure_to_connect_puts_the_group_down_for_a_while_and_longer_on_repeat() -> None:
    scoreboard = board(connect_failure_seconds=600.0)
    begin(scoreboard, "a", 0.0)
    scoreboard.finish("a", 1.0, Report(0.1, connected=False, succeeded=False))
    assert scoreboard.admit("a", 600.0) == Skip()
    begin(scoreboard, "a", 601.0)
    scoreboard.finish("a", 602.0, Report(0.1, connected=False, succeeded=False))
    assert scoreboard.admit("a", 602.0 + 1199.0) == Skip()
    begin(scoreboard, "a", 602.0 + 1200.0)


def test_after_a_down_time_one_probe_goes_before_the_crowd() -> None:
    scoreboard = board(host_min_interval_seconds=0.001, host_concurrency=4)
    begin(scoreboard, "a", 0.0)
    scoreboard.finish("a", 1.0, Report(0.1, connected=False, succeeded=False))
    begin(scoreboard, "a", 700.0)
    scoreboard.admit("a", 701.0)
    assert isinstance(scoreboard.start("a", 701.0), Hold)
    scoreboard.finish("a", 702.0, GOOD)
    assert scoreboard.start("a", 702.0) == Started()
    begin(scoreboard, "a", 702.1)


def test_a_held_job_is_skipped_when_its_group_goes_down_meanwhile() -> None:
    scoreboard = board()
    begin(scoreboard, "a", 0.0)
    scoreboard.admit("a", 0.0)
    scoreboard.finish("a", 0.5, Report(0.1, connected=False, succeeded=False))
    assert scoreboard.start("a", 1.0) == Skip()


def test_a_read_timeout_does_not_put_the_group_down() -> None:
    scoreboard = board()
    begin(scoreboard, "a", 0.0)
    scoreboard.finish("a", 15.0, Report(15.0, connected=True, succeeded=False))
    assert isinstance(scoreboard.admit("a", 16.0), Hold)


def test_a_throttle_lasts_as_long_as_the_server_asked_and_outlives_a_success() -> None:
    scoreboard = board(throttle_seconds=30.0, host_concurrency=2, max_hold_seconds=1e6)
    begin(scoreboard, "a", 0.0)
    begin(scoreboard, "a", 1.0)
    scoreboard.finish("a", 2.0, Report(0.1, succeeded=False, throttled=True, retry_after_seconds=120.0))
    scoreboard.finish("a", 3.0, GOOD)
    assert scoreboard.admit("a", 3.0) == Hold(119.0)


def test_a_short_retry_after_is_raised_to_the_floor_and_a_bare_429_doubles_on_repeat() -> None:
    scoreboard = board(throttle_seconds=30.0, max_hold_seconds=1e6)
    begin(scoreboard, "a", 0.0)
    scoreboard.finish("a", 0.0, Report(0.1, succeeded=False, throttled=True, retry_after_seconds=1.0))
    begin(scoreboard, "a", 30.0)
    scoreboard.finish("a", 30.0, Report(0.1, succeeded=False, throttled=True))
    assert scoreboard.admit("a", 30.0) == Hold(60.0)


def test_a_slow_host_is_asked_less_often_and_a_fast_failure_does_not_change_that() -> None:
    scoreboard = board(host_min_interval_seconds=1.0, host_concurrency=2)
    begin(scoreboard, "a", 0.0)
    scoreboard.finish("a", 8.0, Report(8.0))
    begin(scoreboard, "a", 8.0)
    scoreboard.finish("a", 8.1, Report(0.1, succeeded=False))
    assert scoreboard.admit("a", 8.1) == Hold(8.0 + 4.0 - 8.1)


def test_idle_groups_are_forgotten_only_when_nothing_about_them_matters() -> None:
    scoreboard = board(throttle_seconds=500.0)
    begin(scoreboard, "idle", 0.0)
    scoreboard.finish("idle", 1.0, GOOD)
    begin(scoreboard, "throttled", 0.0)
    scoreboard.finish("throttled", 1.0, Report(0.1, succeeded=False, throttled=True))
    begin(scoreboard, "busy", 0.0)
    scoreboard.forget_idle(200.0, idle_seconds=60.0)
    assert scoreboard.totals().groups == 2
    scoreboard.forget_idle(600.0, idle_seconds=60.0)
    assert scoreboard.totals().groups == 1
