"""Waiting: retries while a server is away, and pauses that an event ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential
from tenacity.stop import stop_base

from shared.errors import Unavailable

log = logging.getLogger(__name__)

Result = TypeVar("Result")

FIRST_WAIT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 3.0
"""The longest pause between two tries. Short, since a try costs no more than one connection attempt."""


class _WhenSet(stop_base):
    """Stop trying once any of the events is set."""

    def __init__(self, *events: asyncio.Event) -> None:
        self._events = events

    def __call__(self, retry_state: RetryCallState) -> bool:
        return any(event.is_set() for event in self._events)


async def keep_trying(
    operation: Callable[[], Awaitable[Result]], *, what: str, until: tuple[asyncio.Event, ...]
) -> Result:
    """Return what `operation()` returns; call it again, after growing pauses, while it raises `Unavailable`.

    Every other error passes through. `what` names the operation in the log.

    Raises:
        Unavailable: the operation's last error, once one of the `until` events is set.
    """
    try:
        return await operation()  # tenacity costs 45 µs a call: only a failed operation pays it
    except Unavailable as error:
        if any(event.is_set() for event in until):
            raise
        log.warning("%s failed, trying again: %s", what, error, extra={"attempt": 0})
        await pause(FIRST_WAIT_SECONDS, *until)
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(Unavailable),
        wait=wait_random_exponential(multiplier=0.2, max=LONGEST_WAIT_SECONDS),
        stop=_WhenSet(*until),
        sleep=lambda seconds: pause(seconds, *until),
        before_sleep=lambda state: _report(what, state),
        reraise=True,
    ):
        with attempt:
            return await operation()
    raise AssertionError("tenacity either returns or raises")


async def pause(seconds: float, *until: asyncio.Event) -> None:
    """Wait for `seconds`, or until one of the events is set."""
    try:
        async with asyncio.timeout(seconds):
            await until_any(*until)
    except TimeoutError:
        return


async def until_any(*events: asyncio.Event) -> None:
    """Wait until one of the events is set; for ever if there are none."""
    if not events:
        await asyncio.get_running_loop().create_future()
    waiters = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiters:
            waiter.cancel()


def retrieve_error(task: asyncio.Task[Any]) -> None:
    """Retrieve the error of a task that perhaps nobody awaits any more: a callback for when the task is done."""
    if not task.cancelled():
        task.exception()


def _report(what: str, state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    log.warning("%s failed, trying again: %s", what, error, extra={"attempt": state.attempt_number})
