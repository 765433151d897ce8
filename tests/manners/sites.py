"""Feed servers on loopback that keep an access log: each site is a host, with an answer for every visit."""

from __future__ import annotations

import itertools
import selectors
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import trustme

PATIENCE_SECONDS = 30.0
"""How long a test waits for a visit before it fails. No rule is measured by it."""

AUTHORITY = trustme.CA()
"""The certificate authority of the sites that speak TLS."""

_SO_TIMESTAMPNS = 35  # Linux; the socket module has no name for it
_TIMESTAMP = struct.Struct("@qq")
_HOSTS = (f"127.1.{number // 250}.{number % 250 + 1}" for number in itertools.count())


@dataclass(eq=False)
class Visit:
    """One line of the access log. Times are monotonic seconds of this machine."""

    scheme: str
    host: str
    peer: tuple[str, int]
    method: str
    target: str
    """Path and query as they were sent."""
    lines: tuple[str, ...]
    """The header lines, raw and in order."""
    arrived: float
    """When the kernel took the request in, however long this process slept."""
    ended: float | None = None
    """The moment before the last piece of the answer left. The visitor can't have all of it earlier."""
    status: int = 0
    sent_bytes: int = 0
    cut_off: bool = False
    """The visitor hung up before the answer was complete."""

    def header(self, name: str) -> str | None:
        """Return the value as it was sent, None if there is none; a header may not come twice."""
        values = [value for key, _, value in (line.partition(": ") for line in self.lines) if key.lower() == name]
        assert len(values) <= 1, self.lines
        return values[0] if values else None

    @property
    def validators(self) -> tuple[str | None, str | None]:
        """If-None-Match and If-Modified-Since."""
        return self.header("if-none-match"), self.header("if-modified-since")


Reply = bytes | Callable[[Visit], Iterable[bytes]]
"""Raw bytes, or a function that makes them piece by piece for a visit."""


@dataclass(eq=False)
class Site:
    """One host. `pages`: path → its answers one after the other, the last one for ever."""

    pages: Mapping[str, Sequence[Reply]]
    feeds: Sequence[str] = ("/feed",)
    """The paths that are feeds to be polled."""
    interval: float | None = 0.3
    """The feeds' fixed interval; None: adaptive."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The feeds' own headers, credentials, deadline."""
    tls: bool = False
    """Speak TLS on the same port, too, with clients that begin with it."""
    host: str = field(default_factory=lambda: next(_HOSTS))
    port: int = 0
    visits: list[Visit] = field(default_factory=list)
    connections: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def url(self, path: str = "/feed", scheme: str = "http") -> str:
        """Return the URL of a page. The port is known once the site is served."""
        assert self.port, "not served yet"
        return f"{scheme}://{self.host}:{self.port}{path}"

    def wait_for(self, count: int, path: str = "/feed") -> list[Visit]:
        """Return the first `count` visits to a page, as soon as they were answered."""
        self.wait(lambda: sum(visit.ended is not None for visit in self._visits(path)) >= count)
        return self._visits(path)[:count]

    def wait_for_cut_off(self) -> None:
        """Wait until a visitor has hung up in the middle of an answer."""
        self.wait(lambda: any(visit.cut_off for visit in self.visits))

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait for something that shows in the access log."""
        with self._changed:
            found = self._changed.wait_for(condition, PATIENCE_SECONDS)
        assert found, f"{self.host} was visited {[visit.target for visit in self.visits]}"

    def _visits(self, path: str) -> list[Visit]:
        return [visit for visit in tuple(self.visits) if visit.target == path]

    def enter(self, visit: Visit) -> Reply:
        """Enter a visit into the log and return its answer."""
        with self._changed:
            self.visits.append(visit)
            replies = self.pages.get(visit.target, (NOT_FOUND,))
            self._changed.notify_all()
            return replies[min(len(self._visits(visit.target)), len(replies)) - 1]

    def note(self, visit: Visit, **changes: object) -> None:
        """Add to a line of the log."""
        with self._changed:
            vars(visit).update(changes)
            self._changed.notify_all()


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


@contextmanager
def serving(*sites: Site) -> Iterator[None]:
    """Serve the sites, each on its host and a free port, for the length of the block."""
    listeners = {_listen(site): site for site in sites}
    stop, stopped = socket.socketpair()
    accepting = threading.Thread(target=_accept, args=(listeners, stopped), daemon=True)
    accepting.start()
    try:
        yield
    finally:
        stop.close()
        accepting.join()
        stopped.close()
        for listener in listeners:
            listener.close()


def _listen(site: Site) -> socket.socket:
    listener = socket.create_server((site.host, site.port), backlog=100)
    with suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    site.port = listener.getsockname()[1]
    return listener


def _accept(listeners: Mapping[socket.socket, Site], stopped: socket.socket) -> None:
    threads = []
    with selectors.DefaultSelector() as selector:
        for waiting in (*listeners, stopped):
            selector.register(waiting, selectors.EVENT_READ)
        while stopped not in (ready := [key.fileobj for key, _ in selector.select()]):
            for listener in ready:
                assert isinstance(listener, socket.socket)
                connection, peer = listener.accept()
                connection.settimeout(PATIENCE_SECONDS)
                threads.append(threading.Thread(target=_serve, args=(listeners[listener], connection, peer)))
                threads[-1].start()
    for thread in threads:
        thread.join()


def _serve(site: Site, connection: socket.socket, peer: tuple[str, int]) -> None:
    site.connections += 1
    with suppress(OSError), _secured(site, connection) as stream:
        head, arrived = _read_head(stream)
        if not head:
            return
        request, *lines = head.split("\r\n")
        method, target, _ = request.split(" ")
        scheme = "https" if isinstance(stream, ssl.SSLSocket) else "http"
        visit = Visit(scheme, site.host, peer, method, target, tuple(lines), arrived)
        reply = site.enter(visit)
        try:
            for piece in [reply] if isinstance(reply, bytes) else reply(visit):
                site.note(visit, ended=time.monotonic(), status=visit.status or int(piece[9:12]))
                stream.sendall(piece)
                visit.sent_bytes += len(piece)
        except OSError:
            site.note(visit, cut_off=True)


def _secured(site: Site, connection: socket.socket) -> socket.socket:
    if site.tls and connection.recv(1, socket.MSG_PEEK) == b"\x16":  # a TLS handshake
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        AUTHORITY.issue_cert(site.host).configure_cert(context)
        return context.wrap_socket(connection, server_side=True)
    return connection


def _read_head(stream: socket.socket) -> tuple[str, float]:
    """Return a request's head without its last line break, and when its first bytes arrived."""
    head, arrived = _receive(stream)
    while head and b"\r\n\r\n" not in head:
        piece, _ = _receive(stream)
        if not piece:
            return "", arrived
        head += piece
    return head.decode("latin-1").removesuffix("\r\n\r\n"), arrived


def _receive(stream: socket.socket) -> tuple[bytes, float]:
    """Return some bytes and the moment when they arrived, by the kernel's stamp where there is one."""
    if isinstance(stream, ssl.SSLSocket):
        return stream.recv(65536), time.monotonic()
    piece, extras, _, _ = stream.recvmsg(65536, 256)
    for level, kind, data in extras:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = _TIMESTAMP.unpack(data)
            return piece, _monotonic(seconds + nanoseconds / 1e9)
    return piece, time.monotonic()


def _monotonic(moment: float) -> float:
    """Return a moment of the wall clock on the monotonic one; both have to be looked at without a pause between."""
    while True:
        before, wall, after = time.monotonic(), time.time(), time.monotonic()
        if after - before < 0.001:
            return before - (wall - moment)
