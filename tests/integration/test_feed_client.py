from __future__ import annotations

import gzip
import ipaddress
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from services.fetcher.client import ClientLimits, FeedClient, Request
from services.fetcher.failure import Failure, FetchFailed
from tests.integration.raw_server import answer, saying, serving

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)
LIMITS = ClientLimits(deadline_seconds=5, connect_seconds=2, read_seconds=2, max_body_bytes=100_000)


@pytest.fixture
def client() -> Iterator[FeedClient]:
    client = FeedClient(LIMITS, user_agent="feedmill/test (+http://contact.example)", allowed=LOOPBACK)
    yield client
    client.close()


def failure(client: FeedClient, url: str) -> FetchFailed:
    with pytest.raises(FetchFailed) as caught:
        client.fetch(Request(url))
    return caught.value


def test_it_says_who_it_is_and_what_it_takes_and_nothing_else(client: FeedClient) -> None:
    with serving(saying(answer(body=b"x", Set_Cookie="a=b"))) as server:
        client.fetch(Request(server.url()))
        client.fetch(Request(server.url()))
    for head in server.requests:
        names = {line.partition(":")[0].lower() for line in head.split("\r\n")[1:] if line}
        assert names <= {"host", "user-agent", "accept", "accept-encoding", "connection"}
        assert "feedmill/test (+http://contact.example)" in head


def test_validators_go_back_verbatim_and_only_to_the_url_that_gave_them(client: FeedClient) -> None:
    def script(connection: socket.socket, head: str) -> None:
        moved = head.startswith("GET /old")
        connection.sendall(answer(301, Location="/new") if moved else answer(304, ETag='W/"n"'))

    with serving(script) as server:
        request = Request(server.url("/old"), 'W/"a, b"', "yesterday, about noon", server.url("/new"))
        found = client.fetch(request)
    assert (found.status, found.final_url, found.body) == (304, server.url("/new"), b"")
    assert "If-None-Match" not in server.requests[0]
    assert 'If-None-Match: W/"a, b"\r\n' in server.requests[1]
    assert "If-Modified-Since: yesterday, about noon\r\n" in server.requests[1]


def test_validators_that_are_not_ascii_go_back_byte_for_byte(client: FeedClient) -> None:
    odd = 'ETag: "caf\u00e9 \u4e16"'.encode()
    reply = answer(body=b"x").replace(b"\r\n", b"\r\n" + odd + b"\r\n", 1)
    with serving(saying(reply)) as server:
        found = client.fetch(Request(server.url()))
        client.fetch(Request(server.url(), found.headers["etag"], None, server.url()))
    assert odd.replace(b"ETag", b"If-None-Match").decode("latin-1") in server.requests[1]


def test_a_compressed_body_is_read_and_both_sizes_are_known(client: FeedClient) -> None:
    packed = gzip.compress(b"news " * 1000)
    with serving(saying(answer(body=packed, Content_Encoding="gzip"))) as server:
        found = client.fetch(Request(server.url()))
    assert (found.body, found.wire_bytes) == (b"news " * 1000, len(packed))


@pytest.mark.parametrize(
    ("statuses", "moved"), [((301, 308), "/2"), ((301, 302), "/1"), ((302, 301), None), ((307, 303), None)]
)
def test_only_an_unbroken_permanent_prefix_moves_a_feed(
    client: FeedClient, statuses: tuple[int, int], moved: str | None
) -> None:
    def script(connection: socket.socket, head: str) -> None:
        hop = int(head.split()[1].strip("/") or 0)
        connection.sendall(answer(statuses[hop], Location=f"/{hop + 1}") if hop < 2 else answer(body=b"end"))

    with serving(script) as server:
        found = client.fetch(Request(server.url("/")))
    assert found.final_url == server.url("/2")
    assert found.moved_to == (server.url(moved) if moved else None)


