from __future__ import annotations

from functools import reduce

import pytest

from services.fetcher.http.failure import Failure, FetchFailed
from services.fetcher.http.redirects import MAX_REDIRECTS, MAX_URL, RedirectChain

START = RedirectChain("http://a.example/dir/feed?x=1")


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/new", "http://a.example/new"),
        ("new", "http://a.example/dir/new"),
        ("../new#part", "http://a.example/new"),
        ("?y=2", "http://a.example/dir/feed?y=2"),
        ("//B.example/new", "http://b.example/new"),
        ("HTTPS://B.example", "https://b.example"),
        ("https://me:Secret@B.example:444/N", "https://b.example:444/N"),
        ("//admin:guess@a.example/new", "http://a.example/new"),
        (" http://b.example/a b/\u00e9?q=\u00e9&r=%20 ", "http://b.example/a%20b/%C3%A9?q=%C3%A9&r=%20"),
        ("http://b.example?a b", "http://b.example?a%20b"),
        ("http://[2001:db8::1]:8080/", "http://[2001:db8::1]:8080/"),
    ],
)
def test_a_location_is_resolved_as_a_reference(location: str, url: str) -> None:
    assert START.follow(302, location) == RedirectChain(url, (START.url,), None, permanent=False)


def test_a_login_in_the_feeds_own_url_stays_at_its_server() -> None:
    start = RedirectChain("http://me:Secret@A.example/feed")
    assert start.follow(301, "/new").moved_to == "http://me:Secret@a.example/new"
    assert start.follow(301, "http://b.example/new").moved_to == "http://b.example/new"


@pytest.mark.parametrize(
    ("statuses", "moved"),
    [((301, 308), "http://a.example/1"), ((301, 302), "http://a.example/0"), ((302, 301), None), ((307, 303), None)],
)
def test_only_an_unbroken_permanent_prefix_moves_a_feed(statuses: tuple[int, ...], moved: str | None) -> None:
    chain = START
    for hop, status in enumerate(statuses):
        chain = chain.follow(status, f"/{hop}")
    assert (chain.url, chain.moved_to, len(chain.visited)) == ("http://a.example/1", moved, 2)


def test_a_circle_is_seen_in_any_spelling() -> None:
    chain = RedirectChain("http://a.example/%20").follow(301, "/b")
    for location in ("http://A.example/%20#x", "/ #", "b"):
        with pytest.raises(FetchFailed, match="circle") as caught:
            chain.follow(302, location)
        assert (caught.value.failure, caught.value.status) == (Failure.REDIRECT, 302)


def test_so_many_redirects_are_followed_and_no_more() -> None:
    chain = reduce(lambda chain, hop: chain.follow(302, f"/{hop}"), range(MAX_REDIRECTS), START)
    assert len(chain.visited) == MAX_REDIRECTS
    with pytest.raises(FetchFailed, match="more than 10 redirects") as caught:
        chain.follow(302, "/one-more")
    assert caught.value.failure is Failure.REDIRECT


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "ftp://a.example/",
        "javascript:alert(1)",
        "data:text/xml,<rss/>",
        "http://",
        "http:///path",
        "http://a b/",
        "http://[::1/",
        "http://a.example:99999/",
        "http://a.example:x/",
        "/" + "x" * MAX_URL,
        "http://\udc80/",
        "/\udc80",
    ],
)
def test_a_target_that_cannot_be_fetched_is_refused(location: str) -> None:
    with pytest.raises(FetchFailed) as caught:
        START.follow(301, location)
    assert (caught.value.failure, caught.value.status) == (Failure.BAD_URL, 301)
