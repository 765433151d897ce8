"""MANNERS 1 to 6, and 12: validators that a server sent are sent back to it."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.integration.fetcher.raw_server import answer
from tests.manners.replies import HTML, REST, fresh, redirect, resting, rss
from tests.manners.services import ALL, RETRY_SECONDS, running
from tests.manners.sites import Site, Visit, serving
from tests.manners.world import World

ODD_DATE = "yesterday, 25:61, \xfc"
ODD_TAG = "W/\"a, 'b' \xfc\""
NOTHING = (None, None)

HONEST = Site({"/feed": [fresh(ETag=ODD_TAG, Last_Modified=ODD_DATE), answer(304), REST]})
DATELESS = Site({"/feed": [fresh(ETag='"1"'), fresh(rss("two")), resting()]})
TAGLESS = Site({"/feed": [fresh(Last_Modified="Thu, 01 Jan 2026 00:00:00 GMT"), REST]})
EVER_NEW = Site({"/feed": [fresh(rss(title), ETag=f'"{title}"') for title in ("one", "two", "three")] + [REST]})


def wire(text: str) -> str:
    """Return a text as the access log shows it: the tests' replies are UTF-8, header lines are read as Latin-1."""
    return text.encode().decode("latin-1")


def test_01_if_modified_since_is_the_stored_last_modified_byte_for_byte(world: World) -> None:
    visits = HONEST.wait_for(3)
    assert [visit.header("if-modified-since") for visit in visits] == [None, wire(ODD_DATE), wire(ODD_DATE)]
    assert world.feed(HONEST)["last_modified"] == wire(ODD_DATE)


def test_01_without_a_last_modified_no_date_is_made_up(world: World) -> None:
    assert [visit.validators for visit in DATELESS.wait_for(3)] == [NOTHING, ('"1"', None), NOTHING]


def test_02_every_etag_of_a_200_comes_back_verbatim(world: World) -> None:
    assert [visit.header("if-none-match") for visit in HONEST.wait_for(3)] == [None, wire(ODD_TAG), wire(ODD_TAG)]
    assert [visit.header("if-none-match") for visit in EVER_NEW.wait_for(4)] == [None, '"one"', '"two"', '"three"']


def test_03_both_validators_are_sent_when_both_are_known_and_none_at_first(world: World) -> None:
    first, second = HONEST.wait_for(2)
    assert first.validators == NOTHING
    assert second.validators == (wire(ODD_TAG), wire(ODD_DATE))
    assert TAGLESS.wait_for(2)[1].validators == (None, "Thu, 01 Jan 2026 00:00:00 GMT")


def lie(visit: Visit) -> list[bytes]:
    """Answer 304 to a conditional request, although the feed has changed."""
    return [answer(304) if visit.header("if-none-match") else fresh(rss("two", "one"), ETag='"1"')]


LYING = Site({"/feed": [fresh(ETag='"1"'), lie]})


def test_07_where_a_304_was_a_lie_one_poll_a_day_leaves_the_validators_out(world: World) -> None:
    LYING.wait_for(2)
    world.execute("UPDATE feeds SET lying_since = now() WHERE id = %(id)s", LYING)
    world.until(lambda: len(world.articles(LYING)) == 2)
    LYING.wait_for(len(LYING.visits) + 3)
    unconditional = [number for number, visit in enumerate(LYING.visits) if visit.validators == NOTHING]
    assert unconditional[0] == 0
    assert len(unconditional) == 2


AT_FIRST_HERE = Site({"/feed": [fresh(ETag='"here"')]}, feeds=())
THEN_THERE = Site({"/feed": [fresh(rss("two"), ETag='"there"'), REST]}, feeds=())
WANDERER = Site(
    {"/feed": [fresh(rss("zero"), ETag='"own"'), *[redirect(AT_FIRST_HERE)] * 2, *[redirect(THEN_THERE)] * 2, REST]}
)


