"""An HTTP server that sends exactly the bytes of a test, right or wrong, and records the requests."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Script = Callable[[socket.socket, str], None]
"""Gets the connection and the head of the request, and writes the answer."""


class RawServer:
    """Serves one script on a loopback address; `requests` are the heads in the order of arrival.

    With `hasty`, the script runs before anything is read, its head is empty.
    """

    def __init__(
        self, script: Script, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None, *, hasty: bool = False
    ) -> None:
        self._script = script
        self._tls = tls
        self._hasty = hasty
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=300)
        self.host = host
        self.port = self._listener.getsockname()[1]
        self.requests: list[str] = []
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def url(self, path: str = "/feed") -> str:
        scheme = "https" if self._tls else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}{path}"

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(5)
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), self._secured(connection) as secured:
            head = b""
            if self._hasty:
                self._script(secured, "")
                return
            while b"\r\n\r\n" not in head:
                piece = secured.recv(65536)
                if not piece:
                    return
                head += piece
            self.requests.append(head.decode("latin-1"))
            self._script(secured, self.requests[-1])

    def _secured(self, connection: socket.socket) -> socket.socket:
        return self._tls.wrap_socket(connection, server_side=True) if self._tls else connection


@contextmanager
def serving(
    script: Script, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None, *, hasty: bool = False
) -> Iterator[RawServer]:
    server = RawServer(script, host, tls, hasty=hasty)
    try:
        yield server
    finally:
        server.close()


def answer(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    if not any(name.lower() in {"content_length", "transfer_encoding"} for name in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def saying(reply: bytes) -> Script:
    return lambda connection, head: connection.sendall(reply)
