"""`feedmill batch`: finds or starts the servers, runs a batch and, if asked, a writer beside it; prints the summary."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from local.addresses import Addresses, configured, find_running, open_servers
from local.servers import Servers, keep_running
from local.settings import LocalSettings, child_environment
from local.supervisor import FREE_PORTS, Process, Supervisor
from local.terminal import Interrupted, LogPrinter, Terminal
from services.admin.registry import connect
from services.batch.service import BatchService
from services.batch.summary import Summary
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from shared.background import beside
from shared.database.migrate import migrate
from shared.errors import ConfigurationError
from shared.observability.display import ascii_json
from shared.observability.logs import JsonFormatter, LogFormat, configure_logging, quieten_libraries
from shared.observability.telemetry import Health, serve_telemetry
from shared.observability.traces import exporting
from shared.settings import read_settings
from shared.waiting import pause

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Between two looks whether the process that runs the servers is still there."""

BEAT_SECONDS = 1.0
LINE_BEATS = 5
"""Beats between two lines of progress."""

SERIOUS = frozenset({"warning", "error", "critical"})


def batch(settings: LocalSettings, *, most_seconds: float | None, writer: bool | None, as_json: bool) -> None:
    """Do one run and print its summary.

    Args:
        settings: where the servers are.
        most_seconds: after this time the run ends as it does on a signal, but as a success.
        writer: whether to run a writer beside; None: only with private servers that were started for the run.
        as_json: print the summary for machines.

    Raises:
        Interrupted: SIGTERM or SIGINT; the run was wound up and the summary printed.
        FeedmillError: the run could not be done; says why.
    """
    began = time.monotonic()
    fetcher, scheduler = read_settings(FetcherSettings), read_settings(SchedulerSettings)
    output = _Output(fetcher.log_level, fetcher.log_format)
    with _find_servers(settings, output.say) as servers:
        addresses = servers.addresses
        has_writer = servers.started is not None if writer is None else writer
        waits_for_writer = has_writer or (servers.are_shared and writer is None)
        with connect(addresses.database_url):
            pass  # a database that can't be used at all is one sentence, at once
        service = BatchService(
            addresses.amqp_url, addresses.database_url, fetcher, scheduler, waits_for_writer=waits_for_writer
        )
        run = _Run(settings, servers, output, service, has_writer=has_writer)
        deadline = None if most_seconds is None else began + most_seconds
        with contextlib.ExitStack() as telemetry:
            telemetry.enter_context(exporting("batch", fetcher.traces_url))
            if fetcher.metrics_port:
                telemetry.enter_context(serve_telemetry(run.health, fetcher.metrics_host, fetcher.metrics_port))
            try:
                asyncio.run(run.run(deadline))
            except asyncio.CancelledError:  # a second signal
                raise Interrupted from None
        service.summary.seconds = time.monotonic() - began
        output.show_end(service.summary, as_json=as_json)
    if run.is_interrupted:
        raise Interrupted


@dataclass(frozen=True)
class _Servers:
    """The servers of a run."""

    addresses: Addresses
    started: Servers | None = None
    """Private ones that were started for this run."""
    are_shared: bool = False
    """They are private ones of a `feedmill up`, which also runs a writer."""


@contextmanager
def _find_servers(settings: LocalSettings, say: Callable[[str], None]) -> Iterator[_Servers]:
    """Yield the given servers, else those of the `feedmill up` that runs here, else private ones, migrated.

    Raises:
        ConfigurationError: only one of both servers is given, or private ones can't be started.
    """
    if (addresses := configured(settings)) is not None:
        yield _Servers(addresses)
        return
    if (addresses := find_running(settings)) is not None:
        yield _Servers(addresses, are_shared=True)
        return
    say("starting RabbitMQ and PostgreSQL ...")
    with open_servers(settings) as (addresses, started):
        migrate(addresses.database_url)
        try:
            yield _Servers(addresses, started)
        finally:
            say("stopping RabbitMQ and PostgreSQL ...")


