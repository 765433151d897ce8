"""An HTTP server that says exactly the bytes that a test gives it, right or wrong, and remembers what it was asked."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Script = Callable[[socket.socket, str], None]
"""Gets the connection and the request's head; writes what it likes."""


class RawServer:
    """Serves one script on a loopback address; `requests` are the heads in the order of arrival."""

    def __init__(self, script: Script, host: str = "127.0.0.1") -> None:
        self._script = script
        self._listener = socket.create_server((host, 0))
        self.host = host
        self.port = self._listener.getsockname()[1]
        self.requests: list[str] = []
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def url(self, path: str = "/feed") -> str:
        return f"http://{self.host}:{self.port}{path}"

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
        with connection, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65536)
                if not piece:
                    return
                head += piece
            self.requests.append(head.decode("latin-1"))
            self._script(connection, self.requests[-1])


@contextmanager
def serving(script: Script, host: str = "127.0.0.1") -> Iterator[RawServer]:
    server = RawServer(script, host)
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
