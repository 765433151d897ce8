"""MANNERS 8, 10 and 11: the interval between visits follows the server's wishes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise, takewhile

import pytest

from tests.integration.fetcher.raw_server import answer
from tests.manners.replies import REST, fresh, resting, rss
from tests.manners.services import THROTTLE_SECONDS
from tests.manners.sites import Site, Visit
from tests.manners.world import Row, World

LOOPBACK_SECONDS = 0.01
"""Two clocks that are read at the same moment differ by less."""

TWO_HOURS = 7200.0
A_DAY = 86400.0
SYNDICATION = (
    "<s:updatePeriod xmlns:s='http://purl.org/rss/1.0/modules/syndication/'>daily</s:updatePeriod>"
    "<s:updateFrequency xmlns:s='http://purl.org/rss/1.0/modules/syndication/'>12</s:updateFrequency>"
)
LONG_AGO, LATER = "Fri, 31 Dec 1999 22:00:00 GMT", "Sat, 01 Jan 2000 00:00:00 GMT"

MAX_AGE = Site({"/feed": [fresh(Cache_Control="public, max-age=7200")]})
EXPIRES = Site({"/feed": [fresh(Date=LONG_AGO, Expires=LATER)]})
TTL = Site({"/feed": [fresh(rss("one", extra="<ttl>120</ttl>"))]})
UPDATES = Site({"/feed": [fresh(rss("one", extra=SYNDICATION))]})
STILL_FRESH = Site({"/feed": [fresh(ETag='"1"'), answer(304, Cache_Control="max-age=7200")]})


def seconds_to_next(world: World, site: Site, attempt: int = 1, path: str = "/feed") -> float:
    """Return how far the next fetch is from the beginning of an attempt, the latest so far."""
    started = world.attempts(site, attempt, path)[-1]["started_at"]
    return float((world.feed(site, path)["next_fetch_at"] - started).total_seconds())


@pytest.mark.parametrize("site", [MAX_AGE, EXPIRES, TTL, UPDATES], ids=["max-age", "expires", "ttl", "sy:update"])
def test_08_what_the_server_and_the_feed_ask_for_is_a_floor(world: World, site: Site) -> None:
    assert TWO_HOURS <= seconds_to_next(world, site) < 2 * TWO_HOURS


def test_08_a_304_may_raise_the_floor(world: World) -> None:
    assert TWO_HOURS <= seconds_to_next(world, STILL_FRESH, 2) < 2 * TWO_HOURS


SILENT_304 = Site({"/feed": [fresh(rss("one", extra="<ttl>120</ttl>"), ETag='"1"'), answer(304)]})
SAME_AGAIN = Site({"/feed": [fresh(rss("one", extra="<ttl>120</ttl>"))]})


@pytest.mark.parametrize("site", [SILENT_304, SAME_AGAIN], ids=["304", "same body"])
def test_08_a_ttl_holds_also_after_an_answer_that_is_not_read(world: World, site: Site) -> None:
    world.attempts(site, 1)
    world.execute("UPDATE feeds SET next_fetch_at = now() WHERE id = %(id)s", site)
    assert TWO_HOURS <= seconds_to_next(world, site, 2) < 2 * TWO_HOURS


def in_seconds(seconds: int, status: int) -> list[bytes]:
    return [fresh(ETag='"1"'), answer(status, Retry_After=str(seconds)), REST]


def by_date(visit: Visit) -> Sequence[bytes]:
    """Ask to come again two seconds from now, or a little later: an HTTP-date has no fractions."""
    moment = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
    return [answer(429, Retry_After=format_datetime(moment, usegmt=True))]


BOTH = ("/feed", "/other")
OTHERS = [*[fresh(rss("other"))] * 40, resting(rss("other"))]
ASKS_IN_SECONDS = Site({"/feed": in_seconds(2, 429), "/other": OTHERS}, feeds=BOTH)
ASKS_BY_DATE = Site({"/feed": [fresh(), by_date, REST], "/other": OTHERS}, feeds=BOTH)
UNWELL = Site({"/feed": in_seconds(3, 503), "/other": OTHERS}, feeds=BOTH)
WANTS_A_WEEK = Site({"/feed": in_seconds(7 * 86400, 429), "/other": [fresh(rss("other"))]}, feeds=BOTH)
UNWELL_FOR_A_WEEK = Site({"/feed": in_seconds(7 * 86400, 503)})


@pytest.mark.parametrize("site", [ASKS_IN_SECONDS, ASKS_BY_DATE], ids=["seconds", "date"])
def test_10_after_a_429_the_whole_host_is_left_alone_for_as_long_as_it_asked(world: World, site: Site) -> None:
    asked = site.wait_for(2)[1]
    site.wait_for(3)
    assert asked.ended is not None
    assert min(seconds_after(asked, site)) >= 2 - LOOPBACK_SECONDS


def test_10_after_a_503_that_feed_alone_is_left_alone(world: World) -> None:
    _, asked, again = UNWELL.wait_for(3)
    assert asked.ended is not None
    assert again.arrived - asked.ended >= 3 - LOOPBACK_SECONDS
    between = [visit.target for visit in UNWELL.visits if asked.arrived < visit.arrived < again.arrived]
    assert between
    assert set(between) == {"/other"}


def test_10_retry_after_is_kept_for_a_day_at_most(world: World) -> None:
    for site in (WANTS_A_WEEK, UNWELL_FOR_A_WEEK):
        feed = throttled(world, site)
        assert A_DAY - 60 <= (feed["next_fetch_at"] - feed["last_attempt_at"]).total_seconds() < A_DAY + 660
    asked = WANTS_A_WEEK.wait_for(2)[1]
    assert seconds_after(asked, WANTS_A_WEEK) == []


def throttled(world: World, site: Site) -> Row:
    world.until(lambda: world.feed(site)["last_outcome"] == "throttled")
    return world.feed(site)


def test_13_a_throttle_is_kept_where_a_restarted_fetcher_cannot_forget_it(world: World) -> None:
    throttled(world, WANTS_A_WEEK)
    kept = (
        "SELECT extract(epoch FROM until - now()) AS seconds FROM throttled_groups JOIN feeds USING (politeness_group)"
    )
    (row,) = world.query(f"{kept} WHERE id = %(id)s", WANTS_A_WEEK)
    assert A_DAY - 60 <= row["seconds"] <= A_DAY
    assert not world.query(f"{kept} WHERE id = %(id)s", UNWELL_FOR_A_WEEK)  # a 503 is that feed's alone


def hour_of(skipped: Callable[[int], bool]) -> str:
    hours = "".join(f"<hour>{hour}</hour>" for hour in range(24) if skipped(hour))
    return f"<skipHours>{hours}</skipHours>"


NOW_HOUR = datetime.now(UTC).hour
OPEN_HOUR = (NOW_HOUR + 5) % 24
RESTS = Site({"/feed": [fresh(rss("one", extra=hour_of(lambda hour: hour != OPEN_HOUR)), ETag='"1"'), answer(304)]})
NEVER_OPEN = Site({"/feed": [fresh(rss("one", extra=hour_of(lambda hour: True))), resting()]})


def test_09_a_feed_is_not_polled_in_hours_that_it_wants_skipped(world: World) -> None:
    world.attempts(RESTS, 1)
    world.until(lambda: world.feed(RESTS)["next_fetch_at"].astimezone(UTC).hour == OPEN_HOUR)
    world.execute("UPDATE feeds SET next_fetch_at = now() WHERE id = %(id)s", RESTS)
    world.attempts(RESTS, 2)  # a 304 says nothing of hours, and those of the body stay
    world.until(lambda: world.feed(RESTS)["next_fetch_at"].astimezone(UTC).hour == OPEN_HOUR)
    assert len(RESTS.visits) == 2


def test_09_a_feed_that_wants_every_hour_skipped_is_polled_all_the_same(world: World) -> None:
    NEVER_OPEN.wait_for(2)


OFFLINE = Site({"/feed": [fresh(ETag='"1"'), answer(304)]}, interval=900.0)


def test_15_after_downtime_a_feed_is_fetched_once(world: World) -> None:
    world.attempts(OFFLINE, 1)
    for count in (2, 3):
        world.execute("UPDATE feeds SET next_fetch_at = now() - interval '3 days' WHERE id = %(id)s", OFFLINE)
        started = world.attempts(OFFLINE, count)[-1]["started_at"]
        world.until(lambda: world.feed(OFFLINE)["claim_id"] is None)
        wait = (world.feed(OFFLINE)["next_fetch_at"] - started).total_seconds()
        assert 450 <= wait <= 1350  # at the feed's own place in the period, wherever that is
    assert len(OFFLINE.visits) == 3


CURT = Site({path: [answer(429), answer(429), REST] for path in BOTH}, feeds=BOTH)


def test_11_a_bare_429_slows_the_host_down_and_again_more_on_repeat(world: World) -> None:
    for path in BOTH:
        CURT.wait_for(3, path)
    visits = sorted(CURT.visits, key=lambda visit: visit.arrived)
    refused = sum(1 for _ in takewhile(lambda visit: visit.status == 429, visits))
    assert refused >= 2
    for repeat, (before, after) in enumerate(pairwise(visits[: refused + 1])):
        assert before.ended is not None
        assert after.arrived - before.ended >= THROTTLE_SECONDS * 2**repeat - LOOPBACK_SECONDS


def seconds_after(asked: Visit, site: Site) -> list[float]:
    """Return how long after an answer each later visit to its host came."""
    assert asked.ended is not None
    return [visit.arrived - asked.ended for visit in site.visits if visit.arrived > asked.arrived]