def test_04_validators_are_sent_only_to_the_url_that_gave_them(world: World) -> None:
    visits = WANDERER.wait_for(5)
    assert [visit.validators for visit in visits] == [NOTHING, ('"own"', None), NOTHING, NOTHING, NOTHING]
    assert [visit.validators for visit in AT_FIRST_HERE.wait_for(2)] == [NOTHING, ('"here"', None)]
    assert [visit.validators for visit in THEN_THERE.wait_for(2)] == [NOTHING, ('"there"', None)]


def test_04_validators_outlive_a_restart(amqp_url: str, database_url: str, tmp_path: Path) -> None:
    site = Site({"/feed": [fresh(ETag='"1"', Last_Modified=ODD_DATE), answer(304)]})
    settings = {"FEEDMILL_AMQP_URL": amqp_url, "FEEDMILL_DATABASE_URL": database_url}
    with serving(site):
        world = World(database_url)
        world.register([site])
        with running(ALL, tmp_path, settings):
            world.attempts(site, 1)
        before = len(site.visits)
        with running(ALL, tmp_path, settings):
            visits = site.wait_for(before + 2)
    assert [visit.validators for visit in visits] == [NOTHING, *[('"1"', wire(ODD_DATE))] * (before + 1)]


RENEWING = Site(
    {
        "/feed": [
            fresh(ETag='"1"', Last_Modified="monday"),
            answer(304, ETag='"2"'),
            answer(304, Last_Modified="tuesday"),
            fresh(ETag='"3"', Last_Modified="wednesday"),  # with the very body of the first
            REST,
        ]
    }
)


def test_05_a_304_replaces_the_validators_that_it_carries(world: World) -> None:
    visits = RENEWING.wait_for(4)
    assert [visit.validators for visit in visits[1:]] == [('"1"', "monday"), ('"2"', "monday"), ('"2"', "tuesday")]


def test_05_a_200_with_an_unchanged_body_still_brings_new_validators(world: World) -> None:
    assert RENEWING.wait_for(5)[4].validators == ('"3"', "wednesday")
    assert world.attempts(RENEWING, 4)[3]["outcome"] == "unchanged"


RELAPSING = Site(
    {
        "/feed": [
            fresh(ETag='"good"'),
            answer(200, HTML, ETag='"html"'),
            answer(200, b"<rss><channel><title>News", ETag='"broken"'),
            answer(200, gzip.compress(rss("two"))[:-9], Content_Encoding="gzip", ETag='"cut"'),
            REST,
        ]
    }
)
SETTLED = Site({"/feed": [resting(rss("one", "two"), ETag='"1"')]})


def test_06_validators_are_committed_in_one_transaction_with_their_articles(world: World) -> None:
    world.attempts(SETTLED, 1)
    (feed,) = world.query("SELECT xmin, etag FROM feeds WHERE id = %(id)s", SETTLED)
    articles = world.query("SELECT xmin FROM pending_articles WHERE feed_id = %(id)s", SETTLED)
    assert feed["etag"] == '"1"'
    assert [article["xmin"] for article in articles] == [feed["xmin"]] * 2


def test_06_a_body_that_cannot_be_read_leaves_the_validators_of_the_last_good_one(world: World) -> None:
    visits = RELAPSING.wait_for(5)
    assert [visit.header("if-none-match") for visit in visits] == [None, *['"good"'] * 4]
    assert [article["title"] for article in world.articles(RELAPSING)] == ["one"]


SLOWING = Site(
    {
        "/feed": [
            fresh(ETag='"1"', Last_Modified="monday"),
            answer(429),
            answer(503, Retry_After="1"),
            answer(503),
            answer(429, Retry_After=f"{RETRY_SECONDS + 1:.0f}"),
            answer(503, Retry_After=f"{RETRY_SECONDS + 1:.0f}"),
            REST,
        ]
    }
)


def test_12_a_slow_down_never_leads_to_an_unconditional_fetch(world: World) -> None:
    visits = SLOWING.wait_for(7)
    assert [visit.validators for visit in visits] == [NOTHING, *[('"1"', "monday")] * 6]
    outcomes = {attempt["outcome"] for attempt in world.attempts(SLOWING, 7)}
    assert outcomes == {"fetched", "soft_error", "gave_up", "throttled", "not_modified"}
