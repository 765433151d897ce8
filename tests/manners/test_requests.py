"""MANNERS 16 to 18: the contents of requests, and their number."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

from local.settings import child_environment
from services.admin.registry import connect
from tests.integration.fetcher.raw_server import answer
from tests.manners.replies import REST, fresh, redirect, resting
from tests.manners.services import CONTACT_URL
from tests.manners.sites import Site
from tests.manners.world import World

EVERY_REQUEST = {"host", "user-agent", "accept", "accept-encoding", "connection"}
CONDITIONAL = {"if-none-match", "if-modified-since"}
COOKIE = "session=1; Path=/"


def to_itself(path: str) -> bytes:
    return answer(302, Location=path, Set_Cookie=COOKIE)


BAKERY = Site(
    {
        "/feed?a=b&c": [to_itself("/oven"), fresh(ETag='"1"', Last_Modified="monday", Set_Cookie=COOKIE), REST],
        "/oven": [fresh(Set_Cookie=COOKIE)],
    },
    feeds=("/feed?a=b&c",),
)


def test_16_no_cookies_no_referer_and_nothing_that_was_not_asked_for(world: World) -> None:
    BAKERY.wait_for(3, "/feed?a=b&c")
    for visit in BAKERY.visits:
        names = [line.partition(":")[0].lower() for line in visit.lines]
        assert set(names) - CONDITIONAL == EVERY_REQUEST
        assert len(set(names)) == len(names)
        assert visit.method == "GET"


def test_16_no_query_arguments_are_added(world: World) -> None:
    BAKERY.wait_for(3, "/feed?a=b&c")
    assert {visit.target for visit in BAKERY.visits} == {"/feed?a=b&c", "/oven"}


def test_16_the_user_agent_has_name_version_and_contact_and_compression_is_offered(world: World) -> None:
    (visit,) = BAKERY.wait_for(1, "/oven")
    assert visit.header("user-agent") == f"feedmill/{version('feedmill')} (+{CONTACT_URL})"
    assert {"gzip", "deflate"} <= set((visit.header("accept-encoding") or "").replace(" ", "").split(","))


NEWCOMER = Site({"/feed": [resting(ETag='"1"')]}, feeds=())


def test_17_adding_a_feed_costs_one_unconditional_get(world: World) -> None:
    command = [sys.executable, "-m", "services.cli", "feeds", "add", NEWCOMER.url()]
    servers = {"FEEDMILL_DATABASE_URL": world.database_url, "FEEDMILL_AMQP_URL": "amqp://127.0.0.1:1/"}
    servers |= {"FEEDMILL_ALLOW_NETWORKS": "127.0.0.0/8"}
    subprocess.run(command, env=child_environment(servers | {"NO_COLOR": "1"}), check=True, stdout=subprocess.DEVNULL)
    world.until(lambda: has_articles(world, NEWCOMER))
    (visit,) = NEWCOMER.visits
    assert (visit.method, visit.target, visit.validators) == ("GET", "/feed", (None, None))


def has_articles(world: World, site: Site) -> bool:
    with connect(world.database_url) as connection:
        statement = "SELECT 1 FROM pending_articles WHERE url LIKE %s"
        return connection.execute(statement, [site.url("/") + "%"]).fetchone() is not None


STRANGER = Site({"/feed": [resting()]}, feeds=())
SECRETIVE = Site(
    {"/feed": [to_itself("/inside"), redirect(STRANGER)], "/inside": [fresh()]},
    config={"user": "me", "password": "secret", "headers": {"X-Api-Key": "key"}},
)


def test_18_credentials_stay_behind_when_a_redirect_leaves_the_origin(world: World) -> None:
    (there,) = STRANGER.wait_for(1)
    assert (there.header("authorization"), there.header("x-api-key")) == (None, None)
    for visit in SECRETIVE.visits:
        assert (visit.header("authorization"), visit.header("x-api-key")) == ("Basic bWU6c2VjcmV0", "key")
    assert "/inside" in {visit.target for visit in SECRETIVE.visits}
