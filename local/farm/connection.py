"""One client's connection: requests come in, replies go out in the same order, late if they have to be."""

from __future__ import annotations

import asyncio
import time

from local.farm.http import (
    MAX_HEAD_BYTES,
    BadRequestError,
    Reply,
    may_become_request,
    parse_request,
    reply_head,
)
from local.farm.router import UNNAMED, Router

_HEAD_END = b"\r\n\r\n"


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive and pipelining; the next request waits until the reply before it is out."""

    def __init__(self, router: Router, connections: set[Connection], stopping: asyncio.Event) -> None:
        self._router = router
        self._connections = connections
        self._stopping = stopping
        self._transport: asyncio.Transport
        self._host = ""
        self._port = 0
        self._received = b""
        self._closing = False
        self._pending: tuple[Reply, asyncio.TimerHandle] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection; the address that it came to is the site's host, unless all share one."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._host, self._port = transport.get_extra_info("sockname")
        if self._router.by_name:
            self._host = UNNAMED
        self._connections.add(self)
        self._router.connected(self._host)
        if self._stopping.is_set():
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._received += data
        if self._pending and len(self._received) > MAX_HEAD_BYTES:
            self.abort()  # nobody pipelines that much
            return
        self._answer_all()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and the reply that nobody waits for any more."""
        if self._pending:
            reply, timer = self._pending
            timer.cancel()
            self._router.finished(self._host, reply, complete=False)
        self._connections.discard(self)
        self._router.disconnected(self._host)

    def abort(self) -> None:
        """Drop the connection without a word."""
        self._closing = True
        self._transport.abort()

    def _answer_all(self) -> None:
        while not (self._pending or self._closing):
            head, end, rest = self._received.lstrip(b"\r\n").partition(_HEAD_END)
            if len(head) > MAX_HEAD_BYTES:
                self._reject("the header is too large")
            elif end:
                self._received = rest
                self._answer(head)
            elif head and not may_become_request(head):
                self._reject("not a request")
            else:
                return

    def _answer(self, head: bytes) -> None:
        try:
            request = parse_request(head, self._host, self._port)
            if self._router.by_name:
                self._move_to(request.headers.get("host", ""))
                request = request._replace(host=self._host)
        except BadRequestError as error:
            self._reject(str(error))
            return
        reply = self._router.answer(request)
        keep_alive = request.keep_alive and request.method == "GET"
        if not reply.delay_seconds:
            self._send(reply, keep_alive=keep_alive)
            return
        loop = asyncio.get_running_loop()
        self._pending = reply, loop.call_later(reply.delay_seconds, self._send_late, reply, keep_alive)

    def _move_to(self, named: str) -> None:
        """Let the connection be one to the host that its request names."""
        host = self._router.find_host(named)
        if host is None:
            raise BadRequestError("no such host")
        if host != self._host:
            self._router.disconnected(self._host)
            self._host = host
            self._router.connected(host)

    def _reject(self, reason: str) -> None:
        self._send(self._router.reject(self._host, reason), keep_alive=False)

    def _send_late(self, reply: Reply, keep_alive: bool) -> None:
        self._pending = None
        self._send(reply, keep_alive=keep_alive)
        self._answer_all()

    def _send(self, reply: Reply, *, keep_alive: bool) -> None:
        is_cut = reply.body_sent is not None
        is_lost = self._transport.is_closing()
        head = reply_head(reply, now=int(time.time()), keep_alive=keep_alive)
        # Counted first: whoever has read the answer finds it counted, and is never counted twice.
        self._router.finished(self._host, reply, complete=not (is_cut or is_lost))
        self._transport.write(head + reply.body[: reply.body_sent])
        if is_cut or not keep_alive:
            self._closing = True
            self._transport.close()
