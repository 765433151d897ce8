from __future__ import annotations

from services.fetcher.politeness.intake import Intake


def test_a_backlog_of_one_group_is_paid_for_once_and_hardly_again() -> None:
    intake = Intake(400, 64)
    intake.note_idle_host(is_new=True)
    paid = intake.pay(380)
    for _ in range(1000):
        intake.note_start()
        paid += intake.pay(380)
    assert 50 <= paid <= 100


def test_work_for_others_pays_for_a_look_at_a_whole_window() -> None:
    intake = Intake(400, 64)
    intake.note_idle_host(is_new=True)
    intake.pay(400)
    intake.note_idle_host(is_new=True)
    assert intake.pay(1000) == 400
    intake.note_idle_host(is_new=False)
    assert intake.pay(1000) == 0


def test_after_a_nack_nothing_is_taken_until_the_queue_is_a_quarter_as_long() -> None:
    intake = Intake(400, 64)
    intake.shrink(0.0, held=20, active=2, room_in_seconds=8.0)
    assert intake.window == 0
    assert intake.tick(1.0, held=6, idle=True) is None
    assert intake.tick(6.0, held=5, idle=True) == 2.0
    intake.tick(8.0, held=5, idle=True)
    assert intake.window == 12


def test_a_window_that_lets_the_queue_run_dry_is_doubled_and_one_that_has_earned_a_look_is_full() -> None:
    intake = Intake(400, 64)
    intake.note_idle_host(is_new=True)
    intake.shrink(0.0, held=0, active=1)
    intake.tick(0.0, held=0, idle=True)
    assert intake.window == 1
    intake.note_idle_host(is_new=False)
    assert intake.window == 2
    for _ in range(1000):
        intake.note_start()
    intake.tick(0.0, held=0, idle=False)
    assert intake.window == 2, "there is nobody who could do more"
    intake.tick(0.0, held=0, idle=True)
    assert intake.window == 400


def test_when_threads_are_missing_it_takes_what_they_can_do_and_more_step_by_step() -> None:
    intake = Intake(400, 64)
    intake.shrink(0.0, held=0, active=3, lacks_threads=True)
    intake.tick(0.0, held=0, idle=True)
    assert intake.window == 64
    intake.note_idle_host(is_new=True)
    intake.tick(19.0, held=0, idle=True)
    assert intake.window == 64
    intake.tick(20.0, held=0, idle=True)
    assert intake.window == 128
