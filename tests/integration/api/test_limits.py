"""What the API refuses and bounds on the network: real uvicorn, raw requests."""

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
from services.api.access import Reader, bodies
from services.api.access.bearer import TokenAccess
from services.api.access.guard import Limits
from services.api.access.protocol import BoundedProtocol
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
        app = make_app(resources, TokenAccess(resources.database).authenticate)
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


async def test_answers_have_the_headers_of_safety(serve: Serve, token: str) -> None:
    async with serve() as send:
        for answer in (await send(request("GET", "/api/me", token)), await send(request("GET", "/", None))):
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            assert "server" not in answer.headers
            assert not [name for name in answer.headers if name.startswith("access-control")]


GOOD_HOSTS = [
    "127.0.0.1",
    "127.0.0.1:8080",
    "localhost",
    "LOCALHOST:1",
    "x.localhost",
    "[::1]:8080",
    "192.0.2.1",
    "own.example",
]
BAD_HOSTS = ["evil.example", "own.example.evil.example", "xlocalhost", "127.0.0.1.evil.example", "0x7f.1.evil.example"]
NO_HOSTS = ["", "a b", "127.0.0.1:", "user@127.0.0.1", "127.0.0.1/x", "127.0.0.1,evil.example", "\xe9"]


async def test_only_names_of_ours_are_answered(serve: Serve, token: str) -> None:
    async with serve(api_hosts="Own.example") as send:
        for host in GOOD_HOSTS:
            assert (await send(request("GET", "/api/me", token, host=host))).status == 200, host
        for host in BAD_HOSTS:
            answer = await send(request("GET", "/api/me", token, host=host))
            assert answer.status == 421, host
            assert "FEEDMILL_API_HOSTS" in answer.problem()
        for host in NO_HOSTS:
            assert (await send(request("GET", "/api/me", token, host=host))).status == 400, host
        assert (await send(request("GET", "/api/me", token, host=None))).status == 400
        assert (await send(request("GET", "/api/me", token, "Host: localhost"))).status == 400
        assert (await send(b"GET /api/me HTTP/1.0\r\n\r\n")).status == 400


async def test_a_token_in_a_url_is_refused_with_words(serve: Serve, token: str) -> None:
    async with serve() as send:
        for path in (f"/api/me?token={token}", f"/api/{token}", f"/api/me?q=x{token}", "/api/me?Access_Token="):
            answer = await send(request("GET", path, token))
            assert answer.status == 400, path
            assert "revoke" in answer.problem()
            assert token not in answer.problem()
        assert (await send(request("GET", "/api/feeds?q=a%00b", token))).status == 400


async def test_a_body_may_be_so_large(serve: Serve, token: str) -> None:
    large = b"x" * (bodies.MOST_BYTES + 1)
    async with serve() as send:
        announced = await send(request("POST", "/api/size", token, body=large))
        assert announced.status == 413
        assert "1,048,576" in announced.problem()
        chunk = b"%x\r\n%b\r\n" % (len(large), large)
        chunked = await send(request("POST", "/api/size", token, "Transfer-Encoding: chunked"), chunk, b"0\r\n\r\n")
        assert chunked.status == 413
        exact = await send(request("POST", "/api/size", token, body=large[1:]))
        assert exact.body == b"%d" % bodies.MOST_BYTES
        assert (await send(request("POST", "/api/echo", token, JSON, body=large))).status == 413
        assert (await send(request("POST", "/api/size", None, body=large))).status == 413
        assert (await send(request("POST", "/api/feeds/import", None, body=large))).status == 401


async def test_a_body_that_comes_too_slowly_is_given_up(serve: Serve, token: str) -> None:
    async with serve(Limits(body_seconds=0.2)) as send:
        for headers in ((), (JSON,)):
            answer = await send(request("POST", "/api/echo", token, "Content-Length: 10", *headers), b"[")
            assert answer.status == 408
            assert "slowly" in answer.problem()
            assert answer.headers["connection"] == "close"
        dribble = [b"x"] * 40
        answer = await send(request("POST", "/api/size", token, "Content-Length: 40"), *dribble, pause=0.02)
        assert answer.status == 408


async def test_a_body_at_a_fair_pace_is_waited_for(serve: Serve, token: str) -> None:
    async with serve(Limits(body_seconds=0.2)) as send:
        parts = [b"x" * 4096] * 8
        answer = await send(request("POST", "/api/size", token, "Content-Length: 32768"), *parts, pause=0.05)
        assert (answer.status, answer.body) == (200, b"32768")


async def test_a_handler_that_takes_too_long_is_given_up_and_a_stream_is_not(serve: Serve, token: str) -> None:
    async with serve(Limits(request_seconds=0.2)) as send:
        answer = await send(request("GET", "/api/slow", token))
        assert answer.status == 503
        assert "longer than 0.2 s" in answer.problem()
        streamed = await send(request("GET", "/api/stream", token, "Connection: close"))
        assert streamed.body.count(b"part\n") == 4


async def test_so_many_requests_run_at_a_time(serve: Serve, token: str, began: asyncio.Queue[None]) -> None:
    async with serve(Limits(requests=2, request_seconds=5)) as send:
        slow = [asyncio.create_task(send(request("GET", "/api/slow", token))) for _ in range(2)]
        for _ in slow:
            await asyncio.wait_for(began.get(), PATIENCE_SECONDS)
        answer = await send(request("GET", "/api/me", token))
        assert answer.status == 503
        assert answer.headers["retry-after"] == "1"
        assert "2 requests run already" in answer.problem()
        for task in slow:
            assert (await task).status == 503
        assert (await send(request("GET", "/api/me", token))).status == 200


