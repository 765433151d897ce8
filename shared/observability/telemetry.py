"""The HTTP server of every service: /metrics, /healthz, /readyz, and pages of a service's own."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, Gauge, generate_latest

from shared.errors import ConfigurationError
from shared.observability.secrets import mask_within

log = logging.getLogger(__name__)

READY = Gauge("feedmill_ready", "1 while every readiness check passes (/readyz answers 200).")

STALLED_AFTER_SECONDS = 30.0
"""A main loop without a beat for this long counts as dead (/healthz answers 503)."""

Check = Callable[[], str | None]
"""Returns None if all is well, else what is wrong, in words."""


class Health:
    """What /healthz and /readyz report: healthy while the main loop beats, ready while every check passes.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_beat = clock()
        self._checks: dict[str, Check] = {}
        self._warnings: dict[str, Check] = {}
        self.pages: dict[str, Callable[[], Any]] = {}

    def beat(self) -> None:
        """Note that the main loop runs."""
        self._last_beat = self._clock()

    def add_check(self, name: str, check: Check) -> None:
        """Let readiness depend on `check`."""
        self._checks[name] = check

    def add_warning(self, name: str, check: Check) -> None:
        """Report `check` on /healthz and /readyz without changing their status: a restart would not help."""
        self._warnings[name] = check

    def add_page(self, path: str, page: Callable[[], Any]) -> None:
        """Serve what `page` returns as JSON at `path`. It is called on another thread than the main loop."""
        self.pages[path] = page

    def failures(self) -> Mapping[str, str]:
        """Return the failed readiness checks with their reasons. A service without any check is still starting."""
        if not self._checks:
            return {"service": "starting"}
        return _failed(self._checks)

    def warnings(self) -> Mapping[str, str]:
        """Return the warnings by name."""
        return _failed(self._warnings)

    def stalled(self) -> bool:
        """Return whether the main loop has stopped beating."""
        return self._clock() - self._last_beat > STALLED_AFTER_SECONDS


def _failed(checks: Mapping[str, Check]) -> Mapping[str, str]:
    results = ((name, check()) for name, check in checks.items())
    return {name: reason for name, reason in results if reason is not None}


Answer = tuple[HTTPStatus, str, bytes]


@contextmanager
def serve_telemetry(health: Health, host: str, port: int) -> Iterator[int]:
    """Serve until the block ends; yield the port (a free one if `port` is 0).

    Raises:
        ConfigurationError: the port is taken, or the address is not this machine's.
    """
    routes: dict[str, Callable[[], Answer]] = {
        "/metrics": lambda: (HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest()),
        "/healthz": lambda: _report({"main_loop": "stalled"} if health.stalled() else {}, health.warnings()),
        "/readyz": lambda: _report(health.failures(), health.warnings()),
    }
    try:
        server = ThreadingHTTPServer((host, port), _handler_for(routes, health.pages))
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port} (FEEDMILL_METRICS_HOST, FEEDMILL_METRICS_PORT): {error}"
        ) from error
    server.daemon_threads = True
    READY.set_function(lambda: 0 if health.failures() else 1)
    thread = threading.Thread(target=server.serve_forever, name="telemetry", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _report(failures: Mapping[str, str], warnings: Mapping[str, str]) -> Answer:
    said = {"ok": not failures, "failures": dict(failures), "warnings": dict(warnings)}
    body = json.dumps(mask_within(said)).encode()
    return HTTPStatus.SERVICE_UNAVAILABLE if failures else HTTPStatus.OK, "application/json", body


def _show(page: Callable[[], Any]) -> Answer:
    return HTTPStatus.OK, "application/json", json.dumps(mask_within(page()), indent=1).encode()


def _handler_for(
    routes: Mapping[str, Callable[[], Answer]], pages: Mapping[str, Callable[[], Any]]
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path in routes:
                status, content_type, body = routes[path]()
            elif path in pages:
                status, content_type, body = _show(pages[path])
            else:
                status, content_type, body = HTTPStatus.NOT_FOUND, "text/plain", "\n".join([*routes, *pages]).encode()
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
            log.debug(format, *args)

    return Handler
