"""`feedmill feeds add PAGE`: what it finds, and how little it asks."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from services.cli.discovery import MAX_REQUESTS, Discovery, Found, NoFeed, linked_feeds, looks_meant, settle_url
from services.fetcher.client import ClientLimits, FeedClient
from services.fetcher.options import FeedOptions
from tests.integration.raw_server import answer, serving
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


def test_what_says_that_it_is_a_feed_is_not_asked() -> None:
    for url in (
        "https://example.org/feed/",
        "http://a.example/index.RDF",
        "https://a.example/?id=3",
        "https://rss.a.example/x",
    ):
        assert looks_meant(url)
    for url in ("https://example.org", "https://example.org/blog/", "https://example.org/index.html"):
        assert not looks_meant(url)


@pytest.fixture
def client() -> Iterator[FeedClient]:
    client = FeedClient(ClientLimits(), user_agent="t", allowed=(ipaddress.ip_network("127.0.0.0/8"),))
    yield client
    client.close()


FEED = rss("<item><title>t</title></item>").encode()


class Search:
    """A search that does not wait; `waits` are the seconds that it would have slept."""

    def __init__(self, client: FeedClient) -> None:
        self.waits: list[float] = []
        self.said: list[str] = []
        self.client = client

    def settle(self, url: str) -> str:
        search = Discovery(self.client, FeedOptions(), 10.0, self.waits.append)
        return settle_url(url, search, lambda found: found[-1], self.said.append)


@pytest.fixture
def search(client: FeedClient) -> Search:
    return Search(client)


def by_path(answers: dict[str, bytes]) -> Callable[[socket.socket, str], None]:
    def script(connection: socket.socket, head: str) -> None:
        connection.sendall(answers.get(head.split(" ")[1], answer(404)))

    return script


def test_a_feed_costs_one_request_and_stays_as_it_was_given(search: Search) -> None:
    with serving(by_path({"/": answer(200, FEED)})) as server:
        assert search.settle(server.url("/")) == server.url("/")
        assert (len(server.requests), search.waits, search.said) == (1, [], [])
        assert "If-None-Match" not in server.requests[0]


def test_a_page_costs_one_request_and_its_feeds_none(search: Search) -> None:
    with serving(by_path({"/": answer(200, PAGE.encode())})) as server:
        assert search.settle(server.url("/")) == "https://other.example/atom"
        assert len(server.requests) == 1
    assert search.said == ["a page with 2 feeds; took https://other.example/atom"]


def test_a_page_without_links_has_the_usual_addresses_tried_with_distance(search: Search) -> None:
    with serving(by_path({"/blog/": answer(200, b"<html>"), "/atom.xml": answer(200, FEED)})) as server:
        assert search.settle(server.url("/blog/")) == server.url("/atom.xml")
        assert len(server.requests) == 4
    assert search.waits == [1.0, 1.0, 1.0]


def test_never_more_than_five_requests_are_made(search: Search) -> None:
    moved = {"/": answer(302, Location="/x"), "/x": answer(200, b"<html>"), "/feed": answer(302, Location="/y")}
    with serving(by_path(moved)) as server:
        with pytest.raises(NoFeed, match="an HTML page, and no feed was found from there"):
            search.settle(server.url("/"))
        assert len(server.requests) == MAX_REQUESTS


def test_an_answer_is_read_within_the_fetchers_budget(client: FeedClient) -> None:
    cpu = count()  # a second passes with every look at the clock
    long = rss("<item><title>t</title></item>" * 100).encode()
    with serving(by_path({"/": answer(200, long)})) as server:
        search = Discovery(client, FeedOptions(), 20.0, cpu=lambda: float(next(cpu)))
        assert search.find(server.url("/")) == [Found(server.url("/"))]  # a feed was meant
    assert next(cpu) < 100


def test_what_cannot_be_asked_is_taken_as_it_is(search: Search) -> None:
    assert search.settle("http://127.0.0.1:1/") == "http://127.0.0.1:1/"
    assert search.said[0].startswith("could not be checked, taken as it is")
    guarded = FeedClient(ClientLimits(), user_agent="t")
    search.client = guarded
    with serving(by_path({})) as server:
        assert search.settle(server.url("/")) == server.url("/")
        assert server.requests == []
    guarded.close()
