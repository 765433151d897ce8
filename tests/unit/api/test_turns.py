"""Turns of long work: one per key, few at a time, none for ever."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from services.api.turns import Turns
from shared.errors import Unavailable

PATIENCE_SECONDS = 30.0


class Gate:
    """Work that lasts until it is opened."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.open = threading.Event()

    def work(self) -> str:
        self.began.set()
        assert self.open.wait(PATIENCE_SECONDS)
        return "done"


async def run(turns: Turns, key: str, gate: Gate) -> str:
    async with turns.turn(key) as turn:
        return await turn.run(gate.work)


async def until_begun(gate: Gate) -> None:
    assert await asyncio.to_thread(gate.began.wait, PATIENCE_SECONDS)


async def test_a_key_has_one_turn_at_a_time_and_others_go_on() -> None:
    turns, slow, next_one, other = Turns(2, PATIENCE_SECONDS), Gate(), Gate(), Gate()
    first = asyncio.create_task(run(turns, "slow", slow))
    await until_begun(slow)
    second = asyncio.create_task(run(turns, "slow", next_one))
    other.open.set()
    assert await run(turns, "other", other) == "done"
    assert not next_one.began.is_set()
    slow.open.set()
    next_one.open.set()
    assert (await first, await second) == ("done", "done")


async def test_who_waits_too_long_is_told_and_keeps_nothing() -> None:
    turns, slow, after = Turns(1, 0.01), Gate(), Gate()
    first = asyncio.create_task(run(turns, "slow", slow))
    await until_begun(slow)
    for key in ("slow", "other"):
        with pytest.raises(Unavailable, match=f"{key}: too many other requests"):
            await run(turns, key, after)
    slow.open.set()
    await first
    after.open.set()
    assert await run(turns, "other", after) == "done"
    assert await run(turns, "slow", after) == "done"


async def test_a_turn_whose_caller_left_ends_with_its_work() -> None:
    turns, left, after = Turns(2, 0.01), Gate(), Gate()
    first = asyncio.create_task(run(turns, "a", left))
    await until_begun(left)
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    after.open.set()
    with pytest.raises(Unavailable):
        await run(turns, "a", after)
    left.open.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with suppress(Unavailable):
                assert await run(turns, "a", after) == "done"
                break


async def test_an_error_ends_a_turn() -> None:
    turns = Turns(1, 0.01)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            async with turns.turn("a") as turn:
                await turn.run(lambda: 1 // 0)
