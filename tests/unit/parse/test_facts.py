from __future__ import annotations

import pytest

from services.fetcher.parse.model import FeedFacts
from tests.unit.parse.feeds import DECLARED, atom, read, rss

CHANNEL = """<title>News</title><link>https://example.org/</link>
    <atom:link rel="self" type="application/rss+xml" href="/feed"/><atom:link rel='hub' href='https://hub.example/?a=1&amp;b'/>
    <atom10:link xmlns:atom10="http://www.w3.org/2005/Atom" rel="hub alternate" href="https://hub2.example/"/>
    <image><title>News</title><url> /i.png </url><link>https://example.org/</link></image>
    <sy:updatePeriod> Hourly </sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>
    <sy:updateBase>2000-01-01T12:00+00:00</sy:updateBase>"""
FACTS = FeedFacts(
    self_url="https://example.org/feed",
    hubs=("https://hub.example/?a=1&b", "https://hub2.example/"),
    image="https://example.org/i.png",
    update_period="hourly",
    update_frequency="2",
    update_base="2000-01-01T12:00+00:00",
)


@pytest.mark.parametrize("after", ["", "<end>"])
def test_what_an_rss_feed_says_of_itself_is_read_by_both_tiers(after: str) -> None:
    body = rss("<item><title>t</title><link rel='hub' href='https://no.example/'/></item>", CHANNEL)
    parsed = read(body.replace("<rss ", f"<rss{DECLARED} ", 1) + after)
    assert parsed.tier == ("lenient" if after else "strict")
    assert parsed.facts == FACTS
    assert parsed.hints.ttl_seconds == 1800


def test_what_an_atom_feed_says_of_itself_is_read() -> None:
    parsed = read(
        atom(
            """<link rel="self" href="https://example.org/atom"/><link rel="hub" href="https://hub.example/"/>
            <link href="https://example.org/"/><icon>/favicon.ico</icon><logo><![CDATA[/logo.png]]></logo>
            <entry><title>t</title></entry>"""
        )
    )
    assert parsed.facts == FeedFacts(
        self_url="https://example.org/atom",
        hubs=("https://hub.example/",),
        icon="https://example.org/favicon.ico",
        image="https://example.org/logo.png",
    )


def test_a_podcasts_cover_is_its_image() -> None:
    body = rss("", '<title>t</title><itunes:image href="https://example.org/cover.jpg"/>')
    assert read(body.replace("<rss ", f"<rss{DECLARED} ", 1)).facts.image == "https://example.org/cover.jpg"


def test_what_a_json_feed_says_of_itself_is_read() -> None:
    parsed = read(
        """{"version": "https://jsonfeed.org/version/1.1", "title": "t", "feed_url": "https://example.org/feed.json",
        "icon": "/large.png", "favicon": "/small.png", "hubs": [{"type": "WebSub", "url": "https://hub.example/"}, 1],
        "items": []}"""
    )
    assert parsed.facts == FeedFacts(
        self_url="https://example.org/feed.json",
        hubs=("https://hub.example/",),
        icon="https://example.org/small.png",
        image="https://example.org/large.png",
    )


def test_a_hostile_address_is_no_fact() -> None:
    parsed = read(
        atom('<link rel="hub" href="javascript:x"/><link rel="self" href="data:,"/><icon>file:///etc/x</icon>')
    )
    assert parsed.facts == FeedFacts()


def test_a_feed_that_says_nothing_has_no_facts() -> None:
    assert read(rss("<item><title>t</title></item>")).facts == FeedFacts()
