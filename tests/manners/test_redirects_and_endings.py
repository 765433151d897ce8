"""MANNERS 19 to 21: when a feed moves, when it ends, and when it only looks like it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.integration.fetcher.raw_server import answer
from tests.manners.replies import HTML, REST, fresh, redirect, resting, rss
from tests.manners.services import RETRY_SECONDS, SPAN_SECONDS
from tests.manners.sites import Site, Visit
from tests.manners.world import World

MANY = 8
"""Visits that take longer than the span and are more than the sightings that a rule asks for."""


def visited_often(title: str) -> list[bytes]:
    return [*[fresh(rss(title))] * MANY, resting(rss(title))]


NEW_HOME = Site({"/feed": [*[fresh(ETag='"1"')] * MANY, REST]}, feeds=())
MOVED = Site({"/feed": [redirect(NEW_HOME, status=301)]})


def test_19_a_permanent_redirect_moves_a_feed_after_three_fetches_over_the_span(world: World) -> None:
    world.until(lambda: world.feed(MOVED)["url"] == NEW_HOME.url())
    sightings = len(MOVED.visits)
    begun = [attempt["started_at"] for attempt in world.attempts(MOVED, sightings)]
    assert sightings >= 3
    assert (begun[-1] - begun[0]).total_seconds() >= SPAN_SECONDS
    assert NEW_HOME.wait_for(sightings + 1)[-1].header("if-none-match") == '"1"'
    assert len(MOVED.visits) == sightings
    assert world.feed(MOVED)["politeness_group"] == f"{NEW_HOME.host}:{NEW_HOME.port}"


COMMON = Site({"/feed": [*[fresh(rss("common"), ETag='"1"')] * MANY, REST]}, feeds=())
ONE_DOOR = Site({"/feed": [redirect(COMMON, status=301)]})
OTHER_DOOR = Site({"/feed": [redirect(COMMON, status=301)]})


def test_22_of_two_feeds_that_end_at_one_permanent_url_one_is_told_to_be_a_duplicate(world: World) -> None:
    world.until(lambda: not (world.feed(ONE_DOOR)["enabled"] and world.feed(OTHER_DOOR)["enabled"]))
    moved, other = sorted((world.feed(ONE_DOOR), world.feed(OTHER_DOOR)), key=lambda feed: not feed["enabled"])
    assert (moved["url"], moved["enabled"], other["enabled"]) == (COMMON.url(), True, False)
    assert other["disabled_reason"] == f"duplicate: moved for good to the URL of feed {moved['id']}"


FOR_NOW = Site({"/feed": visited_often("now")}, feeds=())
DETOURED = Site({"/feed": [redirect(FOR_NOW, status=302)]})
LAST_STOP = Site({"/feed": visited_often("stop")}, feeds=())
THEN_MOVED = Site({"/feed": [redirect(LAST_STOP, status=301)]}, feeds=())
DETOURED_FIRST = Site({"/feed": [redirect(THEN_MOVED, status=307)]})
FAR_END = Site({"/feed": visited_often("end")}, feeds=())
HALFWAY = Site({"/feed": [redirect(FAR_END, status=307)]}, feeds=())
MOVED_HALFWAY = Site({"/feed": [redirect(HALFWAY, status=308)]})


@pytest.mark.parametrize("site", [DETOURED, DETOURED_FIRST], ids=["302", "307 then 301"])
def test_19_a_temporary_first_hop_never_moves_a_feed(world: World, site: Site) -> None:
    world.attempts(site, MANY)
    feed = world.feed(site)
    assert (feed["url"], feed["moved_to"]) == (site.url(), None)


def test_19_a_feed_moves_along_the_permanent_hops_only(world: World) -> None:
    world.until(lambda: world.feed(MOVED_HALFWAY)["url"] != MOVED_HALFWAY.url())
    assert world.feed(MOVED_HALFWAY)["url"] == HALFWAY.url()


SECURED = Site({"/feed": [lambda visit: [fresh()] if visit.scheme == "https" else to_tls(visit)]}, tls=True)


def to_tls(visit: Visit) -> Sequence[bytes]:
    return [answer(301, Location=SECURED.url(scheme="https"))]


def test_19_the_same_url_over_https_is_adopted_at_once(world: World) -> None:
    world.attempts(SECURED, 1)
    assert world.feed(SECURED)["url"] == SECURED.url(scheme="https")
    assert [visit.scheme for visit in SECURED.wait_for(4)] == ["http", "https", "https", "https"]


INWARDS = Site({"/feed": [*[answer(301, Location="http://[::1]:9/feed")] * MANY, resting()]})


def test_19_a_new_address_that_may_not_be_fetched_from_is_never_adopted(world: World) -> None:
    attempts = world.attempts(INWARDS, MANY)
    assert {attempt["outcome"] for attempt in attempts} == {"blocked"}
    assert world.feed(INWARDS)["url"] == INWARDS.url()


LOST = Site({"/feed": [*[answer(404)] * MANY, resting()]})
OVER = Site({"/feed": [answer(410)]})
NOT_OVER = Site({"/feed": [answer(410), answer(404), answer(410), resting()]})


def test_20_a_404_never_disables_a_feed(world: World) -> None:
    assert {attempt["status"] for attempt in world.attempts(LOST, MANY)} == {404}
    assert world.attempts(LOST, MANY + 1)[-1]["outcome"] == "fetched"


def test_20_a_second_410_after_the_span_disables_a_feed(world: World) -> None:
    world.until(lambda: not world.feed(OVER)["enabled"])
    begun = [attempt["started_at"] for attempt in world.attempts(OVER, 2)]
    assert (begun[1] - begun[0]).total_seconds() >= SPAN_SECONDS
    assert len(OVER.visits) == 2
    assert "410" in world.feed(OVER)["disabled_reason"]


def test_20_a_410_that_does_not_stand_disables_nothing(world: World) -> None:
    assert world.attempts(NOT_OVER, 4)[-1]["outcome"] == "fetched"
    assert world.feed(NOT_OVER)["enabled"]


NEVER_A_FEED = Site({"/feed": [*[answer(200, HTML)] * 3, resting()]})
PORTAL_FOR_A_WHILE = Site({"/feed": [fresh(), answer(200, HTML), resting(rss("one", "two"))]})


def test_21_html_on_first_contact_is_a_hard_error(world: World) -> None:
    found = [(attempt["outcome"], attempt["final"]) for attempt in world.attempts(NEVER_A_FEED, 3)]
    assert found == [("not_a_feed", True)] * 3


def test_21_html_where_a_feed_has_been_is_a_soft_error_and_passes(world: World) -> None:
    attempts = world.attempts(PORTAL_FOR_A_WHILE, 3)
    found = [(attempt["outcome"], attempt["error_class"], attempt["final"]) for attempt in attempts]
    assert found == [("fetched", None, True), ("soft_error", "not_a_feed", False), ("fetched", None, True)]
    assert world.feed(PORTAL_FOR_A_WHILE)["failures"] == 0
    _, portal, again = PORTAL_FOR_A_WHILE.wait_for(3)
    assert again.arrived - portal.arrived >= RETRY_SECONDS
