"""The API as a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 60


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


class ApiProcess:
    """Runs `python -m services.api` on one port, also after it was killed."""

    def __init__(self, database_url: str, amqp_url: str, *, is_open: bool = True) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = os.environ | {
            "FEEDMILL_DATABASE_URL": database_url,
            "FEEDMILL_AMQP_URL": amqp_url,
            "FEEDMILL_API_PORT": str(self.port),
            "FEEDMILL_API_OPEN": str(is_open),
            "PYTHONPATH": str(ROOT),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ApiProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "services.api"], env=self._environment, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=10):
                    return
            except OSError:
                time.sleep(0.1)
        code = self._process.poll()
        self.kill()  # nobody else will: the block has not begun
        raise AssertionError(f"the API did not start: {code}")

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it as `kill -9` does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """End it by SIGTERM; return its exit code."""
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
