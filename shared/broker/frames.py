"""The bytes of an AMQP connection, cut into frames: those of messages pass the library by.

aiormq reads each frame in three steps, looks at it in two tasks, and starts a task and several futures per message.
That was a third of what an unchanged feed cost the fetcher's event loop. So frames of messages (deliveries, returns,
confirms) go straight to their `MessageChannel`. All others (handshake, calls and answers, heartbeats, closing) go to
the library as before.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, SupportsIndex

from aiormq.connection import TransportFactory
from aiormq.exceptions import AMQPConnectionError
from yarl import URL

METHOD, HEADER, BODY = 1, 2, 3
"""Kinds of frames (AMQP 0-9-1, 2.3.5)."""

BLOCKED, UNBLOCKED = 0x000A_003C, 0x000A_003D
"""connection.blocked and connection.unblocked: class and method in one number."""

FRAME_END = b"\xce"

_START = struct.Struct(">BHI")
_HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00" + FRAME_END
_HEARTBEAT_SECONDS = 1.0

_SOCKET_OPTIONS = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 30_000}
"""A machine that vanished is noticed after 30 seconds, whether we send or not."""

Take = Callable[[int, bytes], bool]
"""Takes a frame's kind and payload; returns whether it was a message's."""


class FrameReader(asyncio.StreamReader):
    """The stream that the library reads, without the frames that a `MessageChannel` has taken."""

    def __init__(self) -> None:
        super().__init__()
        self.channels: dict[int, Take] = {}
        """Who takes the frames of a channel, by its number."""
        self.is_blocked = False
        """The broker takes no messages at the moment (memory or disk alarm)."""
        self._rest = b""
        self._heard_at = 0.0

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        """Hand on all frames that are complete."""
        data = self._rest + bytes(data)
        at, others, has_taken = 0, list[bytes](), False
        while len(data) - at >= _START.size:
            kind, number, size = _START.unpack_from(data, at)
            end = at + _START.size + size + len(FRAME_END)
            if end > len(data):
                break
            take = self.channels.get(number)
            if take is not None and take(kind, data[at + _START.size : end - 1]):
                has_taken = True
            else:
                others.append(data[at:end])
                if number == 0 and kind == METHOD:
                    self._note_blocked(data, at + _START.size)
            at = end
        self._rest = data[at:]
        if has_taken:
            others += self._heartbeat()
        if others:
            super().feed_data(b"".join(others))

    def feed_eof(self) -> None:
        """Hand on what is left: the library says what is wrong with it."""
        if self._rest:
            super().feed_data(self._rest)
        super().feed_eof()

    def _note_blocked(self, data: bytes, at: int) -> None:
        method = int.from_bytes(data[at : at + 4], "big")
        if method in {BLOCKED, UNBLOCKED}:
            self.is_blocked = method == BLOCKED

    def _heartbeat(self) -> list[bytes]:
        """Return a heartbeat now and then: a broker that sends messages sends none, and the library waits for one."""
        now = asyncio.get_running_loop().time()
        if now - self._heard_at < _HEARTBEAT_SECONDS:
            return []
        self._heard_at = now
        return [_HEARTBEAT]


class FrameWriter(asyncio.StreamWriter):
    """Sends everything that is written in one turn of the event loop at once. For the broker, too, that is cheaper."""

    def __init__(
        self,
        transport: asyncio.WriteTransport,
        protocol: asyncio.StreamReaderProtocol,
        reader: FrameReader,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(transport, protocol, reader, loop)
        self._event_loop = loop
        self._pending: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send `data` at the end of this turn."""
        if not self._pending:
            self._event_loop.call_soon(self.flush)
        self._pending.append(bytes(data))

    def flush(self) -> None:
        """Send what is pending now."""
        pending, self._pending = self._pending, []
        if pending and not self.transport.is_closing():
            super().write(b"".join(pending))

    async def drain(self) -> None:
        """Send what is pending, and wait until the socket has taken most of it."""
        self.flush()
        await super().drain()

    def write_eof(self) -> None:
        """Send what is pending, and end."""
        self.flush()
        super().write_eof()

    def close(self) -> None:
        """Send what is pending, and close."""
        self.flush()
        super().close()


class FrameTransport(TransportFactory):
    """Makes the library's connections. Afterwards it has their two ends."""

    reader: FrameReader
    writer: FrameWriter

    async def create(self, url: URL, **kwargs: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect; over TLS if the URL says so. Raises AMQPConnectionError."""
        tls = kwargs.pop("ssl_context_provider")
        context = await tls.get_context() if url.scheme == "amqps" else None
        assert url.host is not None
        assert url.port is not None
        loop = asyncio.get_running_loop()
        self.reader = FrameReader()
        protocol = asyncio.StreamReaderProtocol(self.reader)
        try:
            transport, _ = await loop.create_connection(lambda: protocol, url.host, url.port, ssl=context, **kwargs)
        except OSError as error:
            raise AMQPConnectionError(*error.args) from error
        _keep_alive(transport.get_extra_info("socket"))
        self.writer = FrameWriter(transport, protocol, self.reader, loop)
        return self.reader, self.writer


def _keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SOCKET_OPTIONS.items():
        with suppress(AttributeError):  # where the system doesn't know it
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
