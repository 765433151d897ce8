"""How commands end: on Ctrl-C, on SIGTERM, and with an error in one sentence."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")


class Interrupted(Exception):
    """A person or a supervisor ended the command; everything was cleaned up on the way."""


def interrupt_on_sigterm() -> None:
    """Treat SIGTERM like Ctrl-C, so that `with` blocks stop the servers that they started."""

    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def run_interruptible(work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work`; Ctrl-C and SIGTERM cancel it, and it may clean up.

    Raises:
        Interrupted: it was cancelled.
    """

    async def main() -> Result:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, task.cancel)
        return await task

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise Interrupted from None
