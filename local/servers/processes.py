"""The servers' operating-system processes: started, watched, ended, and recognised by the next run.

A process number alone proves nothing, since the system gives it away again. With the time of the process's
start, and the boot that this time counts from, it does.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path

from shared.errors import ConfigurationError

logger = logging.getLogger(__name__)

MAX_OPEN_FILES = 65_536
LOG_TAIL_LINES = 15
POLL_SECONDS = 0.05
KEEP_LOG_BYTES = 5_000_000
# Both servers recover from SIGKILL, and a person waits for this.
LEFTOVER_SECONDS = 2.0


@dataclass(frozen=True)
class ProcessId:
    """A process that can be told from a later one with the same number."""

    pid: int
    started: int  # clock ticks after boot
    boot: str

    def is_alive(self) -> bool:
        """Return whether it still runs; a zombie that nobody has reaped yet does not."""
        found = _read_stat(self.pid)
        return found is not None and found.started == self.started and found.state not in "ZX" and self.boot == _boot()


@dataclass(frozen=True)
class Account:
    """The user and group, by number, that a server runs as when we are root."""

    uid: int
    gid: int

    def setpriv(self) -> list[str]:
        """Return the arguments of setpriv that drop root's rights for this account's."""
        return [f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]


@dataclass(frozen=True)
class Command:
    """How to start one server, and where its traces are kept."""

    name: str
    argv: list[str]
    environment: dict[str, str]  # all of it: nothing is inherited, so no PG* or RABBITMQ_* of the user's leaks in
    log: Path
    record: Path  # the process's identity, for a run that comes after one that was killed
    death_signal: str  # what the kernel sends it when we die: TERM, INT
    account: Account | None = None


@dataclass(frozen=True)
class _Stat:
    state: str
    parent: int
    started: int


class ServerProcess:
    """One running server process in a session of its own, so that Ctrl-C in the terminal doesn't reach it.

    The thread that starts it also waits for it. This is necessary: the kernel sends the parent's death
    signal when the *thread* that forked ends, so that thread must live exactly as long as the server may.
    """

    def __init__(self, command: Command) -> None:
        self._command = command
        self._ended = threading.Event()
        self._status: int | None = None
        started: Future[ProcessId] = Future()
        threading.Thread(target=self._run, args=(started,), name=command.name, daemon=True).start()
        self.id = started.result()

    def is_running(self) -> bool:
        """Return whether the process still runs."""
        return not self._ended.is_set()

    def end(self, number: signal.Signals, grace_seconds: float) -> None:
        """Send the signal, wait, kill the rest; return when it and all its descendants are gone."""
        family = find_family(self.id)  # now: they lose their parent with it
        if number == signal.SIGKILL:
            _send(family, signal.SIGKILL)
        elif self.is_running():
            _send([self.id], number)
            if not self._ended.wait(grace_seconds):
                logger.warning("%s did not stop within %.0f s: killed", self._command.name, grace_seconds)
                _send([self.id], signal.SIGKILL)
        self._ended.wait()
        _end_all(family, grace_seconds=2)
        self._command.record.unlink(missing_ok=True)

    def wait_until_ready(self, missing: Callable[[], str | None], seconds: float) -> None:
        """Wait until `missing` returns None; until then it says what is missing.

        Raises ConfigurationError, with the log's last lines, if the process ends or the time is up.
        """
        deadline = time.monotonic() + seconds
        while (reason := missing()) is not None:
            if self._ended.wait(POLL_SECONDS):
                raise self._error(f"ended with status {self._status} before it was ready")
            if time.monotonic() > deadline:
                raise self._error(f"was not ready after {seconds:.0f} s ({reason})")

    def _run(self, started: Future[ProcessId]) -> None:
        command = self._command
        try:
            _rotate(command.log)
            with command.log.open("ab") as log:
                child = subprocess.Popen(
                    [*_wrapper(command), *command.argv],
                    env=command.environment,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            stat = _read_stat(child.pid)
            assert stat is not None, "a child that nobody waited for is there at least as a zombie"
            identity = ProcessId(child.pid, stat.started, _boot())
            command.record.write_text(json.dumps(asdict(identity)), encoding="utf-8")
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for it
            started.set_exception(error)
            return
        started.set_result(identity)
        self._status = child.wait()
        self._ended.set()

    def _error(self, what: str) -> ConfigurationError:
        return ConfigurationError(f"{self._command.name} {what}. {describe_log(self._command.log)}")


def end_leftover(record: Path, number: signal.Signals) -> None:
    """End the server that an earlier run recorded, if it still runs; never any other process."""
    try:
        left = ProcessId(**json.loads(record.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return  # nothing was recorded, or the run was killed while it wrote
    if left.is_alive():
        logger.info("ending process %d of an earlier run (%s)", left.pid, record)
        family = find_family(left)
        _send([left], number)
        _end_all(family, LEFTOVER_SECONDS)
    record.unlink(missing_ok=True)


def find_family(root: ProcessId) -> list[ProcessId]:
    """Return the process and all its descendants that run now, itself first."""
    children: dict[int, list[ProcessId]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _read_stat(int(entry.name))) is not None:
            children.setdefault(stat.parent, []).append(ProcessId(int(entry.name), stat.started, root.boot))
    family = [root] if root.is_alive() else []
    for member in family:  # grows while we walk it: breadth first
        family.extend(children.get(member.pid, ()))
    return family


def describe_log(log: Path) -> str:
    """Name the log file and show its last lines, for an error message."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:] if log.exists() else []
    shown = "".join(f"\n    {line}" for line in lines if line.strip())
    return f"The last lines of {log}:{shown}" if shown else f"Its log {log} is empty"


def _wrapper(command: Command) -> list[str]:
    """Return the commands that set the process's limits, death signal and account, and then become it.

    Raises ConfigurationError if setpriv or prlimit is missing.
    """
    for tool in ("setpriv", "prlimit"):
        if shutil.which(tool) is None:
            raise ConfigurationError(f"{tool} is not installed: apt-get install util-linux")
    wrapper = ["setpriv", f"--pdeathsig={command.death_signal}"]
    wrapper += command.account.setpriv() if command.account else []
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some container engines allow 2^30 open files, and Erlang spends minutes on closing each one that might be.
    limit = soft if 0 < soft < MAX_OPEN_FILES else MAX_OPEN_FILES
    return ["prlimit", f"--nofile={limit}:", "--", *wrapper, "--"]


def _end_all(family: Iterable[ProcessId], grace_seconds: float) -> None:
    deadline = time.monotonic() + grace_seconds
    while alive := [member for member in family if member.is_alive()]:
        if time.monotonic() > deadline:
            _send(alive, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


def _send(processes: Iterable[ProcessId], number: signal.Signals) -> None:
    for process in processes:
        if process.is_alive():
            try:
                os.kill(process.pid, number)
            except ProcessLookupError:
                continue  # it ended in between


def _read_stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()  # the name, in brackets, may hold anything
    return _Stat(state=fields[0], parent=int(fields[1]), started=int(fields[19]))


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""  # some sandboxes have none; the start time has to do


def _rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > KEEP_LOG_BYTES:
        log.replace(log.with_name(log.name + ".old"))
