"""Waiting: retries while a server is away, and pauses that an event ends."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from shared.errors import Unavailable

log = logging.getLogger(__name__)

Result = TypeVar("Result")

FIRST_WAIT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 3.0
"""The longest pause between two tries. Short, since a try costs no more than one connection attempt."""


async def keep_trying(
    operation: Callable[[], Awaitable[Result]], *, what: str, until: tuple[asyncio.Event, ...]
) -> Result:
    """Return what `operation()` returns; call it again, after growing pauses, while it raises `Unavailable`.

    Every other error passes through. `what` names the operation in the log.

    Raises:
        Unavailable: the operation's last error, once one of the `until` events is set.
    """
    tries, longest = 0, FIRST_WAIT_SECONDS
    while True:
        try:
            return await operation()
        except Unavailable as error:
            if any(event.is_set() for event in until):
                raise
            log.warning("%s failed, trying again: %s", what, error, extra={"attempt": tries})
        # A random part of a doubling time: processes that lost the same server don't come back together.
        await pause(random.uniform(0, longest) if tries else longest, *until)  # noqa: S311 - no secret
        tries, longest = tries + 1, min(2 * longest, LONGEST_WAIT_SECONDS)


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
