"""Room for large bodies: few are held at a time, and a fetch that waits for room is not a slow one."""

from __future__ import annotations

import gzip
import ipaddress
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.fetcher.http.client import ClientLimits, FeedClient, HttpResponse
from services.fetcher.http.decoding import FREE_BYTES
from services.fetcher.http.failure import Failure, FetchFailed
from services.fetcher.http.request import HttpRequest
from tests.integration.fetcher.raw_server import RawServer, answer, saying, serving

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)
LARGE = answer(body=b"x" * 2 * FREE_BYTES)
SMALL = answer(body=b"x" * FREE_BYTES)
BROKEN = answer(body=gzip.compress(b"x" * 2 * FREE_BYTES)[:-8] + b"\0" * 8, Content_Encoding="gzip")
GIB = 1024**3
ROOT = Path(__file__).parents[3]


@pytest.fixture
def server() -> Iterator[RawServer]:
    replies = {"/large": LARGE, "/small": SMALL, "/broken": BROKEN}
    with serving(lambda connection, head: connection.sendall(replies[head.split()[1]])) as server:
        yield server


@pytest.fixture
def make_client() -> Iterator[Callable[..., FeedClient]]:
    clients: list[FeedClient] = []

    def make(**limits: float) -> FeedClient:
        client = FeedClient(ClientLimits(large_bodies=1, **limits), user_agent="t", allowed=LOOPBACK)  # type: ignore[arg-type]
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


def test_the_next_large_body_waits_until_one_is_done_with_and_its_deadline_waits_too(
    server: RawServer, make_client: Callable[..., FeedClient]
) -> None:
    client = make_client(deadline_seconds=0.6)
    found: list[HttpResponse] = []
    with client.get(HttpRequest(server.url("/large"))) as first:
        second = threading.Thread(target=lambda: found.append(client.get(HttpRequest(server.url("/large")))))
        second.start()
        second.join(1)  # longer than its deadline
        assert second.is_alive()
        assert client.get(HttpRequest(server.url("/small"))).body == b"x" * FREE_BYTES
        assert len(first.body) == 2 * FREE_BYTES
    second.join(5)
    assert found[0].body == first.body
    assert found[0].waited_seconds > first.waited_seconds


def test_waiting_for_room_has_an_end(server: RawServer, make_client: Callable[..., FeedClient]) -> None:
    client = make_client(large_body_wait_seconds=0.1)
    with (
        client.get(HttpRequest(server.url("/large"))),
        pytest.raises(FetchFailed, match="no room for a large") as caught,
    ):
        client.get(HttpRequest(server.url("/large")))
    assert (caught.value.failure, caught.value.status) == (Failure.TIMEOUT, 200)


def test_a_permit_is_released_once_and_whatever_happens(
    server: RawServer, make_client: Callable[..., FeedClient]
) -> None:
    client = make_client(large_body_wait_seconds=0.1)
    with pytest.raises(FetchFailed, match="no gzip stream") as held:  # as one who logs it would
        client.get(HttpRequest(server.url("/broken")))
    with client.get(HttpRequest(server.url("/large"))) as first:
        first.release()
        with client.get(HttpRequest(server.url("/large"))):
            first.release()
            with pytest.raises(FetchFailed, match="no room"):
                client.get(HttpRequest(server.url("/large")))
    assert held.value.failure is Failure.PROTOCOL
    client.get(HttpRequest(server.url("/large")))  # dropped without a word
    client.get(HttpRequest(server.url("/large")))


CROWD = """
import ipaddress, re, sys, threading
from pathlib import Path
from services.fetcher.http.client import ClientLimits, FeedClient
from services.fetcher.http.request import HttpRequest

url, errors = sys.argv[1], []
client = FeedClient(ClientLimits(deadline_seconds=120, read_seconds=60), user_agent="t",
                    allowed=(ipaddress.ip_network("127.0.0.0/8"),))

def fetch():
    try:
        with client.get(HttpRequest(url)) as answer:
            assert len(answer.body) == 10_000_000
    except BaseException as error:
        errors.append(repr(error))

threads = [threading.Thread(target=fetch) for _ in range(200)]
for thread in threads: thread.start()
for thread in threads: thread.join()
client.close()
assert not errors, errors[:3]
# Not ru_maxrss, which begins with the peak of the process that started this one.
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024)
"""


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_two_hundred_fetches_of_ten_megabytes_stay_far_below_a_gibibyte(encoding: str) -> None:
    body = b"0123456789" * 1_000_000
    reply = answer(body=gzip.compress(body, 1) if encoding == "gzip" else body, Content_Encoding=encoding)
    with serving(saying(reply)) as server:
        crowd = [sys.executable, "-c", CROWD, server.url()]
        ran = subprocess.run(crowd, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < GIB / 2