def test_redirects_in_a_circle_and_without_end_are_cut(client: FeedClient) -> None:
    def script(connection: socket.socket, head: str) -> None:
        path = head.split()[1]
        target = "/circle" if path == "/circle" else f"/{int(path.strip('/')) + 1}"
        connection.sendall(answer(302, Location=target))

    with serving(script) as server:
        assert failure(client, server.url("/circle")).failure is Failure.REDIRECT
        assert failure(client, server.url("/0")).failure is Failure.REDIRECT
    assert len(server.requests) == 1 + 11


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("http://169.254.169.254/latest/meta-data/", Failure.BLOCKED),
        ("http://[::ffff:10.0.0.1]/", Failure.BLOCKED),
        ("file:///etc/passwd", Failure.BAD_URL),
        ("ftp://127.0.0.1/", Failure.BAD_URL),
    ],
)
def test_every_hop_is_checked(client: FeedClient, target: str, expected: Failure) -> None:
    with serving(saying(answer(302, Location=target))) as server:
        assert failure(client, server.url()).failure is expected


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
        answered.wait(5)
        raise socket.gaierror("too late")

    limits = ClientLimits(deadline_seconds=0.3, connect_seconds=2, read_seconds=2, max_body_bytes=1000)
    client = FeedClient(limits, user_agent="t", allowed=LOOPBACK)
    monkeypatch.setattr(socket, "getaddrinfo", resolve_slowly)
    started = time.monotonic()
    assert failure(client, "http://slow.example/").failure is Failure.CONNECT
    assert time.monotonic() - started < 2
    answered.set()
    client.close()


def test_plain_http_where_tls_was_asked_for_is_a_failure_to_connect(client: FeedClient) -> None:
    with serving(saying(answer(body=b"x"))) as server:
        assert failure(client, server.url().replace("http://", "https://")).failure is Failure.CONNECT


def drip(connection: socket.socket, head: str) -> None:
    data = answer(body=b"x" * 60)
    with suppress(OSError):
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)  # a real server's slowness: there is no clock to fake on the other side of a socket


def test_a_server_that_drips_is_cut_off_at_the_deadline() -> None:
    limits = ClientLimits(deadline_seconds=0.5, connect_seconds=2, read_seconds=2, max_body_bytes=1000)
    client = FeedClient(limits, user_agent="t", allowed=LOOPBACK)
    with serving(drip) as server:
        started = time.monotonic()
        assert failure(client, server.url()).failure is Failure.TIMEOUT
        assert time.monotonic() - started < 2
    client.close()


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (answer(body=b"half", Content_Length="100"), Failure.PROTOCOL),
        (answer(body=gzip.compress(b"x" * 5000)[:-10], Content_Encoding="gzip"), Failure.PROTOCOL),
        (answer(body=b"5\r\nabc", Transfer_Encoding="chunked"), Failure.PROTOCOL),
        (answer(body=b"zzz\r\n", Transfer_Encoding="chunked"), Failure.PROTOCOL),
        (b"<rss>I speak HTTP/0.9</rss>", Failure.PROTOCOL),
        (b"", Failure.PROTOCOL),
        (answer(body=b"x" * 100_001), Failure.TOO_LARGE),
        (answer(body=gzip.compress(b"\0" * 10_000_000), Content_Encoding="gzip"), Failure.TOO_LARGE),
    ],
)
def test_an_answer_that_is_broken_or_too_large_says_so(client: FeedClient, reply: bytes, expected: Failure) -> None:
    with serving(saying(reply)) as server:
        assert failure(client, server.url()).failure is expected


def test_the_body_of_an_error_is_not_read(client: FeedClient) -> None:
    with serving(saying(answer(500, body=b"x" * 200_000))) as server:
        found = client.fetch(Request(server.url()))
    assert (found.status, found.body) == (500, b"")


def test_credentials_in_a_url_are_sent_to_its_origin_and_never_shown(client: FeedClient) -> None:
    with serving(saying(answer(body=b"x"))) as other:

        def script(connection: socket.socket, head: str) -> None:
            connection.sendall(answer(302, Location=other.url().replace("127.0.0.1", "localhost")))

        with serving(script) as server:
            client.fetch(Request(server.url().replace("http://", "http://me:secret@")))
    assert "Authorization: Basic" in server.requests[0]
    assert "authorization" not in other.requests[0].lower()
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert "secret" not in str(failure(client, f"http://me:secret@127.0.0.1:{port}/"))
