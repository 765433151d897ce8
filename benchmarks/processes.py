"""The real services, run and measured as processes under their supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager

from benchmarks.bench import LOGS, publish_all, wait_until
from benchmarks.cpu import cpu_seconds, peak_rss_bytes
from benchmarks.laps import BenchError, spent
from local.settings import child_environment
from local.supervisor import Process, Supervisor
from shared.broker.port import Publication, Session

START_SECONDS = 60.0

SETTINGS = {
    # Politeness is switched off, since work is measured. All other settings are the defaults.
    "FEEDMILL_ALLOW_NETWORKS": "127.0.0.0/8",
    "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": "0.000001",
    "FEEDMILL_HOST_CONCURRENCY": "10000",
    "FEEDMILL_MAX_RETRIES": "0",  # a fetch that fails is counted, not waited for
    "FEEDMILL_MIN_POLL_SECONDS": "7200",
    "FEEDMILL_METRICS_PORT": "0",
    "FEEDMILL_LOG_LEVEL": "INFO",  # by which we see that they are up; as shipped, and part of the cost
}


class Services:
    """Services that run as they do under `feedmill up`. Made by `run_services`."""

    def __init__(self, supervisor: Supervisor, pids: Mapping[str, int]) -> None:
        self._supervisor = supervisor
        self._pids = pids

    def check(self) -> None:
        """Raise BenchError if a service has died since the start."""
        for name, pid in self._pids.items():
            if self._supervisor.pid(name) != pid:
                raise BenchError(f"{name} died: see {LOGS / name}.log")

    def cpu_seconds(self) -> dict[str, float]:
        """Return the CPU seconds of each service so far."""
        self.check()
        return {name: cpu_seconds(pid) for name, pid in self._pids.items()}

    def pid(self, name: str) -> int:
        """Return the process id of a service."""
        return self._pids[name]

    def peak_rss_bytes(self, name: str) -> int:
        """Return the peak memory of a service."""
        self.check()
        return peak_rss_bytes(self._pids[name])

    def kill(self, name: str) -> None:
        """Send SIGKILL to a service. The supervisor starts it again."""
        self._supervisor.kill(name)

    async def work_off(
        self,
        session: Session,
        publications: Sequence[Publication],
        done: Callable[[], Awaitable[bool]],
        *,
        what: str,
        seconds: float,
    ) -> tuple[float, dict[str, float]]:
        """Publish while the services are stopped, continue them, and wait until `done`.

        Returns the seconds since they continued, and the CPU seconds of each service.
        """
        with self._stopped():
            await publish_all(session, publications)
            before = self.cpu_seconds()
        start = time.monotonic()
        end = await wait_until(done, what=what, seconds=seconds, check=self.check)
        return end - start, spent(before, self.cpu_seconds())

    @contextmanager
    def _stopped(self) -> Iterator[None]:
        """Stop the services (SIGSTOP) during the block, so that filling a queue is not measured."""
        self.check()
        for pid in self._pids.values():
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in self._pids.values():
                os.kill(pid, signal.SIGCONT)


@asynccontextmanager
async def run_services(names: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[Services]:
    """Run these services for the length of the block; their logs are files in `LOGS`.

    Several processes of one service have numbered names: `fetcher-2`.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as files:
        logs = {name: files.enter_context((LOGS / f"{name}.log").open("w", encoding="utf-8")) for name in names}
        consuming = {name: asyncio.Event() for name in names}

        def on_line(name: str, line: str) -> None:
            logs[name].write(line + "\n")
            if '"message": "consuming"' in line or name.partition("-")[0] == "scheduler":
                consuming[name].set()

        processes = [Process(name, name.partition("-")[0]) for name in names]
        supervisor = Supervisor(processes, child_environment({**environment, **SETTINGS}), on_line)
        async with supervisor.run():
            await _wait_until_started(supervisor, consuming)
            yield Services(supervisor, {name: pid for name in names if (pid := supervisor.pid(name)) is not None})


async def _wait_until_started(supervisor: Supervisor, consuming: Mapping[str, asyncio.Event]) -> None:
    try:
        async with asyncio.timeout(START_SECONDS):
            for name, event in consuming.items():
                while not event.is_set():
                    if supervisor.failed.is_set():
                        raise BenchError(f"{name} refused its configuration: see {LOGS}")
                    await asyncio.sleep(0.02)
    except TimeoutError:
        raise BenchError(
            f"not all of {', '.join(consuming)} started within {START_SECONDS:.0f} s: see {LOGS}"
        ) from None