class _Run:
    """A run and the tasks beside it."""

    def __init__(
        self, settings: LocalSettings, servers: _Servers, output: _Output, service: BatchService, *, has_writer: bool
    ) -> None:
        self._settings = settings
        self._servers = servers
        self._output = output
        self._service = service
        self._has_writer = has_writer
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self.is_interrupted = False
        self.health = Health()

    async def run(self, deadline: float | None) -> None:
        """Run to the end, or to `deadline` (monotonic seconds). The first signal winds up, the second one cancels."""
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
        watches = [self._end_with_servers()] if self._servers.are_shared else []
        async with (
            keep_running(self._servers.started, self._output.say),
            self._writer(),
            beside(asyncio.Event(), self._output.follow(self._service.summary, self.health), *watches),
        ):
            await self._service.run(self._stop, self._hurry, self.health)

    def _end_early(self) -> None:
        self._hurry.set()
        self._stop.set()

    async def _end_with_servers(self) -> None:
        """Wait until the process that runs the shared servers has ended; then end the run."""
        while await asyncio.to_thread(find_running, self._settings) is not None:
            await pause(LOOK_SECONDS)
        self._end_early()
        raise ConfigurationError("the servers were stopped that this run used: they were another process's")

    @asynccontextmanager
    async def _writer(self) -> AsyncIterator[None]:
        """Run a writer for the length of the block, if this run has one."""
        if not self._has_writer:
            yield
            return
        environment = child_environment(self._servers.addresses.environment() | FREE_PORTS)
        supervisor = Supervisor([Process("writer", "writer")], environment, self._output.show_line)
        async with supervisor.run():
            failing = asyncio.create_task(supervisor.failed.wait())
            failing.add_done_callback(lambda task: None if task.cancelled() else self._end_early())
            try:
                yield
            finally:
                failing.cancel()
        if supervisor.failed.is_set():
            raise ConfigurationError("the writer refused its configuration; see its line above")


class _LogHandler(logging.Handler):
    """Shows records as `feedmill up` shows those of services."""

    def __init__(self, printer: LogPrinter) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(JsonFormatter("batch"))
        self._printer = printer

    def emit(self, record: logging.LogRecord) -> None:
        self._printer.show("batch", self.format(record))


class _Output:
    """Lines for people if standard error is a terminal, else JSON lines as services log them."""

    def __init__(self, level: str, log_format: LogFormat) -> None:
        self._console = Terminal(stderr=True)
        self._printer = LogPrinter(self._console)
        self._is_terminal = sys.stderr.isatty()
        if self._is_terminal:
            logging.basicConfig(handlers=[_LogHandler(self._printer)], level=level, force=True)
            quieten_libraries()
        else:
            configure_logging("batch", level, log_format)

    def say(self, text: str) -> None:
        """Show what happens now."""
        if self._is_terminal:
            self._console.print(text, soft_wrap=True)
        else:
            log.info(text)

    def show_line(self, name: str, line: str) -> None:
        """Pass on a log line of the writer; at a terminal, only from warnings on."""
        if not self._is_terminal:
            print(line, file=sys.stderr, flush=True)
        elif _level(line) in SERIOUS:
            self._printer.show(name, line)

    async def follow(self, summary: Summary, health: Health) -> None:
        """Show the progress every five seconds, until cancelled."""
        beats = 0
        while True:
            health.beat()
            await pause(BEAT_SECONDS)
            beats += 1
            if beats % LINE_BEATS:
                continue
            if self._is_terminal:
                self._console.print(
                    f"{summary.claimed:,} feeds claimed, {summary.attempts:,} attempts, {summary.entries:,} entries"
                )
            else:
                log.info("progress", extra=summary.as_json())

    def show_end(self, summary: Summary, *, as_json: bool) -> None:
        """Print the summary on standard output, and log it."""
        if not self._is_terminal:
            log.info("ended", extra=summary.as_json())
        for line in [ascii_json(summary.as_json())] if as_json else summary.in_words():
            print(line)


def _level(line: str) -> str:
    """Return the level of a JSON log line, or "error" for another line, as written before logging is set up."""
    try:
        return str(json.loads(line)["level"])
    except (ValueError, KeyError, TypeError):
        return "error"
