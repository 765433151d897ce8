"""What the API bounds: bodies, time, requests; on real sockets."""

from __future__ import annotations

import asyncio
import json

import pytest

from services.api.access import bodies
from services.api.access.guard import Limits
from services.api.access.protocol import BoundedProtocol
from tests.integration.api.raw_requests import JSON, PATIENCE_SECONDS, Serve, began, request, serve, token

__all__ = ["began", "serve", "token"]  # fixtures


async def test_a_body_may_be_so_large(serve: Serve, token: str) -> None:
    large = b"x" * (bodies.MOST_BYTES + 1)
    async with serve() as send:
        announced = await send(request("POST", "/api/size", token, body=large))
        assert announced.status == 413
        assert "1,048,576" in announced.problem()
        asked = await send(request("POST", "/api/size", token, "Content-Length: 9999999", "Expect: 100-continue"))
        assert asked.status == 413
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


async def test_logins_without_a_body_hold_no_place(serve: Serve, token: str) -> None:
    login = request("POST", "/api/session", None, JSON, "Content-Length: 10")
    async with serve(Limits(requests=2, login_seconds=PATIENCE_SECONDS)) as send:
        idle = [asyncio.create_task(send(login, pause=PATIENCE_SECONDS)) for _ in range(5)]
        await asyncio.wait(idle, timeout=0.5)
        assert not [task for task in idle if task.done()]
        assert (await send(request("GET", "/api/me", token))).status == 200
        body = json.dumps({"token": token}).encode()
        assert (await send(request("POST", "/api/session", None, JSON, body=body))).status == 201
        for task in idle:
            task.cancel()
        await asyncio.wait(idle)


async def test_a_login_is_short(serve: Serve) -> None:
    async with serve(Limits(login_seconds=0.2)) as send:
        slow = await send(request("POST", "/api/session", None, JSON, "Content-Length: 10"), b"{")
        assert slow.status == 408
        large = b"x" * 4097
        assert (await send(request("POST", "/api/session", None, JSON, body=large))).status == 413
        chunked = request("POST", "/api/session", None, JSON, "Transfer-Encoding: chunked")
        assert (await send(chunked, b"1001\r\n" + large + b"\r\n0\r\n\r\n")).status == 413


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


async def test_the_rest_of_a_refused_body_does_not_hold_the_connection(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedProtocol, "head_seconds", 0.3)
    async with serve() as send:
        answer = await send(request("POST", "/api/size", None, "Content-Length: 1000"), *[b"x"] * 40, pause=0.02)
        assert answer.status == 401  # and the connection ended, or `send` would wait
