"""`feedmill batch`: servers, the writer beside the run, signals, the deadline, the summary."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from local.server_watch import looking_after
from local.settings import LocalSettings, child_environment
from local.supervisor import FREE_PORTS, Process, Supervisor
from local.terminal import Interrupted
from services.batch.crew import Crew
from services.batch.place import Place, find_place, until_deserted
from services.batch.report import Report
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from shared.background import beside
from shared.errors import ConfigurationError
from shared.observability.telemetry import Health, serve_telemetry
from shared.settings import read_settings


def batch(settings: LocalSettings, *, most_seconds: float | None, writer: bool | None, as_json: bool) -> None:
    """Do one run and print its summary.

    Args:
        settings: where the servers are.
        most_seconds: after so many seconds the run ends as it does on a signal, but as a success.
        writer: whether to run a writer beside; None: if the servers are private ones without one.
        as_json: print the summary for machines.

    Raises:
        Interrupted: SIGTERM or SIGINT; the run was wound up and the summary printed.
        FeedmillError: the run could not be done; says why.
    """
    began = time.monotonic()
    fetcher, scheduler = read_settings(FetcherSettings), read_settings(SchedulerSettings)
    report = Report(fetcher.log_level, fetcher.log_format)
    with find_place(settings, report.say) as place:
        has_writer = place.servers is not None if writer is None else writer
        crew = Crew(place.addresses, fetcher, scheduler, is_awaited=has_writer or (place.is_shared and writer is None))
        crew.look_at_database()
        outing = _Outing(settings, place, report, crew, has_writer=has_writer)
        deadline = None if most_seconds is None else began + most_seconds
        with contextlib.ExitStack() as telemetry:
            if fetcher.metrics_port:
                telemetry.enter_context(serve_telemetry(outing.health, fetcher.metrics_host, fetcher.metrics_port))
            try:
                asyncio.run(outing.run(deadline))
            except asyncio.CancelledError:  # a second signal
                raise Interrupted from None
        crew.tally.seconds = time.monotonic() - began
        report.show_end(crew.tally, as_json=as_json)
    if outing.is_interrupted:
        raise Interrupted


class _Outing:
    """A run and what goes on beside it."""

    def __init__(self, settings: LocalSettings, place: Place, report: Report, crew: Crew, *, has_writer: bool) -> None:
        self._settings = settings
        self._place = place
        self._report = report
        self._crew = crew
        self._has_writer = has_writer
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self.is_interrupted = False
        self.health = Health()

    async def run(self, deadline: float | None) -> None:
        """Run to the end, or to `deadline` (monotonic seconds). A second signal cancels what the first one ended."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def interrupt() -> None:
            if self.is_interrupted:
                task.cancel()
            self.is_interrupted = True
            self._end_early()

        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, interrupt)
        if deadline is not None:
            loop.call_later(max(deadline - time.monotonic(), 0.0), self._stop.set)
        async with (
            looking_after(self._place.servers, self._report.say),
            self._writer(),
            beside(asyncio.Event(), self._report.follow(self._crew.tally, self.health), *self._watches()),
        ):
            await self._crew.run(self._stop, self._hurry, self.health)

    def _end_early(self) -> None:
        self._hurry.set()
        self._stop.set()

    def _watches(self) -> list[Coroutine[Any, Any, None]]:
        return [self._end_when_deserted()] if self._place.is_shared else []

    async def _end_when_deserted(self) -> None:
        await until_deserted(self._settings)
        self._end_early()
        raise ConfigurationError("the servers were stopped that this run used: they were another process's")

    @asynccontextmanager
    async def _writer(self) -> AsyncIterator[None]:
        """Run a writer for the length of the block, if it is ours to run."""
        if not self._has_writer:
            yield
            return
        environment = child_environment(self._place.addresses.environment() | FREE_PORTS)
        supervisor = Supervisor([Process("writer", "writer")], environment, self._report.show_line)
        async with supervisor.run():
            failing = asyncio.create_task(supervisor.failed.wait())
            failing.add_done_callback(lambda task: None if task.cancelled() else self._end_early())
            try:
                yield
            finally:
                failing.cancel()
        if supervisor.failed.is_set():
            raise ConfigurationError("the writer refused its configuration; see its line above")
