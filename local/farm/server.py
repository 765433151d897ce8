"""The sockets of the farm and the thread that serves them."""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from itertools import repeat
from threading import Thread

from local.farm.connection import Connection
from local.farm.router import Router

_PORTS = range(20_000, 32_768)
"""Below the ephemeral range: no outgoing connection takes the port while the farm is down."""
_ATTEMPTS = 100
_BACKLOG = 1024
_STOP_SECONDS = 10.0


class Sockets:
    """The same port on many addresses: listening on some, taken but refusing connections on others."""

    def __init__(self, port: int, listening: list[socket.socket], refusing: list[socket.socket]) -> None:
        self.port = port
        self.listening = listening
        self.refusing = refusing

    @classmethod
    def open(cls, hosts: Collection[str], refusing_hosts: Collection[str], port: int = 0) -> Sockets:
        """Take this port on all the hosts, or with 0 one that is free on all of them.

        Raises:
            OSError: the port is taken on one of them; the message names the address.
        """
        candidates: Iterator[int] = repeat(port, 1) if port else _some_ports()
        refusal: OSError | None = None
        for candidate in candidates:
            try:
                return cls._open_all(hosts, refusing_hosts, candidate)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                refusal = error
        assert refusal is not None
        raise refusal

    @classmethod
    def _open_all(cls, hosts: Collection[str], refusing_hosts: Collection[str], port: int) -> Sockets:
        with ExitStack() as opened:
            listening = [opened.enter_context(_bind(host, port, shared_with_past=True)) for host in hosts]
            refusing = [opened.enter_context(_bind(host, port, shared_with_past=False)) for host in refusing_hosts]
            for listener in listening:
                listener.listen(_BACKLOG)
            opened.pop_all()
            return cls(port, listening, refusing)

    def close(self) -> None:
        """Give the port back."""
        for taken in (*self.listening, *self.refusing):
            taken.close()


class ServerThread:
    """Serves the listening sockets from a thread of its own until it is stopped."""

    def __init__(self, sockets: Sockets, router: Router) -> None:
        self._sockets = sockets
        self._router = router
        self._running: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = Thread(target=self._run, name="feed-farm", daemon=True)

    def start(self) -> None:
        """Start serving; returns when the server runs."""
        self._thread.start()
        self._running.result()

    def stop(self) -> None:
        """Close all connections and sockets; returns when the thread has ended."""
        loop, stopping = self._running.result()
        loop.call_soon_threadsafe(stopping.set)
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            raise TimeoutError(f"the feed farm's thread did not end within {_STOP_SECONDS:.0f} s")

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            if self._running.done():
                raise
            self._running.set_exception(error)

    async def _serve(self) -> None:
        """Accept by hand: `loop.create_server` leaves sockets open that arrive while it is being closed."""
        loop = asyncio.get_running_loop()
        stopping = asyncio.Event()
        connections: set[Connection] = set()
        arriving: set[asyncio.Task[object]] = set()

        def connect() -> Connection:
            return Connection(self._router, connections, stopping)

        def accept(listener: socket.socket) -> None:
            for accepted in _accept_all(listener):
                arrival = loop.create_task(loop.connect_accepted_socket(connect, accepted))
                arriving.add(arrival)
                arrival.add_done_callback(arriving.discard)

        for listener in self._sockets.listening:
            listener.setblocking(False)
            loop.add_reader(listener, accept, listener)
        self._running.set_result((loop, stopping))
        await stopping.wait()
        for listener in self._sockets.listening:
            loop.remove_reader(listener)
        await asyncio.gather(*arriving, return_exceptions=True)
        for connection in tuple(connections):
            connection.abort()
        await asyncio.sleep(0)  # lets connection_lost run, which closes the sockets


def _accept_all(listener: socket.socket) -> Iterator[socket.socket]:
    for _ in range(_BACKLOG):
        try:
            accepted, _address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        accepted.setblocking(False)
        yield accepted


def _some_ports() -> Iterator[int]:
    for _ in range(_ATTEMPTS):
        yield secrets.choice(_PORTS)


def _bind(host: str, port: int, *, shared_with_past: bool) -> socket.socket:
    """Take the address: also while connections of an earlier farm linger on it, or only if nobody else can."""
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, shared_with_past)
        taken.bind((host, port))
    except OSError as error:
        taken.close()
        raise OSError(error.errno, f"{host}:{port} can't be taken: {error.strerror}") from error
    return taken
