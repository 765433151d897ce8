from __future__ import annotations

import asyncio

from services.fetcher.backpressure import Backpressure
from shared.broker.prefetch import Valve


def test_the_valve_is_as_open_as_the_one_who_wants_least() -> None:
    valve = Valve(400)
    valve.turn("intake", 20)
    valve.turn("backpressure", 0)
    assert valve.opening == 0
    valve.turn("backpressure", 400)
    assert valve.opening == 20


async def test_whoever_waits_for_the_consumer_is_told_even_if_nothing_was_turned() -> None:
    valve = Valve(400)
    followed = valve.next_followed()
    await asyncio.wait_for(valve.wait_turned(), 1)
    valve.note_followed()
    assert followed.done()


def test_backpressure_shuts_at_the_high_water_mark_and_opens_at_half_of_it() -> None:
    valve = Valve(400)
    backpressure = Backpressure("writer", high_water=100, valve=valve)
    openings = []
    for ready in (99, 100, 60, 51, 50, 99, 100):
        backpressure.note(ready)
        openings.append(valve.opening)
    assert openings == [400, 0, 0, 0, 400, 400, 0]
