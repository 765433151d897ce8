"""A server on loopback that counts requests by path. The path decides whether it answers or hangs."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

FEED = (
    b'<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>http://news.example/</link>'
    b"<item><title>First</title><link>http://news.example/1</link><description>Text</description></item>"
    b"</channel></rss>"
)
SLOW_SECONDS = 1.3

GOOD = b"HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\nContent-Length: %d\r\n\r\n" % len(FEED) + FEED


class CountingServer:
    """`/hang/...` answers once the gate is open, `/mute/...` never, `/garbage/...` with nonsense, all else at once.

    `/host/NAME/...` takes `SLOW_SECONDS`, and `/from/NAME/to/URL` redirects then; both are watched by the name of the
    host: `arrivals` are the moments of its requests, `most_at_once` how many were open at a time. `requests` counts by
    path; `hanging` are the requests that wait.
    """

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.hanging = 0
        self.arrivals: dict[str, list[float]] = defaultdict(list)
        self.most_at_once: Counter[str] = Counter()
        self._open: Counter[str] = Counter()
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._gate = asyncio.Event()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="counting server")

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(10)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._loop.close()

    def release(self) -> None:
        """Let all answer that hangs, now and from now on."""
        self._loop.call_soon_threadsafe(self._gate.set)

    def most_requests(self) -> int:
        """Return how often the path was asked for that was asked for most often."""
        return max(self.requests.values(), default=0)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=1000)
        host, port = server.sockets[0].getsockname()[:2]
        self.url = f"http://{host}:{port}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.01)  # the transports end in a turn of their own

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended = (OSError, asyncio.IncompleteReadError, asyncio.CancelledError)
        with contextlib.suppress(*ended), _closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            self.requests[path] += 1
            if path.startswith(("/host/", "/from/")):
                await self._watch(path, reader, writer)
                return
            await self._wait(path, reader)
            writer.write(b"\x00\xffgarbage\r\n\r\n" if path.startswith("/garbage/") else GOOD)
            await writer.drain()

    async def _watch(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer slowly, and count the open requests of a host. A client that hangs up does not count any more."""
        _, kind, host, *_ = path.split("/")
        self.arrivals[host].append(time.monotonic())
        self._open[host] += 1
        self.most_at_once[host] = max(self.most_at_once[host], self._open[host])
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SLOW_SECONDS):
                    await reader.read()
                    return
        finally:
            self._open[host] -= 1
        target = path.partition("/to/")[2]
        redirect = f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()
        writer.write(redirect if kind == "from" else GOOD)
        await writer.drain()

    async def _wait(self, path: str, reader: asyncio.StreamReader) -> None:
        if path.startswith("/mute/"):
            await reader.read()  # until the client has had enough
        if path.startswith("/hang/") and not self._gate.is_set():
            self.hanging += 1
            await self._gate.wait()
            self.hanging -= 1


@contextmanager
def _closing(writer: asyncio.StreamWriter) -> Iterator[None]:
    try:
        yield
    finally:
        writer.close()


@contextmanager
def counting_server() -> Iterator[CountingServer]:
    server = CountingServer()
    server.start()
    try:
        yield server
    finally:
        server.close()
