"""Many ask, one looks, and nobody waits for long."""

from __future__ import annotations

import asyncio

import pytest

from services.admin.health.looks import Look, end_searches
from shared.errors import Unavailable

AGES = 3600.0


class Counter:
    """Counts how often it was looked at; a look ends when the test lets it."""

    def __init__(self) -> None:
        self.looks = 0
        self.may_end = asyncio.Event()
        self.error: Exception | None = None

    async def find(self) -> int:
        self.looks += 1
        number = self.looks
        await self.may_end.wait()
        if self.error:
            raise self.error
        return number

    def look(self, *, keep: float = AGES, patience: float = AGES) -> Look[int]:
        return Look(self.find, what="the server", keep_seconds=keep, patience_seconds=patience)


async def test_those_who_ask_together_share_one_look() -> None:
    counter = Counter()
    look = counter.look()
    asking = asyncio.gather(*(look.get() for _ in range(200)))
    await asyncio.sleep(0)
    counter.may_end.set()
    assert await asking == [1] * 200
    assert await look.get() == 1


async def test_a_value_that_is_too_old_is_found_anew() -> None:
    counter = Counter()
    counter.may_end.set()
    look = counter.look(keep=0.0)
    assert [await look.get(), await look.get()] == [1, 2]


async def test_an_error_is_kept_like_a_value() -> None:
    counter = Counter()
    counter.may_end.set()
    counter.error = Unavailable("away")
    look = counter.look()
    for _ in range(2):
        with pytest.raises(Unavailable, match="away"):
            await look.get()
    assert counter.looks == 1


async def test_who_asks_a_server_that_hangs_is_told_so_and_those_after_him_at_once() -> None:
    counter = Counter()
    look = counter.look(patience=0.0)
    for _ in range(3):
        with pytest.raises(Unavailable, match="the server does not answer within 0 s"):
            await look.get()
    assert counter.looks == 1
    counter.may_end.set()
    assert await look.get(patience_seconds=AGES) == 1


async def test_what_is_recent_is_taken_at_once_and_what_is_old_while_a_look_hangs() -> None:
    counter = Counter()
    counter.may_end.set()
    look = counter.look(keep=-1.0)
    assert await look.recent(AGES, patience_seconds=AGES) == 1
    assert await look.recent(AGES, patience_seconds=AGES) == 1
    await look.get()
    seen = look.last
    assert seen is not None
    assert await look.recent(-1.0, patience_seconds=AGES) == seen + 1
    counter.may_end.clear()
    assert await look.recent(-1.0, patience_seconds=0.0) == seen + 1
    await end_searches()


async def test_searches_end_when_they_are_told_to_and_say_nothing_of_what_they_met() -> None:
    begun = asyncio.Event()

    async def hang() -> int:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise Unavailable("the pool is closed")

    look = Look(hang, what="the server", keep_seconds=AGES, patience_seconds=0.0)
    with pytest.raises(Unavailable, match="within 0 s"):
        await look.get()
    (search,) = (task for task in asyncio.all_tasks() if task.get_name() == "search of a look")
    await begun.wait()
    await end_searches()
    assert search.cancelled()


async def test_who_goes_away_does_not_end_the_look_of_others() -> None:
    counter = Counter()
    look = counter.look()
    first, second = asyncio.create_task(look.get()), asyncio.create_task(look.get())
    await asyncio.sleep(0)
    first.cancel()
    counter.may_end.set()
    assert await second == 1
