"""From a name to a trusted connection: one look-up, every address checked, the certificate verified by the name."""

from __future__ import annotations

import errno
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import trustme

from services.fetcher.http import network
from services.fetcher.http.client import ClientLimits, FeedClient
from services.fetcher.http.failure import Failure, FetchFailed
from services.fetcher.http.network import MAX_ADDRESSES, RESOLVERS
from services.fetcher.http.request import HttpRequest
from tests.integration.fetcher.raw_server import answer, saying, serving

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
LIMITS = ClientLimits(deadline_seconds=5, connect_seconds=1, read_seconds=2)
HELLO = saying(answer(body=b"hello"))
TODAY = datetime.now(UTC)


class Names:
    """A resolver with fixed answers, and the names that it was asked for."""

    def __init__(self) -> None:
        self.addresses: dict[str, list[str]] = {}
        self.asked: list[str] = []

    def look_up(self, host: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        self.asked.append(host)
        if host not in self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in self.addresses[host]
        ]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    names = Names()
    monkeypatch.setattr(socket, "getaddrinfo", names.look_up)
    return names


@pytest.fixture
def client() -> Iterator[FeedClient]:
    client = FeedClient(LIMITS, user_agent="t", allowed=LOOPBACK)
    yield client
    client.close()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusting(authority: trustme.CA) -> Iterator[FeedClient]:
    """Return a client that trusts the tests' authority, and looks at certificates as any other does."""
    tls = httpx.create_ssl_context()
    authority.configure_trust(tls)
    client = FeedClient(LIMITS, user_agent="t", allowed=LOOPBACK, tls=tls)
    yield client
    client.close()


