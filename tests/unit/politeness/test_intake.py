from __future__ import annotations

import asyncio

from services.fetcher.backpressure import Backpressure
from services.fetcher.politeness.intake import Intake
from shared.broker.prefetch import PrefetchLimit


def test_a_backlog_of_one_group_is_paid_for_once_and_hardly_again() -> None:
    intake = Intake(400, 64)
    intake.note_find(news=True)
    paid = intake.pay(380)
    for _ in range(1000):
        intake.note_start()
        paid += intake.pay(380)
    assert 50 <= paid <= 100


def test_work_for_others_pays_for_a_look_at_a_whole_window() -> None:
    intake = Intake(400, 64)
    intake.note_find(news=True)
    intake.pay(400)
    intake.note_find(news=True)
    assert intake.pay(1000) == 400
    intake.note_find(news=False)
    assert intake.pay(1000) == 0


def test_after_giving_back_nothing_is_taken_until_the_line_is_a_quarter_as_long() -> None:
    intake = Intake(400, 64)
    intake.narrow(0.0, held=20, active=2, room_in_seconds=8.0)
    assert intake.window == 0
    assert intake.tick(1.0, held=6, idle=True) is None
    assert intake.tick(6.0, held=5, idle=True) == 2.0
    intake.tick(8.0, held=5, idle=True)
    assert intake.window == 12


def test_a_window_that_lets_the_line_run_dry_is_doubled_and_one_that_has_earned_a_look_is_wide() -> None:
    intake = Intake(400, 64)
    intake.note_find(news=True)
    intake.narrow(0.0, held=0, active=1)
    intake.tick(0.0, held=0, idle=True)
    assert intake.window == 1
    intake.note_find(news=False)
    assert intake.window == 2
    for _ in range(1000):
        intake.note_start()
    intake.tick(0.0, held=0, idle=False)
    assert intake.window == 2, "there is nobody who could do more"
    intake.tick(0.0, held=0, idle=True)
    assert intake.window == 400


def test_when_threads_are_missing_it_takes_what_they_can_do_and_more_step_by_step() -> None:
    intake = Intake(400, 64)
    intake.narrow(0.0, held=0, active=3, starved=True)
    intake.tick(0.0, held=0, idle=True)
    assert intake.window == 64
    intake.note_find(news=True)
    intake.tick(19.0, held=0, idle=True)
    assert intake.window == 64
    intake.tick(20.0, held=0, idle=True)
    assert intake.window == 128


def test_the_valve_is_as_open_as_the_one_who_wants_least() -> None:
    prefetch_limit = PrefetchLimit(400)
    prefetch_limit.set("intake", 20)
    prefetch_limit.set("backpressure", 0)
    assert prefetch_limit.total == 0
    prefetch_limit.set("backpressure", 400)
    assert prefetch_limit.total == 20


async def test_whoever_waits_for_the_consumer_is_told_even_if_nothing_was_turned() -> None:
    prefetch_limit = PrefetchLimit(400)
    followed = prefetch_limit.next_applied()
    await asyncio.wait_for(prefetch_limit.wait_changed(), 1)
    prefetch_limit.note_applied()
    assert followed.done()


def test_backpressure_shuts_at_the_high_water_mark_and_opens_at_half_of_it() -> None:
    prefetch_limit = PrefetchLimit(400)
    backpressure = Backpressure("writer", high_water=100, prefetch_limit=prefetch_limit)
    openings = []
    for ready in (99, 100, 60, 51, 50, 99, 100):
        backpressure.note(ready)
        openings.append(prefetch_limit.total)
    assert openings == [400, 0, 0, 0, 400, 400, 0]
