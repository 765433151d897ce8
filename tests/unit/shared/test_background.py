"""Background tasks: a failure is logged and tried again, or ends the service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

import pytest
from prometheus_client import REGISTRY
from psycopg.errors import InsufficientPrivilege

from shared.background import PeriodicTask, beside
from shared.errors import DatabaseUnavailable


def failing(name: str) -> float | None:
    return REGISTRY.get_sample_value("feedmill_background_failing_seconds", {"task": name})


def work_of(errors: Iterator[Exception | None], done: Callable[[], None]) -> PeriodicTask:
    now = [0.0]

    async def work() -> None:
        now[0] += 100.0
        error = next(errors, None)
        if error is None:
            done()
            return
        raise error

    return PeriodicTask("tidying", work, seconds=0.001, clock=lambda: now[0])


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (InsufficientPrivilege("permission denied for table feed_items"), "ERROR"),
        (ZeroDivisionError("a bug"), "ERROR"),
        (DatabaseUnavailable("a statement took too long"), "INFO"),
    ],
)
async def test_a_failed_round_is_reported_and_the_next_one_is_run(
    error: Exception, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "shared.background")
    stop = asyncio.Event()
    rounds = work_of(iter([None, error, error]), lambda: None)
    await rounds.run_once()
    assert (rounds.check(), failing("tidying")) == (None, 0)
    await rounds.run_once()
    assert failing("tidying") == 100
    await rounds.run_once()
    assert failing("tidying") == 200
    assert str(error) in (rounds.check() or "")
    assert [record.levelname for record in caplog.records] == [level] * 2
    again = work_of(iter([error] * 5), stop.set)
    await asyncio.wait_for(again.run(stop), 5)
    assert (again.check(), failing("tidying")) == (None, 0)


async def test_the_work_goes_on_beside_rounds_that_fail_and_stops_in_time() -> None:
    stop, ended = asyncio.Event(), asyncio.Event()

    async def fail() -> None:
        raise InsufficientPrivilege("no")

    async def slow_round() -> None:
        await asyncio.sleep(0.05)
        ended.set()

    rounds = [PeriodicTask("failing", fail, seconds=0.001), PeriodicTask("slow", slow_round, seconds=60)]
    async with beside(stop, *(one.run(stop) for one in rounds), grace_seconds=5):
        await asyncio.sleep(0.02)
        assert not stop.is_set()
    assert stop.is_set()
    assert ended.is_set()  # `stop` ended it, no cancellation


async def test_a_task_that_does_not_end_in_time_is_cancelled() -> None:
    async def sleep() -> None:
        await asyncio.sleep(60)

    async with asyncio.timeout(30), beside(asyncio.Event(), sleep(), grace_seconds=0.01):
        pass
