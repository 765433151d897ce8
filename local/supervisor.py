"""Keeps services running as processes of their own: starts them, passes on their lines, restarts what dies."""

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
"""How long a service may take to finish what it has begun: the longest fetch and some."""

RESTART_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Waits before the first, second, … restart of a service that keeps dying."""

STEADY_SECONDS = 30.0
"""A service that ran this long is restarted without a wait that earlier deaths would have earned it."""

LINE_BYTES = 1024 * 1024

OnLine = Callable[[str, str], None]
"""Takes a process's name and one line that it wrote."""


@dataclass(frozen=True)
class Process:
    """A service to run: its name (`fetcher`, or `fetcher-2`) and its package (`fetcher`)."""

    name: str
    service: str
    environment: Mapping[str, str] = field(default_factory=dict)
    """Settings of this process only, over those of all."""


class Supervisor:
    """Runs processes until `stop`. Args: the settings handed to all, and who gets their lines."""

    def __init__(self, processes: Sequence[Process], environment: Mapping[str, str], on_line: OnLine) -> None:
        self._processes = processes
        self._environment = dict(environment)
        self._on_line = on_line
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self.failed = asyncio.Event()
        """Set when a service says that its configuration can't work; restarting it would not help."""

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Supervisor]:
        """Run for the length of the block; at its end every process has ended."""
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
        """Return the process id of the process `name`, if it runs at the moment."""
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
            start_new_session=True,  # Ctrl-C in the terminal is for us; the services get a SIGTERM from us
        )
        self._running[process.name] = child
        if self._stopping.is_set():  # it was told to stop while this one was being started
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
            except ValueError:  # a line beyond LINE_BYTES; what follows it is of interest again
                continue
            if not line:
                return
            with contextlib.suppress(OSError):  # a full disk or a closed terminal must not block the service
                self._on_line(name, line.decode(errors="replace").rstrip("\n"))


def _command(service: str) -> list[str]:
    """Return the command line; the kernel ends the service if we are killed and can't do it ourselves."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise ConfigurationError("setpriv is missing: install the package util-linux")
    return [setpriv, "--pdeathsig", "TERM", "--", sys.executable, "-m", f"services.{service}"]


FREE_PORTS = {"FEEDMILL_METRICS_PORT": "0"}
"""Several services in one place can't share a fixed port; each says in its first line which one it took."""


def all_processes(*, fetchers: int = 1, writers: int = 1) -> list[Process]:
    """Return the processes of a whole pipeline."""
    return [
        Process("scheduler", "scheduler"),
        *_replicas("fetcher", fetchers),
        *_replicas("writer", writers),
    ]


def _replicas(service: str, count: int) -> list[Process]:
    return [Process(service if n == 1 else f"{service}-{n}", service) for n in range(1, count + 1)]
