"""Runs services as processes: starts them, passes on the lines that they write, restarts those that die."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from shared.errors import ConfigurationError
from shared.service import EXIT_MISCONFIGURED
from shared.waiting import pause

STOP_SECONDS = 40.0
"""The time for a service to finish its work after SIGTERM: a little more than the longest fetch."""

RESTART_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Waits before the first, second, … restart in a row."""

STEADY_SECONDS = 30.0
"""After so long a run, earlier deaths no longer count."""

LINE_BYTES = 1024 * 1024

OnLine = Callable[[str, str], None]
"""Takes the name of a process, and one line of its output."""


@dataclass(frozen=True)
class Process:
    """A service to run: its name (`fetcher`, or `fetcher-2`) and its package (`fetcher`)."""

    name: str
    service: str
    environment: Mapping[str, str] = field(default_factory=dict)
    """Settings of this process only, over those of all."""


class Supervisor:
    """Runs processes.

    Args:
        processes: what to run.
        environment: of all processes.
        on_line: called with each line that a process writes.
    """

    def __init__(self, processes: Sequence[Process], environment: Mapping[str, str], on_line: OnLine) -> None:
        self._processes = processes
        self._environment = dict(environment)
        self._on_line = on_line
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self.failed = asyncio.Event()
        """Set when a service refuses its configuration; a restart would not help."""

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Supervisor]:
        """Run the processes for the length of the block; after it all have ended."""
        keepers = [asyncio.create_task(self._keep(process)) for process in self._processes]
        try:
            yield self
        finally:
            self._stopping.set()
            for process in list(self._running.values()):
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
            for result in await asyncio.gather(*keepers, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result

    def pid(self, name: str) -> int | None:
        """Return the id of the process `name`, or None if it does not run at the moment."""
        process = self._running.get(name)
        return process.pid if process and process.returncode is None else None

    def kill(self, name: str) -> None:
        """Send SIGKILL (fault tests)."""
        self._running[name].send_signal(signal.SIGKILL)

    async def _keep(self, process: Process) -> None:
        deaths = 0
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            started = loop.time()
            code = await self._run_once(process)
            if self._stopping.is_set():
                return
            if code == EXIT_MISCONFIGURED:
                self._on_line(process.name, f"{process.name} can't run with this configuration")
                self.failed.set()
                return
            deaths = 0 if loop.time() - started > STEADY_SECONDS else deaths
            wait = RESTART_SECONDS[min(deaths, len(RESTART_SECONDS) - 1)]
            deaths += 1
            self._on_line(process.name, f"{process.name} ended with code {code}, starting it again in {wait:g} s")
            await pause(wait, self._stopping)

    async def _run_once(self, process: Process) -> int:
        child = await asyncio.create_subprocess_exec(
            *_command(process.service),
            env={**self._environment, **process.environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=LINE_BYTES,
            start_new_session=True,  # so that Ctrl-C reaches only us; we send the services a SIGTERM
        )
        self._running[process.name] = child
        if self._stopping.is_set():  # the stop came while this one started
            child.terminate()
        reading = asyncio.create_task(self._pass_on(process.name, child))
        code = await self._wait(child)
        await reading
        return code

    async def _wait(self, child: asyncio.subprocess.Process) -> int:
        ending = asyncio.create_task(self._stopping.wait())
        ended = asyncio.create_task(child.wait())
        try:
            await asyncio.wait({ending, ended}, return_when=asyncio.FIRST_COMPLETED)
            async with asyncio.timeout(STOP_SECONDS):
                return await ended
        except TimeoutError:
            child.kill()
            return await child.wait()
        finally:
            ending.cancel()

    async def _pass_on(self, name: str, child: asyncio.subprocess.Process) -> None:
        assert child.stdout is not None
        while True:
            try:
                line = await child.stdout.readline()
            except ValueError:  # a line beyond LINE_BYTES is dropped
                continue
            if not line:
                return
            with contextlib.suppress(OSError):  # a full disk or a closed terminal must not block the service
                self._on_line(name, line.decode(errors="replace").rstrip("\n"))


def _command(service: str) -> list[str]:
    """Return the command line; with setpriv the kernel ends the service if we are killed."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise ConfigurationError("setpriv is missing: install the package util-linux")
    return [setpriv, "--pdeathsig", "TERM", "--", sys.executable, "-m", f"services.{service}"]


FREE_PORTS = {"FEEDMILL_METRICS_PORT": "0"}
"""Several services on one machine can't share a fixed port. Each logs the port that it chose."""


def all_processes(*, fetchers: int = 1, writers: int = 1, enrichers: int = 0) -> list[Process]:
    """Return the processes of a whole pipeline (without the API, which it does not need).

    Without enrichers results go straight to the writers, if FEEDMILL_ENRICHER says so, too.
    """
    return [
        Process("scheduler", "scheduler"),
        *_replicas("fetcher", fetchers),
        *_replicas("enricher", enrichers),
        *_replicas("writer", writers),
    ]


def _replicas(service: str, count: int) -> list[Process]:
    return [Process(service if n == 1 else f"{service}-{n}", service) for n in range(1, count + 1)]
