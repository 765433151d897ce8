"""What the API refuses to everybody on the network; on real sockets."""

from __future__ import annotations

import json

import pytest

from services.api.access.protocol import BoundedProtocol
from tests.integration.api.raw_requests import JSON, Serve, began, request, serve, token

__all__ = ["began", "serve", "token"]  # fixtures


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


async def test_trailers_may_be_so_large(serve: Serve, token: str) -> None:
    chunked = request("POST", "/api/size", token, "Transfer-Encoding: chunked") + b"3\r\nxxx\r\n"
    async with serve() as send:
        few = await send(chunked + b"0\r\na:b\r\nAuthorization: none\r\n\r\n")
        assert (few.status, few.body) == (200, b"3")
        endless = [b"a:b\r\n" * 4096] * 8
        assert (await send(chunked, b"0\r\n", *endless)).status == 0  # closed: the request never ended
        assert (await send(chunked, b"0\r\na: ", *[b"x" * 16_384] * 8)).status == 0
        assert (await send(chunked, b"3;", *[b"x" * 16_384] * 8)).status == 0
        framed = await send(chunked, *[b"1\r\nx\r\n" * 4096] * 8, b"0\r\n\r\n")
        assert (framed.status, framed.body) == (200, b"32771")


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
