from __future__ import annotations

import gzip
import ipaddress
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from services.fetcher.http.client import ClientLimits, FeedClient
from services.fetcher.http.failure import Failure, FetchFailed
from services.fetcher.http.request import HttpRequest
from tests.integration.fetcher.raw_server import answer, saying, serving

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)
LIMITS = ClientLimits(deadline_seconds=5, connect_seconds=2, read_seconds=2, max_body_bytes=100_000)


@pytest.fixture
def client() -> Iterator[FeedClient]:
    client = FeedClient(LIMITS, user_agent="feedmill/test (+http://contact.example)", allowed=LOOPBACK)
    yield client
    client.close()


def failure(client: FeedClient, url: str) -> FetchFailed:
    with pytest.raises(FetchFailed) as caught:
        client.get(HttpRequest(url))
    return caught.value


def test_it_says_who_it_is_and_what_it_takes_and_nothing_else(client: FeedClient) -> None:
    with serving(saying(answer(body=b"x", Set_Cookie="a=b"))) as server:
        client.get(HttpRequest(server.url()))
        client.get(HttpRequest(server.url()))
    for head in server.requests:
        names = {line.partition(":")[0].lower() for line in head.split("\r\n")[1:] if line}
        assert names <= {"host", "user-agent", "accept", "accept-encoding", "connection"}
        assert "feedmill/test (+http://contact.example)" in head


def test_validators_go_back_verbatim(client: FeedClient) -> None:
    with serving(saying(answer(304, ETag='W/"n"'))) as server:
        found = client.get(HttpRequest(server.url(), 'W/"a, b"', "yesterday, about noon"))
    assert (found.status, found.url, found.body) == (304, server.url(), b"")
    assert 'If-None-Match: W/"a, b"\r\n' in server.requests[0]
    assert "If-Modified-Since: yesterday, about noon\r\n" in server.requests[0]


def test_a_request_counts_as_sent_when_it_has_left(client: FeedClient) -> None:
    arrived, seen_by_then = threading.Event(), list[bool]()

    def reply(connection: socket.socket, head: str) -> None:
        arrived.set()
        connection.sendall(answer(body=b"x"))

    with serving(reply) as server:
        client.get(HttpRequest(server.url(), sent=lambda: seen_by_then.append(arrived.wait(30))))
    assert seen_by_then == [True]


def test_a_feeds_own_headers_take_the_place_of_ours(client: FeedClient) -> None:
    with serving(saying(answer(body=b"x"))) as server:
        client.get(HttpRequest(server.url(), headers={"user-agent": "mine", "X-Key": "k"}, credentials=("me", "pass")))
        client.get(HttpRequest(server.url().replace("//", "//you:secret@"), headers={"authorization": "Bearer t"}))
    first, second = server.requests
    assert "user-agent: mine\r\n" in first
    assert "feedmill" not in first
    assert "X-Key: k\r\n" in first
    assert "Authorization: Basic bWU6cGFzcw==\r\n" in first
    assert "authorization: Bearer t\r\n" in second
    assert "Basic" not in second


def test_validators_that_are_not_ascii_go_back_byte_for_byte(client: FeedClient) -> None:
    odd = 'ETag: "caf\u00e9 \u4e16"'.encode()
    reply = answer(body=b"x").replace(b"\r\n", b"\r\n" + odd + b"\r\n", 1)
    with serving(saying(reply)) as server:
        found = client.get(HttpRequest(server.url()))
        client.get(HttpRequest(server.url(), found.headers["etag"]))
    assert odd.replace(b"ETag", b"If-None-Match").decode("latin-1") in server.requests[1]


def test_a_compressed_body_is_read_and_both_sizes_are_known(client: FeedClient) -> None:
    packed = gzip.compress(b"news " * 1000)
    with serving(saying(answer(body=packed, Content_Encoding="gzip"))) as server:
        found = client.get(HttpRequest(server.url()))
    assert (found.body, found.wire_bytes) == (b"news " * 1000, len(packed))


def test_a_redirect_is_told_and_not_followed(client: FeedClient) -> None:
    with serving(saying(answer(301, body=b"moved", Location="/caf\u00e9?a b"))) as server:
        found = client.get(HttpRequest(server.url()))
    assert (found.status, found.redirect, found.body, len(server.requests)) == (301, "/caf\u00e9?a b", b"", 1)


def test_of_two_locations_the_first_counts(client: FeedClient) -> None:
    with serving(saying(b"HTTP/1.1 301 Moved\r\nLocation: /a\r\nLocation: /b\r\n\r\n")) as server:
        assert client.get(HttpRequest(server.url())).redirect == "/a"


