"""The services under test as processes, with a day's spans shortened to seconds."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from local.settings import child_environment

RETRY_SECONDS = 1.0
MAX_RETRIES = 2
THROTTLE_SECONDS = 0.5
DEADLINE_SECONDS = 2.0
SPAN_SECONDS = 1.0
"""Replaces the hour between two 410 and the day of a permanent redirect."""
MIN_INTERVAL_SECONDS = 0.2
MAX_BODY_BYTES = 200_000
CONTACT_URL = "https://feedmill.example/contact"
ALL = ("scheduler", "fetcher", "writer")

SETTINGS = {
    "FEEDMILL_ALLOW_NETWORKS": "127.0.0.0/8",
    "FEEDMILL_CONTACT_URL": CONTACT_URL,
    "FEEDMILL_CONNECT_FAILURE_SECONDS": "1",
    "FEEDMILL_FAST_DELAY_SECONDS": "0.5",
    "FEEDMILL_FETCH_DEADLINE_SECONDS": str(DEADLINE_SECONDS),
    "FEEDMILL_FETCH_THREADS": "16",
    "FEEDMILL_GONE_SPAN_SECONDS": str(SPAN_SECONDS),
    # One at a time: what an answer asks of the pace is known before the host's next request leaves.
    "FEEDMILL_HOST_CONCURRENCY": "1",
    "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": str(MIN_INTERVAL_SECONDS),
    "FEEDMILL_MAX_BODY_BYTES": str(MAX_BODY_BYTES),
    "FEEDMILL_MAX_RETRIES": str(MAX_RETRIES),
    "FEEDMILL_METRICS_PORT": "0",
    "FEEDMILL_MOVED_SPAN_SECONDS": str(SPAN_SECONDS),
    "FEEDMILL_RETRY_DELAY_SECONDS": str(RETRY_SECONDS),
    "FEEDMILL_THROTTLE_SECONDS": str(THROTTLE_SECONDS),
    "FEEDMILL_TICK_SECONDS": "0.1",
    "FEEDMILL_WRITER_LINGER_SECONDS": "0.02",
}


@contextmanager
def running(names: tuple[str, ...], logs: Path, settings: Mapping[str, str]) -> Iterator[dict[str, int]]:
    """Run services for the length of the block, their log lines in `logs`; yield their pids by name."""
    with ExitStack() as stack:
        processes = [stack.enter_context(_running(name, logs, {**SETTINGS, **settings})) for name in names]
        yield {name: process.pid for name, process in zip(names, processes, strict=True)}
        for process in processes:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(20) for process in processes] == [0] * len(names)


@contextmanager
def _running(name: str, logs: Path, settings: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with (
        (logs / f"{name}.log").open("ab") as log,
        subprocess.Popen(
            [sys.executable, "-m", f"services.{name}"], env=child_environment(settings), stderr=log
        ) as process,
    ):
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
