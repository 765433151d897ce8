"""An httpx transport to an ASGI app in this process, which streams answers (httpx's own collects them first)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
from starlette.types import ASGIApp, Message

PARTS = 16
"""So many parts of a body wait for who reads them; then the app waits."""


class WithinProcess(httpx.AsyncBaseTransport):
    """Sends requests to `app`. What the app raises, the caller gets.

    A request that is given up ends as on a server, only sooner: the app is told that its client is gone, and what it
    does for it is cancelled.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._exchanges: set[_Exchange] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response as soon as it begins."""
        exchange = _Exchange(self._app, request)
        self._exchanges.add(exchange)
        exchange.task.add_done_callback(lambda _task: self._exchanges.discard(exchange))
        begun = asyncio.ensure_future(exchange.begun.wait())
        try:
            await asyncio.wait({exchange.task, begun}, return_when=asyncio.FIRST_COMPLETED)
            if not exchange.begun.is_set():
                await exchange.result()
                raise httpx.RemoteProtocolError("the app ended without an answer", request=request)
        except BaseException:
            await exchange.aclose()
            raise
        finally:
            begun.cancel()
        return httpx.Response(exchange.status, headers=exchange.headers, stream=exchange)

    async def aclose(self) -> None:
        """Give up all requests that have not ended."""
        for exchange in list(self._exchanges):
            await exchange.aclose()


class _Exchange(httpx.AsyncByteStream):
    """One request, and its response, whose body this is."""

    def __init__(self, app: ASGIApp, request: httpx.Request) -> None:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        self._request = request
        self._sending = aiter(request.stream)
        self._all_sent = False
        self._read_error: Exception | None = None
        self._put, self._parts = anyio.create_memory_object_stream[bytes](PARTS)
        self._gone = asyncio.Event()
        self.begun = asyncio.Event()
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.task = asyncio.ensure_future(self._run(app))

    async def _run(self, app: ASGIApp) -> None:
        try:
            await app(_scope(self._request), self._receive, self._send)
        finally:
            self._put.close()

    async def _receive(self) -> Message:
        if not self._all_sent:
            try:
                return {"type": "http.request", "body": await anext(self._sending), "more_body": True}
            except StopAsyncIteration:
                self._all_sent = True
                return {"type": "http.request", "body": b"", "more_body": False}
            except Exception as error:  # noqa: BLE001 - the caller's own; the app sees a client that vanishes
                self._all_sent, self._read_error = True, error
                self._gone.set()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", ()))
            if self._read_error is None:
                self.begun.set()
        elif part := message.get("body", b""):
            with contextlib.suppress(anyio.BrokenResourceError):  # nobody reads it; a server drops it, too
                await self._put.send(part)

    async def result(self) -> None:
        """Wait for the app's end; raises what it raised, or what kept the request from being sent."""
        await asyncio.gather(self.task, return_exceptions=True)
        if self._read_error:
            raise self._read_error
        await self.task

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._parts:
            yield part
        self._gone.set()
        await self.result()

    async def aclose(self) -> None:
        self._gone.set()
        self._parts.close()
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):  # nobody waits for the answer any more
            await self.task


def _scope(request: httpx.Request) -> dict[str, Any]:
    url = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme,
        "path": url.path,
        "raw_path": url.raw_path.partition(b"?")[0],
        "query_string": url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": None,
        "server": (url.host, url.port),
    }