BAD_JSON = {
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 33 + b"1" + b"}" * 33,
    "many": b"[" + b"1," * 200_000 + b"1]",
    "closing": b"[[" * 20 + b"]" * 900_000,
    "NUL": rb'{"a": "x\u0000"}',
    "NUL in a name": rb'{"\u0000": 1}',
    "surrogate": rb'["\ud800"]',
    "surrogate in a name": rb'{"\udc00x": 1}',
    "no UTF-8": b'["\xff"]',
    "latin-1": '["é"]'.encode("latin-1"),
    "NaN": b"[NaN]",
    "Infinity": b"[-Infinity]",
    "infinite": b"[1e400]",
    "long number": b"[" + b"9" * 5000 + b"]",
    "cut": b'{"a": ',
    "text": b"hello",
    "two": b"{}{}",
}


async def test_json_that_nothing_of_ours_can_hold_is_refused(serve: Serve, token: str) -> None:
    async with serve() as send:
        for name, body in BAD_JSON.items():
            answer = await send(request("POST", "/api/echo", token, JSON, body=body))
            assert answer.status == 422, name
            assert answer.problem().startswith("the body can't be read: "), name
        for body in (rb'["\ud83d\ude00", "\\u0000", "[[[", 1e300]', rb'"\\\\"', b"[" * 32 + b"]" * 32):
            assert (await send(request("POST", "/api/echo", token, JSON, body=body))).status == 200, body
        wrong_type = await send(request("POST", "/api/tokens", token, "Content-Type: text/plain", body=b"{}"))
        assert wrong_type.status == 422


async def test_requests_that_two_servers_read_differently_are_refused(serve: Serve, token: str) -> None:
    smuggled = request("GET", "/api/me", token)
    both = request("POST", "/api/size", token, "Content-Length: 6", "Transfer-Encoding: chunked")
    async with serve() as send:
        for raw in (
            both + b"0\r\n\r\n" + smuggled,
            request("POST", "/api/size", token, "Content-Length: 3", "Content-Length: 4") + b"xxxx",
            request("POST", "/api/size", token, "Content-Length: +3") + b"xxx",
            request("POST", "/api/size", token, "Content-Length: -3") + b"xxx",
            request("POST", "/api/size", token, "Content-Length : 3") + b"xxx",
            request("POST", "/api/size", token, "Transfer-Encoding: xchunked") + b"0\r\n\r\n",
            request("POST", "/api/size", token, "Transfer-Encoding: chunked") + b"0x3\r\nxxx\r\n0\r\n\r\n",
            request("GET", "/api/me", token, "X: a\rY: b"),
            request("GET", "/api/me", token, "X: a\x00b"),
            request("GET", "/api/me", token, " folded: x"),
            b"GET /api/me\r\n\r\n",
            b"\x16\x03\x01\x00\xa5\x01\x00\x00",
        ):
            assert (await send(raw)).status == 400, raw


async def test_a_head_that_does_not_end_is_not_waited_for(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedProtocol, "head_seconds", 0.3)
    async with serve() as send:
        assert (await send()).status == 0
        assert (await send(b"GET / HTTP/1.1\r\nHost: localhost\r\n")).status == 0
        assert (await send(b"GET / HTTP/1.1\r\n", *[b"X: y\r\n"] * 40, pause=0.02)).status == 0


async def test_a_head_may_be_so_large(serve: Serve) -> None:
    async with serve() as send:
        large = [b"x" * 16_384] * 8
        assert (await send(b"GET / HTTP/1.1\r\nX: ", *large)).status == 431
        assert (await send(b"GET /", *large)).status == 431


async def test_the_rest_of_a_refused_body_does_not_hold_the_connection(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedProtocol, "head_seconds", 0.3)
    async with serve() as send:
        answer = await send(request("POST", "/api/size", None, "Content-Length: 1000"), *[b"x"] * 40, pause=0.02)
        assert answer.status == 401  # and the connection ended, or `send` would wait


async def test_a_connection_is_kept_between_requests(serve: Serve, token: str) -> None:
    async with serve() as send:
        two = request("GET", "/api/me", token) + request("GET", "/api/me", token, "Connection: close")
        answer = await send(two)
        assert answer.status == 200


async def test_only_proxies_of_ours_say_where_a_request_is_from(serve: Serve, token: str) -> None:
    from_afar = ("X-Forwarded-For: 203.0.113.9, 192.0.2.7", "X-Forwarded-Proto: https", JSON)
    body = json.dumps({"name": "one", "scopes": ["read"]}).encode()
    async with serve() as send:
        await send(request("POST", "/api/tokens", token, *from_afar, body=body))
        rows = json.loads((await send(request("GET", "/api/audit?limit=1", token))).body)["items"]
        assert rows[0]["address"] == "127.0.0.1"
    async with serve(api_proxies="127.0.0.0/8,203.0.113.0/24") as send:
        await send(request("POST", "/api/tokens", token, *from_afar, body=body.replace(b"one", b"two")))
        rows = json.loads((await send(request("GET", "/api/audit?limit=1", token))).body)["items"]
        assert rows[0]["address"] == "192.0.2.7"
        login = await send(
            request(
                "POST", "/api/session", None, *from_afar, body=json.dumps({"token": token}).encode(), host="localhost"
            )
        )
        assert login.headers["set-cookie"].startswith("__Host-feedmill=")
