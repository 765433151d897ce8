"""An interrupt ends a command's call; it is never lost, and takes nothing else with it."""

from __future__ import annotations

import asyncio
import os
import signal
import weakref

import pytest

from services.cli.calls.loop import open_loop

SIGNALS = pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])


@SIGNALS
def test_an_interrupt_cancels_the_call_and_nothing_else(signum: signal.Signals) -> None:
    async def call() -> asyncio.Task[str]:
        go = asyncio.Event()

        async def work() -> str:
            await go.wait()
            return "done"

        task = asyncio.create_task(work())
        started.append(task)
        await asyncio.sleep(0)
        go.set()  # its wake-up waits for its turn while the signal comes
        os.kill(os.getpid(), signum)
        await asyncio.Event().wait()
        return task

    started: list[asyncio.Task[str]] = []

    async def rest() -> str:
        return await started[0]

    with open_loop() as loop:
        with pytest.raises(KeyboardInterrupt):
            loop.run(call())
        assert loop.end(rest()) == "done"


@SIGNALS
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_python_drops_ends_the_next_call(signum: signal.Signals) -> None:
    class Thing: ...

    def dropped(_reference: object) -> None:
        os.kill(os.getpid(), signum)

    async def call() -> str:
        return "done"

    with open_loop() as loop:
        thing = Thing()
        reference = weakref.ref(thing, dropped)
        del thing
        assert reference() is None
        with pytest.raises(KeyboardInterrupt):
            loop.run(call())
        assert loop.end(call()) == "done"


@SIGNALS
def test_an_interrupt_between_calls_interrupts_the_command(signum: signal.Signals) -> None:
    with open_loop(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signum)


@SIGNALS
def test_handlers_are_as_before_afterwards_and_an_ignored_signal_stays_ignored(signum: signal.Signals) -> None:
    before = signal.signal(signum, signal.SIG_IGN)
    try:
        with open_loop():
            os.kill(os.getpid(), signum)
        assert signal.getsignal(signum) is signal.SIG_IGN
        signal.signal(signum, signal.default_int_handler)
        with open_loop():
            assert signal.getsignal(signum) is not signal.default_int_handler
        assert signal.getsignal(signum) is signal.default_int_handler
    finally:
        signal.signal(signum, before)
