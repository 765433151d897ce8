"""What stands before the app on the network: refuses what no handler should see, and bounds what it may take."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.api.access import bodies, checks
from services.api.access.bodies import Body
from services.api.problems import ProblemError, Show, answer_error

log = logging.getLogger(__name__)

_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}
"""Of each answer that does not set them itself."""


@dataclass(frozen=True)
class Limits:
    """What one process allows."""

    requests: int = 500
    """At a time; most of them wait (for articles)."""
    request_seconds: float = 120.0
    """From the last part of the body to the beginning of the answer."""
    body_seconds: float = bodies.FIRST_SECONDS
    login_seconds: float = bodies.LOGIN_SECONDS
    """As `body_seconds`, for the body of a login."""
    send_seconds: float = 60.0
    """How long a client may take to read the next part of an answer."""
    drain_seconds: float = 2.0
    """How long the rest of a body is read that was refused: a client that still sends would not see the answer."""


class Guard:
    """ASGI: checks and bounds requests, adds headers to answers, and logs both.

    Args:
        app: the API.
        hosts: its names (`checks.check_host`).
        limits: what it allows.
        show: returns what a person sees in place of a problem.
    """

    def __init__(
        self, app: ASGIApp, hosts: frozenset[str], limits: Limits | None = None, show: Show | None = None
    ) -> None:
        self._app = app
        self._show = show
        self._hosts = hosts
        self._limits = limits or Limits()
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        answer = _Answer(send, self._limits.send_seconds)
        began = asyncio.get_running_loop().time()
        try:
            await self._serve(scope, receive, answer)
        finally:
            _log_request(scope, answer.status, asyncio.get_running_loop().time() - began)

    async def _serve(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        is_login = (scope["method"], scope["path"]) == bodies.LOGIN
        seconds = self._limits.login_seconds if is_login else self._limits.body_seconds
        body = Body(receive, bodies.most_bytes(scope["path"]), seconds)
        try:
            checks.check_host(scope["headers"], self._hosts)
            checks.check_origin(scope["method"], scope["headers"])
            checks.check_url(scope["path"], scope["query_string"])
            await self._check_length(scope, receive)
            if is_login:  # nobody without a token holds a place while others wait for his body
                await body.read_ahead()
            async with self._place(), self._time(body, answer):
                await self._app(scope, body.receive, answer.send)
        except Exception as error:
            if answer.status is not None:
                raise
            await answer_error(error, scope, receive, answer.send, self._show)

    async def _check_length(self, scope: Scope, receive: Receive) -> None:
        length = checks.all_of(scope["headers"], b"content-length")
        most = bodies.most_bytes(scope["path"])
        if length and length[0].isdecimal() and int(length[0]) > most:
            if not checks.all_of(scope["headers"], b"expect"):  # else the client waits for our word
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._limits.drain_seconds):
                        while (await receive()).get("more_body", False):
                            pass
            raise bodies.TooLarge(most)

    @contextlib.asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Hold a place among the requests that run."""
        if self._running >= self._limits.requests:
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{self._running} requests run already: try again",
                {"Retry-After": "1"},
            )
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    @contextlib.asynccontextmanager
    async def _time(self, body: Body, answer: _Answer) -> AsyncIterator[None]:
        """Bound the time until the answer begins."""
        seconds = self._limits.request_seconds
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds) as limit:

                def move() -> None:
                    if not limit.expired():
                        limit.reschedule(None if answer.status else loop.time() + seconds)

                body.on_part = answer.on_begin = move
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE, f"this took longer than {seconds:g} s: try again", {"Retry-After": "5"}
            ) from error


class _Answer:
    """The answer to one request, on its way to the client."""

    def __init__(self, send: Send, seconds: float) -> None:
        self._send = send
        self._seconds = seconds
        self.status: int | None = None
        """None: it has not begun."""
        self.on_begin: Callable[[], None] = lambda: None

    async def send(self, message: Message) -> None:
        """Send a message.

        Raises:
            TimeoutError: the client does not read.
        """
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.on_begin()
            headers = list(message.get("headers", ()))
            names = {name.lower() for name, _ in headers}
            headers += [(name, value) for name, value in _HEADERS.items() if name not in names]
            message = {**message, "headers": headers}
        async with asyncio.timeout(self._seconds):
            await self._send(message)


def _log_request(scope: Scope, status: int | None, seconds: float) -> None:
    """Log one line: of a change at INFO, of others at DEBUG. Neither query nor headers, where secrets may be."""
    actor = scope.get("state", {}).get("actor")
    is_change = scope["method"] not in checks.READING
    log.log(
        logging.INFO if is_change else logging.DEBUG,
        "request",
        extra={
            "method": scope["method"],
            "path": scope["path"][:200],
            "status": status,
            "seconds": round(seconds, 3),
            "actor": actor.name if actor else None,
            "address": scope["client"][0] if scope.get("client") else None,
        },
    )
