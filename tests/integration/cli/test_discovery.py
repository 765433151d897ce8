"""`feedmill feeds add PAGE`: what it finds, and how little it asks."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count

import pytest

from services.admin.feeds.configs import config_for
from services.admin.feeds.discovery import (
    MAX_REQUESTS,
    Discovery,
    Found,
    NoFeed,
    choose_feed,
    linked_feeds,
    looks_like_feed,
)
from services.admin.feeds.host_slot import LeftAlone
from services.fetcher.__main__ import make_client
from services.fetcher.clock import Clock
from services.fetcher.settings import FetcherSettings
from shared.wire.outcomes import Outcome
from tests.integration.fetcher.raw_server import answer, serving
from tests.unit.parse.feeds import rss

PAGE = """<html><head><base href="/blog/"><!-- <link rel="alternate" type="application/rss+xml" href="/old"> -->
<link rel=stylesheet type=text/css href=a.css><link rel="alternate" hreflang="de" href="/de">
<link type="application/rss+xml" title="All &amp; more" rel="alternate" href="feed.xml?a=1&amp;b=2">
<LINK REL='Alternate Feed' TYPE='application/atom+xml; charset=utf-8' HREF='https://other.example/atom'/>
<link rel="alternate" type="application/feed+json" href="javascript:x"></head><body>words</body></html>"""


def test_a_pages_feeds_are_found_in_its_order() -> None:
    found = [(one.url, one.title) for one in linked_feeds(PAGE, "https://example.org/x/y")]
    assert found == [
        ("https://example.org/blog/feed.xml?a=1&b=2", "All & more"),
        ("https://other.example/atom", ""),
    ]


def test_attributes_need_no_quotes() -> None:
    page = "<link rel=alternate type=application/rss+xml href=/b/feed.xml><link rel=alternate type=text/xml href=x />"
    found = [one.url for one in linked_feeds(page, "https://example.org/")]
    assert found == ["https://example.org/b/feed.xml", "https://example.org/x"]


@pytest.mark.parametrize("unit", ["<link ", "<link rel=", "<!--", "<!-- -", "<base ", "<link rel='"])
def test_a_hostile_page_is_worked_off_once(unit: str) -> None:
    assert linked_feeds(unit * (3_000_000 // len(unit)), "https://example.org/") == []


def test_a_url_that_looks_like_a_feed_is_not_requested() -> None:
    for url in (
        "https://example.org/feed/",
        "http://a.example/index.RDF",
        "https://a.example/?format=xml",
        "https://rss.a.example/x",
    ):
        assert looks_like_feed(url)
    for url in (
        "https://example.org",
        "https://example.org/blog/",
        "https://example.org/index.html",
        "https://a.example/?id=3",
    ):
        assert not looks_like_feed(url)


FEED = rss("<item><title>t</title></item>").encode()


class Search:
    """A search that waits for nobody; `slots` are the groups that it asked, with the distance that they are given."""

    def __init__(self, *, allowed: str = "127.0.0.0/8") -> None:
        self.slots: list[tuple[str, float]] = []
        self.said: list[str] = []
        self.config: dict[str, object] = {}
        self.resting: set[str] = set()
        self.settings = FetcherSettings(allow_networks=allowed)
        self.client = make_client(self.settings)
        self.clock: Clock | None = None

    @contextmanager
    def slot(self, group: str, seconds: float) -> Iterator[Callable[[], None]]:
        if group in self.resting:
            raise LeftAlone(f"{group} asked to be left alone")
        self.slots.append((group, seconds))
        yield lambda: None

    def find(self, url: str) -> list[Found]:
        return Discovery(self.client, self.settings, self.config, self.slot, self.clock).find(url)

    def settle(self, url: str) -> Found:
        search = Discovery(self.client, self.settings, self.config, self.slot, self.clock)
        return choose_feed(url, search, lambda found: found[-1], self.said.append)


@pytest.fixture
def search() -> Iterator[Search]:
    made = Search()
    yield made
    made.client.close()


def by_path(answers: dict[str, bytes]) -> Callable[[socket.socket, str], None]:
    def script(connection: socket.socket, head: str) -> None:
        connection.sendall(answers.get(head.split(" ")[1], answer(404)))

    return script


def test_a_feed_costs_one_request_which_is_its_first_poll(search: Search) -> None:
    with serving(by_path({"/": answer(200, FEED, ETag='"1"', Last_Modified="monday")})) as server:
        found = search.settle(server.url("/"))
        assert (len(server.requests), search.said) == (1, [])
        assert "If-None-Match" not in server.requests[0]
    assert found.url == server.url("/")
    assert found.fetched is not None
    assert (found.fetched.outcome, found.fetched.etag, found.fetched.last_modified) == (
        Outcome.FETCHED,
        '"1"',
        "monday",
    )
    assert [entry.title for entry in found.fetched.entries] == ["t"]


def test_a_page_costs_one_request_and_its_feeds_none(search: Search) -> None:
    with serving(by_path({"/": answer(200, PAGE.encode())})) as server:
        assert search.settle(server.url("/")) == Found("https://other.example/atom")
        assert len(server.requests) == 1
    assert search.said == ["a page with 2 feeds; took https://other.example/atom"]


def test_a_page_without_links_has_the_usual_addresses_tried_each_in_its_slot(search: Search) -> None:
    with serving(by_path({"/blog/": answer(200, b"<html>"), "/atom.xml": answer(200, FEED)})) as server:
        found = search.settle(server.url("/blog/"))
        assert len(server.requests) == 4
    assert found.url == server.url("/atom.xml")
    assert found.fetched is not None
    assert found.fetched.url == found.url
    assert search.slots == [(f"127.0.0.1:{server.port}", 1.0)] * 4


def test_never_more_than_five_requests_are_made(search: Search) -> None:
    moved = {"/": answer(302, Location="/x"), "/x": answer(200, b"<html>"), "/feed": answer(302, Location="/y")}
    with serving(by_path(moved)) as server:
        with pytest.raises(NoFeed, match="an HTML page, and no feed was found from there"):
            search.settle(server.url("/"))
        assert len(server.requests) == MAX_REQUESTS


def test_endless_redirects_are_not_followed(search: Search) -> None:
    with serving(lambda c, head: c.sendall(answer(302, Location=f"{head.split(' ')[1]}x"))) as server:
        with pytest.raises(NoFeed, match="more than 5 redirects"):
            search.settle(server.url("/"))
        assert len(server.requests) == MAX_REQUESTS


def test_an_answer_is_read_within_the_fetchers_budget(search: Search) -> None:
    cpu = count(0, 5)  # five seconds pass with every look at the clock
    search.clock = Clock(lambda: datetime.now(UTC), lambda: 0.0, lambda: float(next(cpu)))
    long = rss("<item><title>t</title></item>" * 100).encode()
    with serving(by_path({"/": answer(200, long)})) as server:
        (found,) = search.find(server.url("/"))
    assert found.fetched is not None
    assert found.fetched.outcome is Outcome.UNPARSEABLE  # a feed was meant
    assert next(cpu) < 100, "it went on"


def test_a_url_that_cannot_be_requested_is_taken_as_it_is(search: Search) -> None:
    found = search.settle("http://127.0.0.1:1/")
    assert found.url == "http://127.0.0.1:1/"
    assert search.said[0].startswith("could not be checked, taken as it is")
    guarded = Search(allowed="")
    with serving(by_path({})) as server:
        assert guarded.settle(server.url("/")).url == server.url("/")
        assert server.requests == []
    guarded.client.close()


def test_a_host_that_asked_to_be_left_alone_is_not_asked(search: Search) -> None:
    with serving(by_path({})) as server:
        search.resting = {f"127.0.0.1:{server.port}"}
        assert search.settle(server.url("/")) == Found(server.url("/"))
        assert server.requests == []
    assert "left alone" in search.said[0]


@pytest.mark.parametrize(("status", "outcome"), [(429, Outcome.THROTTLED), (503, Outcome.GAVE_UP)])
def test_a_failing_server_is_asked_once_and_its_url_taken_as_it_is(
    search: Search, status: int, outcome: Outcome
) -> None:
    wait = {"Retry_After": "7200"} if status == 429 else {}
    with serving(by_path({"/": answer(status, b"<html>", **wait)})) as server:
        found = search.settle(server.url("/"))
        assert len(server.requests) == 1
    assert found.fetched is not None
    assert (found.fetched.outcome, found.fetched.final) == (outcome, True)
    assert f"the server answered {status}" in search.said[0]


@pytest.mark.parametrize("status", [404, 410, 403])
def test_a_missing_page_is_not_searched_for_feeds(search: Search, status: int) -> None:
    with serving(by_path({"/": answer(status, b"<html>"), "/feed": answer(200, FEED)})) as server:
        with pytest.raises(NoFeed, match=f"answered {status}"):
            search.settle(server.url("/"))
        assert len(server.requests) == 1


def test_credentials_for_one_origin_are_not_sent_to_another() -> None:
    config = {"user": "me", "password": "secret", "headers": {"X-Key": "k"}, "timeout_seconds": 9.0}
    assert config_for(config, "http://a.example/", "http://a.example/feed") == config
    assert config_for(config, "http://a.example/", "https://a.example/feed") == config
    for url in ("http://b.example/feed", "http://a.example:81/feed", "http://a.example.b.example/"):
        assert config_for(config, "http://a.example/", url) == {"timeout_seconds": 9.0}
    assert config_for({}, "http://a.example/", "http://b.example/") == {}
