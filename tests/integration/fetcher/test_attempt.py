"""One attempt against a real server: its result, and its report about the host."""

from __future__ import annotations

import hashlib
import ipaddress
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from services.fetcher.attempt import FeedFetcher, FetchLimits
from services.fetcher.clock import Clock
from services.fetcher.http.client import ClientLimits, FeedClient
from services.fetcher.http.request import HttpRequest
from services.fetcher.politeness.decisions import Report
from services.fetcher.request import prepare_request
from services.fetcher.settings import FetcherSettings
from shared.errors import NackAndRequeue
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched
from tests.factories import NOW, make_job
from tests.integration.fetcher.raw_server import Script, answer, saying, serving
from tests.unit.parse.feeds import rss

FEED = (
    b"<rss version='2.0'><channel><title>News</title><link>http://news.example/</link>"
    b"<item><title>One</title><link>/1</link></item></channel></rss>"
)


@dataclass(frozen=True)
class Attempt:
    """The result, and the report to each group on the way."""

    fetched: FeedFetched
    reports: list[tuple[str, Report]]

    @property
    def report(self) -> Report:
        """Of the one group that was asked."""
        ((_, report),) = self.reports
        return report


def test_html_is_kept_if_the_settings_say_so() -> None:
    limits = FetcherSettings(keep_html=True).fetch_limits()
    client = FeedClient(ClientLimits(), user_agent="t", allowed=(ipaddress.ip_network("127.0.0.0/8"),))
    body = rss("<item><title>t</title><description>&lt;p&gt;a&lt;/p&gt;</description></item>").encode()
    with serving(saying(answer(body=body))) as server:
        reader = FeedFetcher(client, Clock(now=lambda: NOW, monotonic=time.monotonic), limits)
        job = make_job(url=server.url())
        found, _ = reader.make_request(prepare_request(job, frozenset()), lambda: None)
    client.close()
    assert isinstance(found, FeedFetched)
    assert [entry.html for entry in found.entries] == ["<p>a</p>"]
    assert FetcherSettings().fetch_limits().keep_html is False


def test_a_request_that_may_not_leave_reaches_no_server_although_the_connection_stands() -> None:
    asked: list[str] = []

    def refuse(group: str) -> None:
        asked.append(group)
        raise NackAndRequeue("the shard of its group was lost")

    client = FeedClient(ClientLimits(), user_agent="t", allowed=(ipaddress.ip_network("127.0.0.0/8"),))
    with serving(saying(answer(body=FEED))) as server:
        clock = Clock(now=lambda: NOW, monotonic=time.monotonic)
        reader = FeedFetcher(client, clock, FetchLimits(max_entries=100), refuse)
        request = prepare_request(make_job(url=server.url()), frozenset())
        with pytest.raises(NackAndRequeue):
            reader.make_request(request, lambda: None)
    client.close()
    assert asked == [request.group]
    assert server.requests == []


@pytest.fixture
def attempt() -> Iterator[Callable[..., Attempt]]:
    client = FeedClient(ClientLimits(), user_agent="t", allowed=(ipaddress.ip_network("127.0.0.0/8"),))
    reader = FeedFetcher(client, Clock(now=lambda: NOW, monotonic=time.monotonic), FetchLimits(max_entries=100))

    def run(script: Script, **job: Any) -> Attempt:
        with serving(script) as server:
            fields = {"url": server.url(), "validators_url": server.url(), **job}
            asked, reports = make_job(**fields), list[tuple[str, Report]]()
            found = prepare_request(asked, frozenset())
            while True:
                group = found.group
                step, report = reader.make_request(found, lambda: None)
                reports.append((group, report))
                if isinstance(step, FeedFetched):
                    return Attempt(step, reports)
                found = step

    yield run
    client.close()


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        return int(unused.getsockname()[1])


