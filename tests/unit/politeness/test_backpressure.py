from __future__ import annotations

import asyncio

from services.fetcher.backpressure import Backpressure
from shared.broker.prefetch import PrefetchLimit


def test_the_prefetch_limit_is_as_open_as_the_one_who_wants_least() -> None:
    prefetch_limit = PrefetchLimit(400)
    prefetch_limit.set("intake", 20)
    prefetch_limit.set("backpressure", 0)
    assert prefetch_limit.total == 0
    prefetch_limit.set("backpressure", 400)
    assert prefetch_limit.total == 20


async def test_whoever_waits_for_the_consumer_is_told_even_if_nothing_has_changed() -> None:
    prefetch_limit = PrefetchLimit(400)
    followed = prefetch_limit.next_applied()
    await asyncio.wait_for(prefetch_limit.wait_changed(), 1)
    prefetch_limit.note_applied()
    assert followed.done()


def test_backpressure_shuts_at_the_high_water_mark_and_opens_at_half_of_it() -> None:
    prefetch_limit = PrefetchLimit(400)
    backpressure = Backpressure(["writer"], high_water=100, prefetch_limit=prefetch_limit)
    openings = []
    for ready in (99, 100, 60, 51, 50, 99, 100):
        backpressure.note(ready)
        openings.append(prefetch_limit.total)
    assert openings == [400, 0, 0, 0, 400, 400, 0]
