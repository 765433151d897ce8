"""What stands around the app: probes on its own port, and metrics of each operation."""

from __future__ import annotations

import time
from http import HTTPStatus

from fastapi.routing import APIRoute
from prometheus_client import Counter, Gauge, Histogram
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.observability.telemetry import Health

REQUESTS = Counter(
    "feedmill_api_requests_total", "Requests answered, by operation and HTTP status.", ["operation", "status"]
)
SECONDS = Histogram(
    "feedmill_api_request_seconds",
    "Time of one request, until the last byte of its answer.",
    ["operation"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
ACTIVE = Gauge("feedmill_api_requests_active", "Requests under way in this process.")

NO_OPERATION = "none"
"""The operation of a request that none is for: a wrong path, or one that was refused before it was looked at."""

CLOSED_BY_CLIENT = 499
"""The status that is counted if the client went away before the answer began (nginx's number for it)."""


class Probed:
    """Answers GET /healthz and /readyz before the app: no token, no Host check, no database.

    The port may be open to the world, so the answer names the checks that fail and not the reasons; /readyz on the
    port for metrics tells them.
    """

    def __init__(self, app: ASGIApp, health: Health) -> None:
        self._app = app
        self._health = health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        if scope["type"] != "http" or scope["path"] not in {"/healthz", "/readyz"}:
            await self._app(scope, receive, send)
            return
        if scope["path"] == "/healthz":
            failing = ["main_loop"] if self._health.stalled() else []
        else:
            failing = sorted(self._health.failures())
        status = HTTPStatus.SERVICE_UNAVAILABLE if failing else HTTPStatus.OK
        answer = JSONResponse({"ok": not failing, "failures": failing}, status, {"Cache-Control": "no-store"})
        await answer(scope, receive, send)


class Measured:
    """Counts the app's answers, by operation and status, and their time."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        began = time.perf_counter()
        ACTIVE.inc()
        try:
            await self._app(scope, receive, answer.send)
        except Exception:
            if not answer.ended:  # else Starlette's: its handler has logged and answered, and it raises all the same
                raise
        finally:
            ACTIVE.dec()
            route = scope.get("route")
            operation = route.name if isinstance(route, APIRoute) else NO_OPERATION
            REQUESTS.labels(operation, str(answer.status)).inc()
            SECONDS.labels(operation).observe(time.perf_counter() - began)


class _Answer:
    """What was sent of one answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = CLOSED_BY_CLIENT
        self.ended = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.ended = True
