"""What a container's health check says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from local.servers.identity import choose_ports
from services.cli.health import look
from shared.observability.telemetry import Health, serve_telemetry


@pytest.fixture
def stranger() -> Iterator[int]:
    """A server that is none of ours."""

    class Teapot(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(418)
            self.end_headers()
            self.wfile.write(b"[]")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Teapot)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_check_names_the_failed_parts_of_a_service() -> None:
    health = Health()
    problem: list[str] = ["nobody answers"]
    health.add_check("database", lambda: problem[0] if problem else None)
    with serve_telemetry(health, "127.0.0.1", 0) as port:
        assert look(port) == {"database": "nobody answers"}
        problem.clear()
        assert look(port) == {}


def test_another_program_on_the_port_is_not_ready(stranger: int) -> None:
    assert "no service of Feedmill" in look(stranger)["service"]


def test_as_a_container_runs_it() -> None:
    (port,) = choose_ports([0])
    command = [sys.executable, "-m", "services.cli.health", str(port)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stdout.startswith(f"service: no answer on 127.0.0.1:{port}")
    health = Health()
    health.add_check("broker", lambda: None)
    with serve_telemetry(health, "127.0.0.1", port):
        ready = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ready.returncode, ready.stdout) == (0, "ready\n")