@pytest.mark.parametrize(("length", "kept"), [(True, '"e"'), (False, None)])
def test_of_a_broken_body_whose_end_only_the_connection_tells_no_validators_are_kept(
    attempt: Callable[..., Attempt], length: bool, kept: str | None
) -> None:
    cut = FEED.replace(b"</channel>", b"<item><title>Two</title><lin").partition(b"</rss>")[0]
    reply = answer(body=cut, ETag='"e"', Content_Type="text/xml")
    if not length:
        head, _, body = reply.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
        reply = b"\r\n".join(lines) + b"\r\n\r\n" + body
    found = attempt(saying(reply)).fetched
    assert [entry.title for entry in found.entries] == ["One"]
    assert found.etag == kept


def test_the_order_of_day_and_month_is_taken_from_the_job_and_a_proof_is_brought_back(
    attempt: Callable[..., Attempt],
) -> None:
    def found(*dates: str, **job: Any) -> FeedFetched:
        items = "".join(f"<item><title>{date}</title><pubDate>{date}</pubDate></item>" for date in dates)
        return attempt(saying(answer(body=rss(items).encode())), **job).fetched

    assert (found("03/04/2025").entries[0].flags, found("03/04/2025").date_order) == (("date_ambiguous",), None)
    told = found("03/04/2025", date_order="month")
    assert (told.entries[0].flags, f"{told.entries[0].published_at:%d %b}", told.date_order) == ((), "04 Mar", None)
    assert found("03/04/2025", "25/04/2025").date_order == "day"


def test_a_feed_that_is_read_brings_entries_validators_and_hints(attempt: Callable[..., Attempt]) -> None:
    reply = answer(body=FEED, ETag='"e"', Last_Modified="today", Cache_Control="max-age=600", Content_Type="text/xml")
    found = attempt(saying(reply)).fetched
    assert (found.outcome, found.status, found.etag, found.last_modified) == (Outcome.FETCHED, 200, '"e"', "today")
    assert (found.hints.max_age_seconds, found.feed.title, found.tier) == (600, "News", "strict")
    assert [entry.title for entry in found.entries] == ["One"]
    assert found.body_hash == hashlib.sha256(FEED).hexdigest()


def test_the_same_body_again_is_unchanged_and_keeps_new_validators(attempt: Callable[..., Attempt]) -> None:
    known = hashlib.sha256(FEED).hexdigest()
    found = attempt(saying(answer(body=FEED, ETag='"new"')), body_hash=known).fetched
    assert (found.outcome, found.etag, found.entries) == (Outcome.UNCHANGED, '"new"', ())


def test_a_304_is_not_modified_if_it_was_asked_for_and_an_error_if_not(attempt: Callable[..., Attempt]) -> None:
    assert attempt(saying(answer(304)), etag='"e"').fetched.outcome is Outcome.NOT_MODIFIED
    assert attempt(saying(answer(304))).fetched.outcome is Outcome.HARD_ERROR


@pytest.mark.parametrize("body", [b"", b"<html><body>Hello</body></html>"])
def test_what_is_no_feed_keeps_no_validators(attempt: Callable[..., Attempt], body: bytes) -> None:
    found = attempt(saying(answer(body=body, ETag='"e"'))).fetched
    assert (found.outcome, found.etag, found.body_hash) == (Outcome.NOT_A_FEED, None, None)


def test_503_holds_back_the_feed_and_429_the_group(attempt: Callable[..., Attempt]) -> None:
    busy = attempt(saying(answer(503, Retry_After="120")))
    assert (busy.fetched.outcome, busy.fetched.not_before) == (Outcome.SOFT_ERROR, NOW + timedelta(seconds=120))
    assert not busy.report.throttled
    throttled = attempt(saying(answer(429, Retry_After="120")))
    assert (throttled.report.throttled, throttled.report.retry_after_seconds) == (True, 120)


def test_a_refused_connection_counts_against_its_own_group_only(attempt: Callable[..., Attempt]) -> None:
    nobody = f"http://127.0.0.1:{unused_port()}/"
    direct = attempt(saying(b""), url=nobody)
    assert (direct.fetched.outcome, direct.report.connected) == (Outcome.SOFT_ERROR, False)
    behind_redirect = attempt(saying(answer(302, Location=nobody)))
    assert behind_redirect.fetched.outcome is Outcome.SOFT_ERROR
    assert [report.connected for _, report in behind_redirect.reports] == [True, False]
    assert behind_redirect.reports[1][0] == nobody.removeprefix("http://").strip("/")