def server_tls(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def failure(client: FeedClient, url: str, seconds: float | None = None) -> FetchFailed:
    with pytest.raises(FetchFailed) as caught:
        client.get(HttpRequest(url, seconds=seconds))
    return caught.value


def named(url: str, name: str) -> str:
    return url.replace("127.0.0.1", name)


@pytest.mark.parametrize("private", ["10.0.0.1", "169.254.169.254", "::1", "fe80::1", "::ffff:127.0.0.1"])
def test_a_name_with_a_public_and_a_private_address_is_blocked(names: Names, private: str) -> None:
    client = FeedClient(LIMITS, user_agent="t")
    for addresses in (["93.184.216.34", private], [private, "93.184.216.34"]):
        names.addresses["mixed.example"] = addresses
        error = failure(client, "http://mixed.example/")
        assert error.failure is Failure.BLOCKED
    client.close()


def test_a_name_is_looked_up_once_so_that_it_cannot_be_bound_anew(client: FeedClient, names: Names) -> None:
    names.addresses["rebinding.example"] = ["127.0.0.1"]
    with serving(HELLO) as server:
        assert client.get(HttpRequest(named(server.url(), "rebinding.example"))).body == b"hello"
    assert names.asked == ["rebinding.example"]
    assert f"Host: rebinding.example:{server.port}\r\n" in server.requests[0]


def test_the_next_address_is_tried_when_one_refuses(client: FeedClient, names: Names) -> None:
    names.addresses["many.example"] = ["127.0.0.2", "127.0.0.3", "127.0.0.1"]
    with serving(HELLO) as server:
        assert client.get(HttpRequest(named(server.url(), "many.example"))).body == b"hello"
        names.addresses["many.example"] = [*(f"127.0.0.{last}" for last in range(2, 2 + MAX_ADDRESSES)), "127.0.0.1"]
        error = failure(client, named(server.url(), "many.example"))
    assert error.failure is Failure.CONNECT
    assert f"cannot connect to 127.0.0.4 port {server.port}: " in str(error)


def test_the_families_alternate(client: FeedClient, names: Names) -> None:
    names.addresses["six.example"] = ["::1", "::1", "::1", "::1", "127.0.0.1"]
    names.addresses["six.example"][1:4] = ["::ffff:127.0.0.7", "::ffff:127.0.0.8", "::ffff:127.0.0.9"]
    with serving(HELLO) as server:
        assert client.get(HttpRequest(named(server.url(), "six.example"))).body == b"hello"


def test_ipv6_is_spoken(client: FeedClient) -> None:
    try:
        with serving(HELLO, host="::1") as server:
            assert client.get(HttpRequest(server.url())).body == b"hello"
            assert f"Host: [::1]:{server.port}\r\n" in server.requests[0]
    except OSError:
        pytest.skip("this machine has no IPv6")


def test_a_name_that_nobody_knows_is_a_failure_to_connect(client: FeedClient, names: Names) -> None:
    error = failure(client, "http://nowhere.example/")
    assert error.failure is Failure.CONNECT
    assert "cannot resolve nowhere.example" in str(error)
    assert names.asked == ["nowhere.example"]


def test_a_look_up_that_never_began_is_not_the_hosts_fault(client: FeedClient, monkeypatch: pytest.MonkeyPatch) -> None:
    over, begun = threading.Event(), threading.Semaphore(0)

    def look_up_slowly(*_: object, **__: object) -> list[object]:
        begun.release()
        over.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", look_up_slowly)
    found: list[Failure] = []
    slow = [
        threading.Thread(target=lambda: found.append(failure(client, "http://slow.example/", 0.5).failure))
        for _ in range(RESOLVERS)
    ]
    for thread in slow:
        thread.start()
    for _ in slow:
        assert begun.acquire(timeout=30)
    error = failure(client, "http://late.example/", seconds=0.3)
    for thread in slow:
        thread.join()
    over.set()
    assert error.failure is Failure.TIMEOUT
    assert found == [Failure.CONNECT] * RESOLVERS


def test_a_fetch_without_time_left_does_not_blame_its_host(client: FeedClient) -> None:
    assert failure(client, "http://127.0.0.1:9/", seconds=0).failure is Failure.TIMEOUT


@pytest.mark.parametrize(("number", "is_ours"), [(errno.ENETUNREACH, True), (errno.ECONNREFUSED, False)])
def test_a_machine_without_a_way_out_does_not_blame_the_host(
    client: FeedClient, monkeypatch: pytest.MonkeyPatch, number: int, is_ours: bool
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(network, "_reach", fail)
    error = failure(client, "http://127.0.0.1:9/")
    assert (error.failure, error.is_ours) == (Failure.CONNECT, is_ours)


def test_a_machine_without_sockets_is_our_own_trouble(client: FeedClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        client.get(HttpRequest("http://127.0.0.1:9/"))


def test_a_good_certificate_is_trusted_and_the_name_is_sent(
    trusting: FeedClient, names: Names, authority: trustme.CA
) -> None:
    seen: list[str | None] = []
    for host, ascii_host in (
        ("news.example", "news.example"),
        ("b\u00fccher.example", "xn--bcher-kva.example"),
        ("NEWS.example", "news.example"),
    ):
        names.addresses[ascii_host] = ["127.0.0.1"]
        tls = server_tls(authority.issue_cert(ascii_host))
        tls.sni_callback = lambda _, name, __: seen.append(name)
        with serving(HELLO, tls=tls) as server:
            assert trusting.get(HttpRequest(named(server.url(), host))).body == b"hello"
            assert f"Host: {ascii_host}:{server.port}\r\n" in server.requests[0]
        assert seen.pop() == ascii_host


def test_a_root_label_and_an_address_are_verified_too(
    trusting: FeedClient, names: Names, authority: trustme.CA
) -> None:
    names.addresses["news.example."] = ["127.0.0.1"]
    with serving(HELLO, tls=server_tls(authority.issue_cert("news.example", "127.0.0.1"))) as server:
        assert trusting.get(HttpRequest(named(server.url(), "news.example."))).body == b"hello"
        assert trusting.get(HttpRequest(server.url())).body == b"hello"


def expired(authority: trustme.CA) -> trustme.LeafCert:
    past = TODAY - timedelta(days=2)
    return authority.issue_cert("news.example", not_before=past, not_after=past + timedelta(days=1))


CERTIFICATES: dict[str, tuple[Callable[[trustme.CA], trustme.LeafCert], str]] = {
    "expired": (expired, "certificate has expired"),
    "of another host": (lambda authority: authority.issue_cert("other.example"), "Hostname mismatch"),
    "of an unknown authority": (lambda _: trustme.CA().issue_cert("news.example"), "unable to get local issuer"),
}


@pytest.mark.parametrize(("make", "reason"), CERTIFICATES.values(), ids=CERTIFICATES)
def test_a_certificate_that_is_not_to_be_trusted_is_a_failure_to_connect(
    trusting: FeedClient,
    names: Names,
    authority: trustme.CA,
    make: Callable[[trustme.CA], trustme.LeafCert],
    reason: str,
) -> None:
    names.addresses["news.example"] = ["127.0.0.1"]
    with serving(HELLO, tls=server_tls(make(authority))) as server:
        error = failure(trusting, named(server.url(), "news.example"))
    assert error.failure is Failure.CONNECT
    assert f"the certificate of news.example is not to be trusted: {reason}" in str(error)
    assert server.requests == []


def test_a_self_signed_certificate_is_not_to_be_trusted(trusting: FeedClient, names: Names, tmp_path: Path) -> None:
    names.addresses["news.example"] = ["127.0.0.1"]
    own = trustme.CA()
    own.cert_pem.write_to_path(tmp_path / "certificate")
    own.private_key_pem.write_to_path(tmp_path / "key")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    with serving(HELLO, tls=tls) as server:
        error = failure(trusting, named(server.url(), "news.example"))
    assert error.failure is Failure.CONNECT
    assert "self-signed certificate" in str(error)


def test_a_server_without_tls_is_a_failure_to_connect(client: FeedClient) -> None:
    with serving(saying(b"220 hello\r\n"), hasty=True) as server:
        error = failure(client, server.url().replace("http:", "https:"))
    assert error.failure is Failure.CONNECT
    assert "no TLS with 127.0.0.1" in str(error)


def test_plain_http_to_a_server_with_tls_is_a_failure(client: FeedClient, authority: trustme.CA) -> None:
    with serving(HELLO, tls=server_tls(authority.issue_cert("news.example"))) as server:
        error = failure(client, server.url().replace("https:", "http:"))
    assert error.failure is Failure.PROTOCOL


def test_a_handshake_that_is_never_answered_is_cut_off() -> None:
    client = FeedClient(replace(LIMITS, connect_seconds=20), user_agent="t", allowed=LOOPBACK)
    over = threading.Event()

    def say_nothing(*_: object) -> None:
        over.wait(60)

    with serving(say_nothing, hasty=True) as server:
        started = time.monotonic()
        error = failure(client, server.url().replace("http:", "https:"), seconds=0.3)
        assert time.monotonic() - started < 15
        over.set()
    client.close()
    assert error.failure is Failure.CONNECT
    assert "no TLS with 127.0.0.1" in str(error)


def test_a_long_answer_over_tls_is_read_whole(trusting: FeedClient, authority: trustme.CA) -> None:
    body = b"0123456789" * 200_000
    with serving(saying(answer(body=body)), tls=server_tls(authority.issue_cert("127.0.0.1"))) as server:
        assert trusting.get(HttpRequest(server.url())).body == body
