"""uvicorn's protocol, with bounds that it lacks: for the time and the size of a request's head, and of its trailers."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 15.0
"""From connecting, or from the answer before, until a head is complete."""

HEAD_BYTES = 64 * 1024
"""Of a head; also of what stands between two parts of a body, or after the last: the frames of chunks, and trailers."""

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections that send no head, an endless one, endless trailers, or a body's rest after its answer."""

    head_seconds = HEAD_SECONDS

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first head."""
        self._bytes = 0  # that came and are no body, since the last part of a body or the last head
        self._is_head = True
        self._head_end: asyncio.TimerHandle | None = None
        super().connection_made(transport)  # type: ignore[arg-type]
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes that are no body."""
        self._bytes += len(data)
        super().data_received(data)
        if self._bytes > HEAD_BYTES and not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete:  # else it would stand within an answer
                self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begin a head."""
        self._is_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer is none, and nobody asks for it."""
        if self._is_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Let the app run for as long as it needs."""
        self._bytes = 0
        self._is_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count anew."""
        self._bytes = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Wait for the next head, unless it was pipelined."""
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._await_head()

    def _await_head(self) -> None:
        self._stop_waiting()
        self._head_end = self.loop.call_later(self.head_seconds, self._close)

    def _stop_waiting(self) -> None:
        if self._head_end is not None:
            self._head_end.cancel()
            self._head_end = None

    def _close(self) -> Any:
        if not self.transport.is_closing():
            self.transport.close()