class Resolver:
    """Answers after `seconds`, or not at all: with `error`."""

    def __init__(self, seconds: float, error: OSError | None = None) -> None:
        self.seconds = seconds
        self.error = error

    def __call__(self, host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        time.sleep(self.seconds)
        if self.error:
            raise self.error
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.mark.parametrize("status", [200, 302, 500])
def test_a_slow_resolver_of_ours_is_no_slow_host(
    attempt: Callable[..., Attempt], monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Resolver(0.7))
    with serving(saying(answer(status, body=FEED, Location="mailto:x"))) as server:
        found = attempt(saying(b""), url=server.url().replace("127.0.0.1", "slow.example"))
    assert found.report.latency_seconds is not None
    assert found.report.latency_seconds <= found.fetched.elapsed_seconds - 0.7


@pytest.mark.parametrize(
    ("resolver", "connected"),
    [
        (Resolver(0.0, socket.gaierror(socket.EAI_NONAME, "Name or service not known")), False),
        (Resolver(0.0, socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")), None),
        (Resolver(0.0, socket.gaierror(socket.EAI_FAIL, "Non-recoverable failure")), None),
        (Resolver(1.5), None),
    ],
)
def test_what_a_resolver_says_of_itself_is_not_said_of_the_host(
    attempt: Callable[..., Attempt], monkeypatch: pytest.MonkeyPatch, resolver: Resolver, connected: bool | None
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    found = attempt(saying(b""), url="http://lost.example/", source_config={"timeout_seconds": 1})
    assert (found.fetched.outcome, found.fetched.error_class) == (Outcome.SOFT_ERROR, "connect")
    assert found.report.connected is connected
    assert (found.report.latency_seconds is None) is (connected is None)


def test_a_connection_that_had_no_time_is_not_refused(attempt: Callable[..., Attempt]) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        crowd = [socket.socket() for _ in range(4)]
        for one in crowd:
            one.setblocking(False)
            one.connect_ex(address)
        url = f"http://127.0.0.1:{address[1]}/"
        found = attempt(saying(b""), url=url, source_config={"timeout_seconds": 1})
        for one in crowd:
            one.close()
    assert (found.fetched.error_class, found.report.connected) == ("connect", None)


def test_a_wait_for_room_that_was_in_vain_is_no_slow_host() -> None:
    limits = ClientLimits(large_bodies=1, large_body_wait_seconds=0.7)
    client = FeedClient(limits, user_agent="t", allowed=(ipaddress.ip_network("127.0.0.0/8"),))
    reader = FeedFetcher(client, Clock(now=lambda: NOW, monotonic=time.monotonic), FetchLimits())
    with serving(saying(answer(body=b"<!--" + b" " * 2**20 + b"-->" + FEED))) as server:
        job = make_job(url=server.url())
        with client.get(HttpRequest(server.url())):
            found, report = reader.make_request(prepare_request(job, frozenset()), lambda: None)
    client.close()
    assert isinstance(found, FeedFetched)
    assert found.error_class == "timeout"
    assert report.latency_seconds is not None
    assert report.latency_seconds <= found.elapsed_seconds - 0.7


def test_a_throttle_behind_a_redirect_does_not_throttle_the_origin(attempt: Callable[..., Attempt]) -> None:
    with serving(saying(answer(429, Retry_After="86400"))) as other:
        found = attempt(saying(answer(302, Location=other.url())))
    assert found.fetched.status == 429
    assert [report.throttled for _, report in found.reports] == [False, True]
    assert found.fetched.not_before is not None


def test_a_slow_reader_of_headers_is_a_fact_and_no_exception(attempt: Callable[..., Attempt]) -> None:
    found = attempt(saying(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n")).fetched
    assert (found.outcome, found.error_class) == (Outcome.SOFT_ERROR, "protocol")
