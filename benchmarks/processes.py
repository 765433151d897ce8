"""The processes that are measured: the real services under their supervisor, and the farm."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TextIO

from benchmarks.bench import LOGS
from benchmarks.cpu import cpu_seconds, peak_rss_bytes
from benchmarks.laps import BenchError
from local.settings import child_environment
from local.supervisor import Process, Supervisor

START_SECONDS = 60.0
FARM_SECONDS = 60.0
ANSWER_BYTES = 16 * 1024 * 1024

SETTINGS = {
    # Each feed once a round, as fast as it goes: what is measured is work, not politeness. The rest is as shipped.
    "FEEDMILL_ALLOW_NETWORKS": "127.0.0.0/8",
    "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": "0.000001",
    "FEEDMILL_GROUP_JOBS": "400",
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
        """Return what each service has cost so far."""
        self.check()
        return {name: cpu_seconds(pid) for name, pid in self._pids.items()}

    def pid(self, name: str) -> int:
        """Return the process id of a service."""
        return self._pids[name]

    def peak_rss_bytes(self, name: str) -> int:
        """Return the most memory that a service has had at a time."""
        self.check()
        return peak_rss_bytes(self._pids[name])

    def kill(self, name: str) -> None:
        """End a service without letting it finish anything. The supervisor starts it again."""
        self._supervisor.kill(name)

    @contextmanager
    def held_still(self) -> Iterator[None]:
        """Stop the services in their tracks while a queue is filled, so that the filling is not measured."""
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
    """Run these services for the length of the block; what they log goes to files in `LOGS`.

    What stands behind a dash in a name tells processes of one service apart: `fetcher-2`.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as files:
        logs = {name: files.enter_context((LOGS / f"{name}.log").open("w", encoding="utf-8")) for name in names}
        consuming = {name: asyncio.Event() for name in names}

        def on_line(name: str, line: str) -> None:
            _write_line(logs[name], line)
            if '"message": "consuming"' in line or name == "scheduler":
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


def _write_line(log: TextIO, line: str) -> None:
    log.write(line + "\n")


class FarmProcess:
    """A feed farm in a process of its own. Made by `run_farm`."""

    def __init__(self, process: asyncio.subprocess.Process, urls: Sequence[str]) -> None:
        self._process = process
        self.urls = urls

    async def publish(self) -> None:
        """Let every feed replace all its articles: each is a 200 to whoever asks next."""
        await self._tell("publish")

    async def set_latency(self, seconds: float) -> None:
        """Let every answer wait so long."""
        await self._tell(f"latency {seconds}")

    async def cpu_seconds(self) -> float:
        """Return what the farm has cost so far."""
        return float((await self._tell("status"))["cpu_seconds"])

    async def _tell(self, command: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())
        answer = await read_answer(self._process)
        if "error" in answer:
            raise BenchError(f"the farm: {answer['error']}")
        return answer


@asynccontextmanager
async def run_farm(*, feeds: int, items: int, body_bytes: int, edition: str) -> AsyncIterator[FarmProcess]:
    """Run a farm with a host for every twelve feeds for the length of the block."""
    numbers = {"feeds": feeds, "hosts": max(4, feeds // 12), "items": items, "body-bytes": body_bytes}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "local.farm", "--edition", edition),
        *(word for name, number in numbers.items() for word in (f"--{name}", str(number))),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=ANSWER_BYTES,
        start_new_session=True,  # Ctrl-C is for us; it ends when its standard input closes, also if we are killed
    )
    try:
        yield FarmProcess(process, (await read_answer(process))["urls"])
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def read_answer(process: asyncio.subprocess.Process) -> dict[str, Any]:
    """Return the farm's next line. Raises BenchError if it has ended or is stuck."""
    assert process.stdout is not None
    try:
        async with asyncio.timeout(FARM_SECONDS):
            line = await process.stdout.readline()
    except TimeoutError:
        raise BenchError(f"the farm did not answer within {FARM_SECONDS:.0f} s") from None
    if not line:
        raise BenchError("the farm ended")
    answer: dict[str, Any] = json.loads(line)
    return answer
