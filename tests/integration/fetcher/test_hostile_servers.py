"""Odd and hostile servers on a real socket: each ends in an outcome of its own, and harms no other fetch."""

from __future__ import annotations

import gzip
import ipaddress
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import brotli  # type: ignore[import-untyped]
import pytest
from backports import zstd

from services.fetcher.http.client import ClientLimits, FeedClient
from services.fetcher.http.failure import Failure, FetchFailed
from services.fetcher.http.network import Connection, Deadline
from services.fetcher.http.redirects import RedirectChain
from services.fetcher.http.request import HttpRequest
from tests.integration.fetcher.raw_server import Script, answer, saying, serving

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)
LIMITS = ClientLimits(deadline_seconds=10, connect_seconds=2, read_seconds=2, max_body_bytes=100_000)
ZEROS = b"\0" * 5_000_000
TEXT = b"<rss>" + b"news " * 1000 + b"</rss>"
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def client() -> Iterator[FeedClient]:
    """Return a client that is as well after the test as before."""
    client = FeedClient(LIMITS, user_agent="t", allowed=LOOPBACK)
    yield client
    with serving(saying(answer(body=TEXT))) as healthy, client.get(HttpRequest(healthy.url())) as found:
        assert (found.status, found.body) == (200, TEXT)
    client.close()


def failure(client: FeedClient, url: str, seconds: float | None = None) -> FetchFailed:
    with pytest.raises(FetchFailed) as caught:
        client.get(HttpRequest(url, seconds=seconds))
    return caught.value


