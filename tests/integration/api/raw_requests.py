"""The API behind real uvicorn, for raw requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import uvicorn
from fastapi import APIRouter, Body, Request
from fastapi.responses import StreamingResponse

from services.admin.actor import Scope
from services.api.access import Reader
from services.api.access.bearer import TokenAccess
from services.api.access.guard import Limits
from services.api.access.serving import configure_server, guarded
from services.api.app import make_app
from services.api.resources import Resources
from tests.integration.api.conftest import MakeToken

PATIENCE_SECONDS = 30

Send = Callable[..., Coroutine[Any, Any, "Answer"]]
Serve = Callable[..., AbstractAsyncContextManager[Send]]


class Answer:
    """A response as it came."""

    def __init__(self, raw: bytes) -> None:
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split(" ")[1]) if first else 0
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def problem(self) -> str:
        assert self.headers["content-type"] == "application/problem+json"
        found = json.loads(self.body)
        assert found["status"] == self.status
        return str(found["detail"])


@pytest.fixture
async def token(make_token: MakeToken) -> str:
    return await make_token(Scope.ADMIN)


@pytest.fixture
async def began() -> asyncio.Queue[None]:
    """Has an element for each slow request that began."""
    return asyncio.Queue()


@pytest.fixture
def serve(resources: Resources, began: asyncio.Queue[None]) -> Serve:
    """Serves the API with these limits and settings; yields what sends raw bytes and returns the answer."""

    @contextlib.asynccontextmanager
    async def run(limits: Limits | None = None, **changes: object) -> AsyncIterator[Send]:
        settings = resources.settings.model_copy(update=changes)
        app = make_app(resources, TokenAccess(resources.database, resources.remembered).authenticate)
        app.include_router(extra_operations(began))
        config = configure_server(guarded(app, settings, limits))
        config.host, config.port = "127.0.0.1", 0
        server = uvicorn.Server(config)
        task = asyncio.create_task(server._serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]

        async def send(*parts: bytes, pause: float = 0.0) -> Answer:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            answer = asyncio.create_task(read_answer(reader))
            try:
                for part in parts:
                    with contextlib.suppress(ConnectionError):
                        writer.write(part)
                        await writer.drain()
                    await asyncio.wait({answer}, timeout=pause)
                    if answer.done():
                        break
                return Answer(await asyncio.wait_for(answer, PATIENCE_SECONDS))
            finally:
                writer.close()

        try:
            yield send
        finally:
            server.should_exit = True
            await task

    return run


def extra_operations(began: asyncio.Queue[None]) -> APIRouter:
    router = APIRouter()

    @router.get("/api/slow")
    async def slow(_actor: Reader) -> None:
        began.put_nowait(None)
        await asyncio.sleep(PATIENCE_SECONDS * 2)

    @router.get("/api/stream")
    async def stream(_actor: Reader) -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            for _ in range(4):
                yield b"part\n"
                await asyncio.sleep(0.1)

        return StreamingResponse(parts())

    @router.post("/api/echo")
    async def echo(_actor: Reader, value: object = Body()) -> object:
        return value

    @router.post("/api/size")
    async def size(_actor: Reader, request: Request) -> int:
        return sum([len(part) async for part in request.stream()])

    return router


async def read_answer(reader: asyncio.StreamReader) -> bytes:
    """Read to the end of one response, or of the connection."""
    raw = b""
    with contextlib.suppress(ConnectionResetError):  # the server closed before our last part came
        while part := await reader.read(65536):
            raw += part
            head, found, body = raw.partition(b"\r\n\r\n")
            length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), None)
            if found and length and len(body) >= int(length.partition(b":")[2]):
                break
    return raw


def request(
    method: str, path: str, token: str | None, *headers: str, body: bytes = b"", host: str | None = "127.0.0.1"
) -> bytes:
    lines = [f"{method} {path} HTTP/1.1"]
    lines += [f"Host: {host}"] if host is not None else []
    lines += [f"Authorization: Bearer {token}"] if token else []
    lines += [f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + body


JSON = "Content-Type: application/json"
