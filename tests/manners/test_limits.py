"""MANNERS 23, 24, 26 to 29: servers can't harm us, and articles can't harm their readers."""

from __future__ import annotations

import pytest

from tests.integration.fetcher.raw_server import answer
from tests.manners.replies import bomb, endless, fresh, resting, rss
from tests.manners.services import DEADLINE_SECONDS, MAX_BODY_BYTES
from tests.manners.sites import Reply, Site, Visit
from tests.manners.world import World

ONCE = 3600.0
"""An interval after which these tests are over."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n"
TOO_MUCH = rss("one", text="much " * (MAX_BODY_BYTES // 5))

DRIPPING = Site({"/feed": [endless(HEAD + b"<rss>", b" ", pause_seconds=0.2), resting()]})
DRIPPING_HEAD = Site({"/feed": [endless(b"HTTP/1.1 200 OK\r\nX: ", b"x", pause_seconds=0.2), resting()]})


@pytest.mark.parametrize("site", [DRIPPING, DRIPPING_HEAD], ids=["body", "head"])
def test_23_a_server_that_drips_is_cut_off_at_the_deadline(world: World, site: Site) -> None:
    site.wait_for_cut_off()
    (attempt,) = world.attempts(site, 1)
    assert (attempt["outcome"], attempt["error_class"]) == ("soft_error", "timeout")
    assert attempt["elapsed_seconds"] >= DEADLINE_SECONDS


ANNOUNCING = Site({"/feed": [fresh(TOO_MUCH)]}, interval=ONCE)
POURING = Site({"/feed": [endless(HEAD + b"<rss>", b" " * 10_000)]}, interval=ONCE)
CUTTING_SHORT = Site({"/feed": [answer(200, rss("one"), Content_Length="1000"), resting(rss("two"))]})


@pytest.mark.parametrize("site", [ANNOUNCING, POURING], ids=["announced", "without an end"])
def test_23_a_body_over_the_limit_is_an_error_and_brings_no_part_of_itself(world: World, site: Site) -> None:
    assert world.attempts(site, 1)[0]["outcome"] == "too_large"
    assert world.articles(site) == []


def test_23_a_body_that_was_cut_short_is_an_error_and_brings_no_part_of_itself(world: World) -> None:
    assert [attempt["outcome"] for attempt in world.attempts(CUTTING_SHORT, 2)] == ["soft_error", "fetched"]
    assert [article["title"] for article in world.articles(CUTTING_SHORT)] == ["two"]


SWELLING = Site({"/feed": [bomb("gzip", layers=1)]}, interval=ONCE)
CHAINED = Site({"/feed": [bomb("gzip, gzip", layers=2)]}, interval=ONCE)
BEHIND = b"HTTP/1.1 302 Found\r\nLocation: /page\r\n\r\n"
POURING_REDIRECT = Site({"/feed": [endless(BEHIND, b" " * 100_000)], "/page": [resting()]})


@pytest.mark.parametrize("site", [SWELLING, CHAINED], ids=["gzip", "gzip in gzip"])
def test_24_the_limit_counts_decoded_bytes_while_they_stream(world: World, site: Site) -> None:
    (attempt,) = world.attempts(site, 1)
    assert attempt["outcome"] == "too_large"
    site.wait_for_cut_off()


def test_24_the_body_of_a_redirect_is_not_waited_for(world: World) -> None:
    assert world.attempts(POURING_REDIRECT, 1)[0]["outcome"] == "fetched"
    POURING_REDIRECT.wait_for_cut_off()


SCRIPT = "javascript:alert(1)"
LINKS = f"""
<rss version="2.0"><channel><title>News</title><link>{SCRIPT}</link>
<item><title>one</title><link>{SCRIPT}</link><enclosure url="file:///etc/passwd" type="a/b" length="1"/></item>
<item><title>two</title><link>data:text/html,x</link><guid isPermaLink="true">JavaScript:alert(2)</guid></item>
<item><title>three</title><link>/three</link><enclosure url="https://news.example/3" type="a/b" length="1"/></item>
</channel></rss>
""".encode()
SEDUCTIVE = Site({"/feed": [resting(LINKS)]})
ELSEWHERE = ("javascript:alert(1)", "data:text/xml,<rss/>", "file:///etc/passwd", "ftp://127.0.0.1/feed")
LEADING_ASTRAY = Site(
    {f"/{n}": [answer(302, Location=url)] for n, url in enumerate(ELSEWHERE)}, ("/0", "/1", "/2", "/3"), interval=ONCE
)


def test_26_no_link_but_http_and_https_reaches_an_article(world: World) -> None:
    world.attempts(SEDUCTIVE, 1)
    stored = [(article["title"], article["url"], article["enclosures"]) for article in world.articles(SEDUCTIVE)]
    assert [(title, url) for title, url, _ in stored if title == "three"] == [("three", SEDUCTIVE.url("/three"))]
    urls = [url for _, url, _ in stored] + [enclosure["url"] for _, _, found in stored for enclosure in found]
    assert set(urls) <= {"", SEDUCTIVE.url("/three"), SEDUCTIVE.url(), "https://news.example/3"}
    assert "javascript" not in (world.feed(SEDUCTIVE)["site_url"] or "")


@pytest.mark.parametrize("page", LEADING_ASTRAY.feeds)
def test_26_no_redirect_leads_out_of_http_and_https(world: World, page: str) -> None:
    (attempt,) = world.attempts(LEADING_ASTRAY, 1, page)
    assert (attempt["outcome"], attempt["error_class"]) == ("hard_error", "bad_url")


MARKUP = "&lt;p onclick='x()'&gt;Read&lt;script&gt;alert(1)&lt;/script&gt; &lt;b&gt;this&lt;/b&gt;&lt;/p&gt;"
ACTIVE = Site({"/feed": [resting(rss("one", text=MARKUP))]})


def test_27_what_is_stored_of_html_is_its_text(world: World) -> None:
    world.attempts(ACTIVE, 1)
    assert [article["body"] for article in world.articles(ACTIVE)] == ["Read this"]


CONSUMED = Site({"/feed": [fresh(rss("one")), resting(rss("two", "one"))]}, interval=None)


def test_28_an_article_that_was_consumed_is_not_imported_again_as_new(world: World) -> None:
    world.attempts(CONSUMED, 1)
    world.execute("DELETE FROM pending_articles WHERE feed_id = %(id)s", CONSUMED)
    world.execute("UPDATE feeds SET next_fetch_at = now() WHERE id = %(id)s", CONSUMED)
    assert world.attempts(CONSUMED, 2)[1]["items_new"] == 1
    assert [article["title"] for article in world.articles(CONSUMED)] == ["two"]


def tick(visit: Visit) -> list[bytes]:
    return [fresh(rss("one", text=f"It is {visit.arrived}."))]


MOST_UPDATES = 24
CLOCK: list[Reply] = [tick] * (MOST_UPDATES + 4)
TICKING = Site({"/feed": [*CLOCK, resting()]}, interval=0.2)


def test_29_a_feed_that_prints_the_time_causes_a_bounded_number_of_updates(world: World) -> None:
    assert all(attempt["outcome"] == "fetched" for attempt in world.attempts(TICKING, len(CLOCK)))
    (item,) = world.query("SELECT updates FROM feed_items WHERE feed_id = %(id)s", TICKING)
    assert item["updates"] == MOST_UPDATES