BROKEN = {
    "closed before any byte": (b"", "closed the connection without an answer"),
    "closed within the header": (b"HTTP/1.1 200 OK\r\nA: b\r\n", "closed the connection within the header"),
    "HTTP/0.9": (b"<rss>I speak HTTP/0.9</rss>", "no HTTP; it starts with b'<rss>I speak"),
    "another protocol": (b"220 smtp.example ESMTP\r\n\r\n", "no HTTP; it starts with b'220 smtp"),
    "a status that is none": (b"HTTP/1.1 OK\r\n\r\n", "no HTTP"),
    "HTTP/2": (b"\0\0\x12\x04\0\0\0\0\0" + b"\0" * 18, "speaks HTTP/2"),
    "TLS": (b"\x15\x03\x01\0\x02\x02\x46", "speaks TLS"),
    "a NUL in the header": (OK + b"ETag: a\0b\r\n\r\n", "NUL in the header"),
    "a header of 10 MB": (OK + b"A: " + b"x" * 10_000_000, "header exceeds 262144 bytes"),
    "a header of 5,000 lines": (OK + b"A: b\r\n" * 5000 + b"\r\n", "5000 lines; at most 4096"),
    "a Content-Length too long": (answer(body=b"half", Content_Length="100"), "96 bytes are missing"),
    "a negative Content-Length": (answer(body=b"x", Content_Length="-1"), "no length: b'-1'"),
    "a Content-Length in words": (answer(body=b"x", Content_Length="many"), "no length: b'many'"),
    "two Content-Lengths": (OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxy", "lengths that differ: b'1, 2'"),
    "a Content-Length and chunks": (
        answer(body=b"0\r\n\r\n", Transfer_Encoding="chunked", Content_Length="5"),
        "both a Content-Length and chunks",
    ),
    "an unknown transfer coding": (answer(body=b"x", Transfer_Encoding="gzip, chunked"), "coding that nobody asked"),
    "chunks without end": (answer(body=b"5\r\nabcde\r\n", Transfer_Encoding="chunked"), "last chunk is missing"),
    "chunks of garbage": (answer(body=b"zzz\r\nzzz", Transfer_Encoding="chunked"), "no size of a chunk: b'zzz"),
    "a huge size of a chunk": (answer(body=b"F" * 20 + b"\r\nx", Transfer_Encoding="chunked"), "no size of a chunk"),
    "a chunk that is cut short": (answer(body=b"7fffffff\r\nx", Transfer_Encoding="chunked"), "cut short"),
    "a chunk longer than its size": (answer(body=b"1\r\nabc\r\n0\r\n", Transfer_Encoding="chunked"), "longer than"),
    "a size of a chunk without end": (answer(body=b"1" * 80_000, Transfer_Encoding="chunked"), "no size of a chunk"),
    "more framing than body": (
        answer(body=(b"1;" + b"x" * 4000 + b"\r\ny\r\n") * 500, Transfer_Encoding="chunked"),
        "more framing than body",
    ),
    "a change of protocol": (b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n", "protocol that nobody asked for"),
    "interim answers without end": (b"HTTP/1.1 103 Early\r\n\r\n" * 1000, "more than 16 interim answers"),
    "a part": (answer(206, body=b"x", Content_Range="bytes 0-0/9"), "part that nobody asked for .status 206"),
    "a delta": (answer(226, body=b"x", IM="feed"), "part that nobody asked for .status 226"),
    "an encoding that was not offered": (answer(body=b"x", Content_Encoding="sdch"), "'sdch' was not offered"),
    "four layers": (answer(body=b"x", Content_Encoding="gzip, gzip, br, gzip"), "encoded 4 times"),
    "gzip without end": (answer(body=gzip.compress(TEXT)[:-9], Content_Encoding="gzip"), "gzip stream is cut short"),
    "gzip without end, not announced": (answer(body=gzip.compress(TEXT)[:-9]), "gzip stream is cut short"),
    "brotli that is none": (answer(body=TEXT, Content_Encoding="br"), "no br stream"),
    "zstd that is none": (answer(body=TEXT, Content_Encoding="zstd"), "no zstd stream"),
}


@pytest.mark.parametrize(("reply", "reason"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_named(client: FeedClient, reply: bytes, reason: str) -> None:
    with serving(saying(reply)) as server, pytest.raises(FetchFailed, match=f"(?i){reason}") as caught:
        client.get(HttpRequest(server.url()))
    assert caught.value.failure is Failure.PROTOCOL


TOO_LARGE = {
    "plain": answer(body=b"x" * 200_000),
    "announced": OK + b"Content-Length: 10000000000\r\n\r\n",
    "in chunks": answer(body=(b"fff\r\n" + b"x" * 4095 + b"\r\n") * 50, Transfer_Encoding="chunked"),
    "gzip": answer(body=gzip.compress(ZEROS), Content_Encoding="gzip"),
    "gzip that was not announced": answer(body=gzip.compress(ZEROS)),
    "brotli": answer(body=brotli.compress(ZEROS), Content_Encoding="br"),
    "zstd": answer(body=zstd.compress(ZEROS), Content_Encoding="zstd"),
    "nested": answer(body=gzip.compress(zstd.compress(gzip.compress(ZEROS))), Content_Encoding="gzip, zstd, gzip"),
}


@pytest.mark.parametrize("reply", TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_body_over_the_limit_is_too_large_however_it_is_packed(client: FeedClient, reply: bytes) -> None:
    with serving(saying(reply)) as server:
        assert failure(client, server.url()).failure is Failure.TOO_LARGE


MANY = b"".join(b"X-%d: %s\r\n" % (number, b"v" * 50) for number in range(1000))
ODD = {
    "a thousand headers": (OK + MANY + b"Content-Length: 1\r\n\r\nx", b"x"),
    "bare line feeds": (b"HTTP/1.1 200 OK\nContent-Length: 1\n\nxy", b"x"),
    "no reason": (b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", b"x"),
    "a reason in lower case": (b"HTTP/1.1 200 ok\r\nContent-Length: 1\r\n\r\nx", b"x"),
    "no headers": (OK + b"\r\nx", b"x"),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\nto the end", b"to the end"),
    "spaces before the colon": (OK + b"Content-Length : 1\r\n\r\nxy", b"x"),
    "a line without a colon": (OK + b"nonsense\r\nContent-Length: 1\r\n\r\nxy", b"x"),
    "a folded line": (OK + b"A: b\r\n  Content-Length: 9\r\nContent-Length: 1\r\n\r\nxy", b"x"),
    "interim answers": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\n" + answer(body=b"x"), b"x"),
    "a Content-Length too short": (answer(body=b"xyz", Content_Length="1"), b"x"),
    "the same Content-Length twice": (OK + b"Content-Length: 1, 1\r\nContent-Length: 1\r\n\r\nxy", b"x"),
    "chunks with all that they may have": (
        answer(body=b" 1 ;a=b\r\nx\r\n2\nyz\n0\r\nTrailer: t\r\n\r\n", Transfer_Encoding="Chunked"),
        b"xyz",
    ),
    "chunks without the last empty line": (answer(body=b"1\r\nx\r\n0\r\n", Transfer_Encoding="chunked"), b"x"),
    "an empty body": (answer(), b""),
    "an empty body of gzip": (answer(Content_Encoding="gzip"), b""),
    "plain text that is announced as gzip": (answer(body=TEXT, Content_Encoding="gzip"), TEXT),
    "gzip that is not announced": (answer(body=gzip.compress(TEXT)), TEXT),
    "gzip upon gzip": (answer(body=gzip.compress(gzip.compress(TEXT)), Content_Encoding="gzip, gzip"), TEXT),
    "gzip upon brotli": (answer(body=gzip.compress(brotli.compress(TEXT)), Content_Encoding="br, gzip"), TEXT),
    "zstd": (answer(body=zstd.compress(TEXT), Content_Encoding="zstd"), TEXT),
}


@pytest.mark.parametrize(("reply", "body"), ODD.values(), ids=ODD)
def test_what_is_odd_and_does_no_harm_is_read(client: FeedClient, reply: bytes, body: bytes) -> None:
    with serving(saying(reply)) as server, client.get(HttpRequest(server.url())) as found:
        assert (found.status, found.body, found.redirect) == (200, body, None)


def test_a_204_has_no_body_whatever_comes(client: FeedClient) -> None:
    with serving(saying(answer(204, body=b"surprise"))) as server:
        assert client.get(HttpRequest(server.url())).body == b""


def test_a_delta_that_a_feeds_own_header_asked_for_is_taken(client: FeedClient) -> None:
    with serving(saying(answer(226, body=TEXT, IM="feed"))) as server:
        assert client.get(HttpRequest(server.url(), headers={"A-IM": "feed"})).body == TEXT


def test_values_with_control_characters_reach_nobody(client: FeedClient) -> None:
    reply = OK + b'ETag: "a\x01b"\r\nLast-Modified: to\rday\r\nX-Good: caf\xe9\tau lait\r\n\r\nx'
    with serving(saying(reply)) as server:
        found = client.get(HttpRequest(server.url(), 'an "etag"\r\nInjected: 1', "today\0"))
    assert dict(found.headers) == {"x-good": "caf\u00e9\tau lait"}
    assert "njected" not in server.requests[0]
    assert "If-" not in server.requests[0]


def dripping(data: bytes, pause: float = 0.02) -> Script:
    def drip(connection: socket.socket, head: str) -> None:
        with suppress(OSError):
            for byte in data:
                connection.sendall(bytes([byte]))
                time.sleep(pause)  # a real server's slowness: there is no clock to fake behind a socket

    return drip


def repeating(data: bytes, start: bytes = b"") -> Script:
    def repeat(connection: socket.socket, head: str) -> None:
        connection.sendall(start)
        with suppress(OSError):
            while True:
                connection.sendall(data)

    return repeat


def falling_silent(connection: socket.socket, head: str) -> None:
    connection.sendall(OK + b"Content-Length: 9\r\n\r\nx")
    connection.recv(1)  # until the client has had enough


SLOW = {
    "of a header": dripping(OK + b"X-Long: " + b"y" * 500),
    "of a body": dripping(OK + b"Content-Length: 500\r\n\r\n" + b"y" * 500),
    "of chunks": dripping(OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\ny\r\n" * 100),
}


@pytest.mark.parametrize("script", SLOW.values(), ids=SLOW)
def test_a_slow_drip_is_cut_off_at_the_deadline(client: FeedClient, script: Script) -> None:
    with serving(script) as server:
        started = time.monotonic()
        error = failure(client, server.url(), seconds=0.5)
        assert time.monotonic() - started < 8, "every script takes 10 s or more"
    assert error.failure is Failure.TIMEOUT
    assert "not over after its 0.5 s" in str(error)


def test_silence_is_told_from_slowness() -> None:
    client = FeedClient(ClientLimits(read_seconds=0.2), user_agent="t", allowed=LOOPBACK)
    with serving(falling_silent) as server:
        error = failure(client, server.url())
    assert (error.failure, error.status) == (Failure.TIMEOUT, 200)
    assert "silent for 0.2 s" in str(error)
    client.close()


def test_silence_ends_with_the_deadline_if_that_is_sooner() -> None:
    client = FeedClient(replace(LIMITS, read_seconds=20), user_agent="t", allowed=LOOPBACK)
    with serving(falling_silent) as server:
        started = time.monotonic()
        assert failure(client, server.url(), seconds=0.3).failure is Failure.TIMEOUT
        assert time.monotonic() - started < 15
    client.close()


def test_a_flood_does_not_outrun_the_deadline() -> None:
    ours, theirs = socket.socketpair()
    with theirs, Connection(ours, Deadline(0), 1.0) as connection:
        theirs.sendall(b"there is always more")
        with pytest.raises(TimeoutError, match="not over after its 0 s"):
            connection.receive()


def test_what_was_answered_is_read_though_the_request_could_not_be_sent() -> None:
    ours, theirs = socket.socketpair()
    with Connection(ours, Deadline(5), 1.0) as connection:
        theirs.sendall(b"go away")
        theirs.close()
        connection.send(b"GET / HTTP/1.1\r\n\r\n")
        assert connection.receive() == b"go away"


def test_what_never_ends_is_cut_off(client: FeedClient) -> None:
    with serving(repeating(b"x" * 5000, OK + b"\r\n")) as server:
        assert failure(client, server.url()).failure is Failure.TOO_LARGE
    with serving(repeating(b"HTTP/1.1 102 Processing\r\n\r\n")) as server:
        assert failure(client, server.url()).failure is Failure.PROTOCOL
    with serving(repeating(b"X: y\r\n", OK)) as server:
        assert failure(client, server.url()).failure is Failure.PROTOCOL


def resetting(connection: socket.socket, head: str) -> None:
    connection.sendall(OK + b"Content-Length: 100\r\n\r\nhalf")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_a_connection_that_is_reset_is_no_answer(client: FeedClient) -> None:
    with serving(resetting) as server:
        error = failure(client, server.url())
    assert error.failure is Failure.PROTOCOL
    assert "the connection broke" in str(error) or "cut short" in str(error)


def test_an_answer_that_comes_before_the_request_was_read_is_an_answer(client: FeedClient) -> None:
    with serving(saying(answer(429, Retry_After="7")), hasty=True) as server:
        found = client.get(HttpRequest(server.url()))
    assert (found.status, found.headers["retry-after"]) == (429, "7")


URLS = {
    "ftp://a.example/": Failure.BAD_URL,
    "file:///etc/passwd": Failure.BAD_URL,
    "http://": Failure.BAD_URL,
    "http:///path": Failure.BAD_URL,
    "http://[::1]/": Failure.BLOCKED,
    "http://[fe80::1%25lo]/": Failure.BLOCKED,
    "http://[::ffff:10.0.0.1]/": Failure.BLOCKED,
    "http://2130706433/": Failure.BLOCKED,
    "http://0x7f.1/": Failure.BLOCKED,
    "http://0177.0.0.1/": Failure.BAD_URL,
    "http://127.1/": Failure.BLOCKED,
    "http://169.254.169.254/latest/meta-data/": Failure.BLOCKED,
    "http://me:secret@10.0.0.1/": Failure.BLOCKED,
    "http://a.example/" + "x" * 10_000_000: Failure.BAD_URL,
    "http://127.0.0.1/" + "x" * 9000: Failure.BAD_URL,
    "http://\u2603.\u0378.example/": Failure.BAD_URL,
    "http://a.example/\r\nHost: b": Failure.BAD_URL,
}


@pytest.mark.parametrize(("url", "expected"), URLS.items(), ids=[url[:40] for url in URLS])
def test_a_url_that_leads_nowhere_we_go_is_refused(url: str, expected: Failure) -> None:
    client = FeedClient(LIMITS, user_agent="t")
    error = failure(client, url)
    assert error.failure is expected
    assert "secret" not in str(error)
    assert len(str(error)) < 500
    client.close()


TARGETS = {
    "file:///etc/passwd": Failure.BAD_URL,
    "gopher://127.0.0.1/": Failure.BAD_URL,
    "http://a b/": Failure.BAD_URL,
    "http://169.254.169.254/": Failure.BLOCKED,
    "//10.0.0.1/": Failure.BLOCKED,
    "": None,
    "/new": 200,
    "new?x=\u00e9": 200,
    "///": Failure.REDIRECT,
}


@pytest.mark.parametrize(("location", "expected"), TARGETS.items())
def test_where_a_redirect_leads_is_checked_like_any_url(
    client: FeedClient, location: str, expected: Failure | int | None
) -> None:
    def script(connection: socket.socket, head: str) -> None:
        moved = answer(302, Location=location)
        connection.sendall(moved if head.startswith(("GET /feed ", "GET / ")) else answer(body=TEXT))

    def run(chain: RedirectChain) -> int:
        while True:
            found = client.get(HttpRequest(chain.url))
            if found.redirect is None:
                return found.status
            chain = chain.follow(found.status, found.redirect)

    with serving(script) as server:
        if isinstance(expected, Failure):
            with pytest.raises(FetchFailed) as caught:
                run(RedirectChain(server.url()))
            assert caught.value.failure is expected
        else:
            assert run(RedirectChain(server.url())) == (expected or 302)


def test_a_hundred_hostile_servers_at_once_do_not_keep_a_healthy_one_waiting() -> None:
    over = threading.Event()

    def falling_silent_until_over(connection: socket.socket, head: str) -> None:
        connection.sendall(OK + b"Content-Length: 9\r\n\r\nx")
        over.wait(60)

    patient = FeedClient(replace(LIMITS, read_seconds=60, deadline_seconds=60), user_agent="t", allowed=LOOPBACK)
    with serving(falling_silent_until_over) as hostile, serving(saying(answer(body=TEXT))) as healthy:
        threads = [threading.Thread(target=failure, args=(patient, hostile.url())) for _ in range(100)]
        for thread in threads:
            thread.start()
        assert patient.get(HttpRequest(healthy.url())).body == TEXT
        still_waiting = sum(thread.is_alive() for thread in threads)
        over.set()
        for thread in threads:
            thread.join()
    patient.close()
    assert still_waiting == 100, "it came only after some of them"
