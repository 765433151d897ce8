"""The API in the command's own process: its answers come in parts, and end with who reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.cli.calls.within import PARTS, WithinProcess

Handler = Callable[[Request], object]
START: Message = {"type": "http.response.start", "status": 200, "headers": []}


@asynccontextmanager
async def open_client(app: ASGIApp) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=WithinProcess(app), base_url="http://feedmill", timeout=None) as client:
        yield client


def at_root(handler: Callable[[Request], object]) -> Starlette:
    return Starlette(routes=[Route("/", handler, methods=["GET", "POST"])])


async def part(body: bytes, send: Send, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def test_an_answer_comes_while_it_is_made() -> None:
    go_on = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await part(b"first", send)
        await go_on.wait()
        await part(b"second", send, more=False)

    async with open_client(app) as client, client.stream("GET", "/") as answer:
        parts = answer.aiter_raw()
        assert await anext(parts) == b"first"
        go_on.set()
        assert await anext(parts) == b"second"
        assert await anext(parts, None) is None


async def test_the_app_waits_for_who_reads() -> None:
    made = 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal made
        for _ in range(100):
            made += 1
            yield b"x"

    async def handler(_request: Request) -> Response:
        return StreamingResponse(parts())

    async with open_client(at_root(handler)) as client, client.stream("GET", "/") as answer:
        await anyio.wait_all_tasks_blocked()
        assert PARTS <= made <= PARTS + 2
        assert len(await answer.aread()) == 100


async def test_a_body_is_sent_while_it_is_read() -> None:
    sent: list[bytes] = []

    async def content() -> AsyncIterator[bytes]:
        for letter in (b"a", b"b", b"c"):
            sent.append(letter)
            yield letter

    async def handler(request: Request) -> Response:
        stream = request.stream()
        first = await anext(stream)
        before = list(sent)
        rest = [body async for body in stream]
        return Response(f"{first!r} {before} {b''.join(rest)!r}")

    async with open_client(at_root(handler)) as client:
        answer = await client.post("/", content=content())
    assert answer.text == "b'a' [b'a'] b'bc'"


async def test_what_keeps_a_body_from_being_read_reaches_the_caller() -> None:
    async def content() -> AsyncIterator[bytes]:
        yield b"a"
        raise OSError("the disk is gone")

    async def handler(request: Request) -> Response:
        return Response(await request.body())

    async with open_client(at_root(handler)) as client:
        with pytest.raises(OSError, match="the disk is gone"):
            await client.post("/", content=content())


async def test_what_the_app_raises_reaches_the_caller() -> None:
    async def before(scope: Scope, receive: Receive, send: Send) -> None:
        raise LookupError("before the answer")

    async def within(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await part(b"some", send)
        raise LookupError("within the answer")

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        return

    async with open_client(before) as client:
        with pytest.raises(LookupError, match="before the answer"):
            await client.get("/")
    async with open_client(within) as client:
        with pytest.raises(LookupError, match="within the answer"):
            await client.get("/")
    async with open_client(never) as client:
        with pytest.raises(httpx.RemoteProtocolError, match="ended without an answer"):
            await client.get("/")


class Endless:
    """An app that writes until it is cancelled, and more than anyone reads."""

    def __init__(self, *, answers: bool = True) -> None:
        self.begun, self.cancelled = asyncio.Event(), False
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self.begun.set()
            if not self._answers:
                await asyncio.Event().wait()
            await send(START)
            while True:
                await part(b"more", send)
        except asyncio.CancelledError:
            self.cancelled = True
            raise


async def test_who_stops_reading_ends_the_app() -> None:
    app = Endless()
    async with open_client(app) as client, asyncio.timeout(30):
        async with client.stream("GET", "/") as answer:
            assert await anext(answer.aiter_raw()) == b"more"
            await anyio.wait_all_tasks_blocked()  # no room is left for its parts
        assert app.cancelled


async def test_who_gives_up_waiting_ends_the_app() -> None:
    app = Endless(answers=False)
    async with open_client(app) as client, asyncio.timeout(30):
        asking = asyncio.create_task(client.get("/"))
        await app.begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert app.cancelled


async def test_closing_the_client_ends_what_is_under_way() -> None:
    app = Endless()
    async with asyncio.timeout(30):
        async with open_client(app) as client:
            await client.send(client.build_request("GET", "/"), stream=True)
        assert app.cancelled


async def test_the_app_is_told_that_its_client_is_gone() -> None:
    told: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (message := await receive())["type"] == "http.request":
            told.append(str(message["body"]))
        await send(START)
        await part(b"never read", send)
        told.append(message["type"])

    async def content() -> AsyncIterator[bytes]:
        yield b"a"
        raise OSError("no more")

    async with open_client(app) as client:
        with pytest.raises(OSError, match="no more"):
            await client.post("/", content=content())
    assert told == ["b'a'", "http.disconnect"]


async def test_the_request_is_the_app_s_as_on_a_server() -> None:
    async def handler(request: Request) -> Response:
        found = request.scope
        return Response(
            f"{found['method']} {found['path']} {found['raw_path']} {found['query_string']} {request.headers['x-one']}"
        )

    app = Starlette(routes=[Route("/{path:path}", handler)])
    async with open_client(app) as client:
        answer = await client.get("/a%2Fb/c", params={"q": "ä&"}, headers={"X-One": "1"})
    assert answer.text == "GET /a/b/c b'/a%2Fb/c' b'q=%C3%A4%26' 1"