@pytest.mark.parametrize("reply", [answer(302), answer(302, Location=" "), answer(304, Location="/"), answer(300)])
def test_what_leads_nowhere_is_no_redirect(client: FeedClient, reply: bytes) -> None:
    with serving(saying(reply)) as server:
        assert client.get(HttpRequest(server.url())).redirect is None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:80/", Failure.BLOCKED),
        ("http://localhost/", Failure.BLOCKED),
        ("http://2130706433/", Failure.BLOCKED),
        ("http://0177.0.0.1/", Failure.BAD_URL),
        ("http://[::1]/", Failure.BLOCKED),
        ("http://", Failure.BAD_URL),
        ("ftp://a.example/", Failure.BAD_URL),
        ("news.example/feed", Failure.BAD_URL),
        ("http://a b.example/", Failure.BAD_URL),
        ("http://127.0.0.1:99999/", Failure.BAD_URL),
        (" http://a.example/", Failure.BAD_URL),
    ],
)
def test_without_an_allowed_network_nothing_private_is_reached(url: str, expected: Failure) -> None:
    client = FeedClient(LIMITS, user_agent="t")
    assert failure(client, url).failure is expected
    client.close()


def test_a_refused_connection_and_an_unknown_name_are_failures_to_connect(client: FeedClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert failure(client, f"http://127.0.0.1:{port}/").failure is Failure.CONNECT
    assert failure(client, "http://no-such-host.invalid/").failure is Failure.CONNECT
    assert failure(client, "http://xn--a/").failure is Failure.CONNECT


def test_a_name_that_is_resolved_too_slowly_is_cut_off_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def resolve_slowly(*_: object, **__: object) -> list[object]:
        answered.wait(60)
        raise socket.gaierror("too late")

    limits = ClientLimits(deadline_seconds=0.3, connect_seconds=2, read_seconds=2, max_body_bytes=1000)
    client = FeedClient(limits, user_agent="t", allowed=LOOPBACK)
    monkeypatch.setattr(socket, "getaddrinfo", resolve_slowly)
    started = time.monotonic()
    assert failure(client, "http://slow.example/").failure is Failure.CONNECT
    assert time.monotonic() - started < 30
    answered.set()
    client.close()


def test_plain_http_where_tls_was_asked_for_is_a_failure_to_connect(client: FeedClient) -> None:
    with serving(saying(answer(body=b"x"))) as server:
        assert failure(client, server.url().replace("http://", "https://")).failure is Failure.CONNECT


def drip(connection: socket.socket, head: str) -> None:
    data = answer(body=b"x" * 400)
    with suppress(OSError):
        for byte in data:  # 20 s at least
            connection.sendall(bytes([byte]))
            time.sleep(0.05)  # a real server's slowness: there is no clock to fake on the other side of a socket


def test_a_server_that_drips_is_cut_off_at_the_deadline() -> None:
    limits = ClientLimits(deadline_seconds=0.5, connect_seconds=2, read_seconds=2, max_body_bytes=1000)
    client = FeedClient(limits, user_agent="t", allowed=LOOPBACK)
    with serving(drip) as server:
        started = time.monotonic()
        assert failure(client, server.url()).failure is Failure.TIMEOUT
        assert time.monotonic() - started < 15
    client.close()


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (answer(body=b"half", Content_Length="100"), Failure.PROTOCOL),
        (answer(body=gzip.compress(b"x" * 5000, mtime=0)[:-10], Content_Encoding="gzip"), Failure.PROTOCOL),
        (answer(body=b"5\r\nabc", Transfer_Encoding="chunked"), Failure.PROTOCOL),
        (answer(body=b"zzz\r\n", Transfer_Encoding="chunked"), Failure.PROTOCOL),
        (b"<rss>I speak HTTP/0.9</rss>", Failure.PROTOCOL),
        (b"", Failure.PROTOCOL),
        (answer(body=b"x" * 100_001), Failure.TOO_LARGE),
        (answer(body=gzip.compress(b"\0" * 10_000_000, mtime=0), Content_Encoding="gzip"), Failure.TOO_LARGE),
    ],
)
def test_an_answer_that_is_broken_or_too_large_says_so(client: FeedClient, reply: bytes, expected: Failure) -> None:
    with serving(saying(reply)) as server:
        assert failure(client, server.url()).failure is expected


def test_the_body_of_an_error_is_not_read(client: FeedClient) -> None:
    with serving(saying(answer(500, body=b"x" * 200_000))) as server:
        found = client.get(HttpRequest(server.url()))
    assert (found.status, found.body) == (500, b"")


def test_credentials_in_a_url_are_sent_and_never_shown(client: FeedClient) -> None:
    with serving(saying(answer(body=b"x"))) as server:
        client.get(HttpRequest(server.url().replace("http://", "http://me:secret@")))
    assert "Authorization: Basic" in server.requests[0]
    assert "me:secret" not in server.requests[0]
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert "secret" not in str(failure(client, f"http://me:secret@127.0.0.1:{port}/"))
