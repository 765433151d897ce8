"""HTTP/1.1 for the farm: a client's connection, its requests and the replies to them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple, Protocol

MAX_HEAD_BYTES = 32 * 1024
_HEAD_END = b"\r\n\r\n"


class Request(NamedTuple):
    """One request, and the address and port that it was sent to."""

    host: str
    port: int
    method: str
    path: str
    """The request target as sent, query included."""
    headers: dict[str, str]
    """Names in lower case."""
    keep_alive: bool


class Reply(NamedTuple):
    """One answer without the fields that depend on the time and on the connection."""

    status: int
    fields: bytes
    """Header lines, each with its line end."""
    body: bytes = b""
    delay_seconds: float = 0.0
    body_sent: int | None = None
    """Send only so many bytes of the body, then close the connection; None for all of it."""


class Router(Protocol):
    """Answers requests. `finished` follows each `answer`."""

    def find_host(self, request: Request) -> str | None:
        """Return the host that the request is for, or None if the farm has no such host."""

    def answer(self, request: Request) -> Reply:
        """Return the reply to a request."""

    def finished(self, host: str) -> None:
        """Register that a reply was sent, or that the client left before."""


def make_reply(status: HTTPStatus, text: str, *more_fields: str, content_type: str = "text/plain") -> Reply:
    """Return a reply with this text and these header fields, `Content-Length` added."""
    body = text.encode()
    fields = (f"Content-Type: {content_type}; charset=utf-8", f"Content-Length: {len(body)}", *more_fields)
    return Reply(status.value, join_fields(*fields), body)


def join_fields(*fields: str) -> bytes:
    """Return the header fields as they are sent."""
    return "".join(f"{field}\r\n" for field in fields).encode("latin-1")


def parse_request(head: bytes, host: str, port: int) -> Request:
    """Return the request in `head` (without its empty line). Raises ValueError if it is no request."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, version = first.split(" ")
    named = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in named}
    keep_alive = version == "HTTP/1.1" and "close" not in headers.get("connection", "").lower()
    return Request(host, port, method, path, headers, keep_alive)


class Connection(asyncio.Protocol):
    """One client's connection, with keep-alive: the next request waits until the reply before it is sent."""

    def __init__(self, router: Router, connections: set[Connection], is_stopping: Callable[[], bool]) -> None:
        self._router = router
        self._connections = connections
        self._is_stopping = is_stopping
        self._transport: asyncio.Transport
        self._received = b""
        self._closing = False
        self._pending: tuple[str, asyncio.TimerHandle] | None = None
        """The host whose reply is delayed, and the timer that sends it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)
        if self._is_stopping():
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Answer all complete requests."""
        self._received += data
        self._answer_all()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and its delayed reply."""
        if self._pending:
            host, timer = self._pending
            timer.cancel()
            self._router.finished(host)
        self._connections.discard(self)

    def abort(self) -> None:
        """Drop the connection."""
        self._closing = True
        self._transport.abort()

    def _answer_all(self) -> None:
        while not (self._pending or self._closing):
            head, end, rest = self._received.partition(_HEAD_END)
            if len(head) > MAX_HEAD_BYTES:
                self._reject()
            elif not end:
                return
            else:
                self._received = rest
                self._answer(head)

    def _answer(self, head: bytes) -> None:
        try:
            request = parse_request(head, *self._transport.get_extra_info("sockname"))
        except ValueError:
            self._reject()
            return
        host = self._router.find_host(request)
        if host is None:
            self._reject()
            return
        reply = self._router.answer(request._replace(host=host))
        keep_alive = request.keep_alive and request.method == "GET"
        if not reply.delay_seconds:
            self._send(host, reply, keep_alive)
            return
        loop = asyncio.get_running_loop()
        self._pending = host, loop.call_later(reply.delay_seconds, self._send_late, host, reply, keep_alive)

    def _reject(self) -> None:
        self._write(make_reply(HTTPStatus.BAD_REQUEST, "This is no request to a site of the farm.\n"), keep_alive=False)

    def _send_late(self, host: str, reply: Reply, keep_alive: bool) -> None:
        self._pending = None
        self._send(host, reply, keep_alive)
        self._answer_all()

    def _send(self, host: str, reply: Reply, keep_alive: bool) -> None:
        self._router.finished(host)  # before the client can read the reply, so that it finds it counted
        self._write(reply, keep_alive=keep_alive)

    def _write(self, reply: Reply, *, keep_alive: bool) -> None:
        self._transport.write(_head(reply, int(time.time()), keep_alive) + reply.body[: reply.body_sent])
        if reply.body_sent is not None or not keep_alive:
            self._closing = True
            self._transport.close()


def _head(reply: Reply, now: int, keep_alive: bool) -> bytes:
    return b"%b%b%bConnection: %b\r\n\r\n" % (
        _status_line(reply.status),
        _date_line(now),
        reply.fields,
        b"keep-alive" if keep_alive else b"close",
    )


@lru_cache
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nServer: feed-farm\r\n".encode()


@lru_cache(maxsize=2)
def _date_line(now: int) -> bytes:
    return f"Date: {formatdate(now, usegmt=True)}\r\n".encode()
