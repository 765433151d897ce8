"""An httpx transport to an ASGI app in this process, which streams answers (httpx's own collects them first)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
from starlette.types import ASGIApp, Message


class WithinProcess(httpx.AsyncBaseTransport):
    """Sends requests to `app`. What the app raises, the caller gets."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response as soon as it begins."""
        exchange = _Exchange(request)
        task = asyncio.create_task(exchange.run(self._app))
        begun = asyncio.create_task(exchange.begun.wait())
        try:
            await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            begun.cancel()
        if not exchange.begun.is_set():
            await task
        return httpx.Response(exchange.status, headers=exchange.headers, stream=_Body(exchange, task))


class _Exchange:
    """One request and its response."""

    def __init__(self, request: httpx.Request) -> None:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        self._request = request
        self._sending = aiter(request.stream)
        self._all_sent = False
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.parts: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=16)

    async def run(self, app: ASGIApp) -> None:
        url = self._request.url
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self._request.method,
            "scheme": url.scheme,
            "path": url.path,
            "raw_path": url.raw_path.partition(b"?")[0],
            "query_string": url.query,
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in self._request.headers.raw],
            "client": None,
            "server": (url.host, url.port),
        }
        try:
            await app(scope, self._receive, self._send)
        finally:
            await self.parts.put(None)

    async def _receive(self) -> Message:
        if self._all_sent:
            await self.ended.wait()
            return {"type": "http.disconnect"}
        try:
            return {"type": "http.request", "body": await anext(self._sending), "more_body": True}
        except StopAsyncIteration:
            self._all_sent = True
            return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", ()))
            self.begun.set()
        elif part := message.get("body", b""):
            await self.parts.put(part)


class _Body(httpx.AsyncByteStream):
    def __init__(self, exchange: _Exchange, task: asyncio.Task[Any]) -> None:
        self._exchange = exchange
        self._task = task

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (part := await self._exchange.parts.get()) is not None:
            yield part
        self._exchange.ended.set()
        await self._task

    async def aclose(self) -> None:
        self._exchange.ended.set()
        if not self._task.done():
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
