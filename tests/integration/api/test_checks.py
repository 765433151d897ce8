"""Checks of feeds over HTTP and as a command: one fetch each, in the host's turn, and nothing is written."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.types.json import Json
from typer.testing import CliRunner

from services.admin.actor import Scope
from services.admin.feeds import checks
from services.admin.registry import NewFeed, add_feed, connect
from services.api.routes import checks as routes
from services.cli.__main__ import app
from tests.integration.api.conftest import Caller
from tests.integration.fetcher.raw_server import answer, saying, serving

RSS = b"""<rss version="2.0"><channel><title>News</title><link>http://site.example/</link>
<item><title>One</title><link>http://site.example/1</link><pubDate>Sun, 22 Nov 2026 10:00:00 GMT</pubDate></item>
<item><title>Two</title><link>http://site.example/2</link><pubDate>yesterday</pubDate></item>
<item><title>Three &nbsp;</title><link>http://site.example/3</link></item></channel></rss>"""

BROKEN = RSS.replace(b"Three ", b"Three & ")

RELEASES = json.dumps(
    [
        {"id": 7, "tag_name": "v1", "draft": False, "prerelease": False, "published_at": "2026-11-20T10:00:00Z",
         "html_url": "https://github.com/a/b/releases/tag/v1"}
    ]
).encode()  # fmt: skip


@pytest.fixture(autouse=True)
def _allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("FEEDMILL_HOST_MIN_INTERVAL_SECONDS", "0.01")


@pytest.fixture
def hosts() -> Iterator[dict[str, Any]]:
    with (
        serving(saying(answer(body=RSS))) as good,
        serving(saying(answer(body=RELEASES))) as releases,
        serving(saying(answer(body=BROKEN))) as broken,
        serving(saying(answer(404, b"gone"))) as missing,
        serving(saying(answer(301, Location=good.url("/feed")))) as moved,
    ):
        yield {"good": good, "broken": broken, "releases": releases, "missing": missing, "moved": moved}


def register(database_url: str, *feeds: NewFeed) -> list[int]:
    with connect(database_url) as connection:
        return [add_feed(connection, feed)[0] for feed in feeds]


def everything(database_url: str) -> list[Any]:
    tables = ("feeds", "feed_fetch_log", "pending_articles", "feed_items", "audit_log", "throttled_groups")
    with psycopg.connect(database_url) as connection:
        return [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]


async def test_a_feed_that_is_well_is_described_and_nothing_is_written(
    api: httpx.AsyncClient, database_url: str, hosts: dict[str, Any]
) -> None:
    url = hosts["good"].url("/feed")
    (id_,) = register(database_url, NewFeed(url))
    with connect(database_url) as connection:  # a conditional request might be answered without the feed
        connection.execute("UPDATE feeds SET etag = '\"1\"', validators_url = url, last_modified = 'x'")
    before = everything(database_url)
    found = (await api.post(f"/api/feeds/{id_}/check")).json()
    assert (found["well"], found["outcome"], found["status"], found["tier"]) == (True, "fetched", 200, "strict")
    assert (found["entries"], found["sure_dates"], found["full_bodies"]) == (3, 1, 0)
    assert (found["title"], found["redirects"], found["moved_to"]) == ("News", 0, None)
    assert found["newest_at"] is not None
    assert "If-None-Match" not in hosts["good"].requests[0]
    assert everything(database_url) == before


async def test_what_is_wrong_although_it_was_read_is_said(
    api: httpx.AsyncClient, database_url: str, hosts: dict[str, Any]
) -> None:
    (id_,) = register(database_url, NewFeed(hosts["broken"].url("/feed")))
    found = (await api.post(f"/api/feeds/{id_}/check")).json()
    assert (found["well"], found["tier"], found["entries"]) == (True, "lenient", 3)
    assert found["warnings"]


async def test_many_are_checked_in_a_series(api: httpx.AsyncClient, database_url: str, hosts: dict[str, Any]) -> None:
    register(
        database_url,
        NewFeed(hosts["good"].url("/feed"), tags=("a",)),
        NewFeed(hosts["missing"].url("/feed"), tags=("a",)),
        NewFeed(hosts["moved"].url("/feed")),
        NewFeed(hosts["releases"].url("/releases"), source_type="github_releases"),
        NewFeed("http://127.0.0.1:1/feed"),
        NewFeed("http://10.0.0.1/feed"),
    )

    async def check(**chosen: Any) -> dict[int, dict[str, Any]]:
        said = await api.post("/api/feeds/check", json=chosen)
        assert said.status_code == 200
        return {row["feed_id"]: row for row in map(json.loads, said.text.splitlines())}

    found = await check()
    assert {id_: row["outcome"] for id_, row in found.items()} == {
        1: "fetched", 2: "hard_error", 3: "fetched", 4: "fetched", 5: "soft_error", 6: found[6]["outcome"]
    }  # fmt: skip
    assert [id_ for id_, row in sorted(found.items()) if row["well"]] == [1, 3, 4]
    assert found[2]["status"] == 404
    assert found[5]["words"] == "failed, and may pass by itself"
    assert (found[3]["redirects"], found[3]["moved_to"]) == (1, hosts["good"].url("/feed"))
    assert (found[4]["entries"], found[4]["sure_dates"]) == (1, 1)
    assert "not a public address" in found[6]["error"]
    assert (await check(tag="A")).keys() == {1, 2}
    assert (await check(source_type="github_releases")).keys() == {4}
    assert (await check(feeds=[1, hosts["releases"].url("/releases"), "5"])).keys() == {1, 4, 5}
    assert await check(tag="nobody's") == {}
    unknown = await api.post("/api/feeds/check", json={"feeds": [1, 99]})
    assert (unknown.status_code, "there is no feed 99" in unknown.text) == (404, True)
    assert (await api.post("/api/feeds/99/check")).status_code == 404


async def test_a_host_that_asked_for_a_pause_is_left_alone(
    api: httpx.AsyncClient, database_url: str, hosts: dict[str, Any]
) -> None:
    (id_,) = register(database_url, NewFeed(hosts["good"].url("/feed")))
    with connect(database_url) as connection:
        connection.execute(
            "INSERT INTO throttled_groups (politeness_group, until)"
            " SELECT politeness_group, now() + interval '1 hour' FROM feeds"
        )
    found = (await api.post(f"/api/feeds/{id_}/check")).json()
    assert (found["well"], found["outcome"]) == (False, "not_asked")
    assert "asked to be left alone until" in found["error"]
    assert not hosts["good"].requests


async def test_a_host_whose_requests_are_far_apart_is_not_asked(
    api: httpx.AsyncClient, database_url: str, hosts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEEDMILL_HOST_MIN_INTERVAL_SECONDS", "3600")
    (id_,) = register(database_url, NewFeed(hosts["good"].url("/feed")))
    found = (await api.post(f"/api/feeds/{id_}/check")).json()
    assert (found["outcome"], hosts["good"].requests) == ("not_asked", [])
    assert "3600 s apart" in found["error"]


async def test_those_of_one_host_come_one_after_the_other_and_places_are_given_back(
    api: httpx.AsyncClient, database_url: str
) -> None:
    under_way, most, lock = 0, 0, threading.Lock()

    def serve(connection: socket.socket, _head: str) -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        connection.sendall(answer(body=RSS)[:-10])
        with lock:
            under_way -= 1
        connection.sendall(answer(body=RSS)[-10:])

    with serving(serve) as server:
        register(database_url, *(NewFeed(server.url(f"/{number}")) for number in range(20)))
        for _ in range(routes.SERIES_AT_ONCE + 1):
            said = await api.post("/api/feeds/check", json={})
            assert len(said.text.splitlines()) == 20
        assert len(server.requests) == 20 * (routes.SERIES_AT_ONCE + 1)
    assert most == 1


async def test_who_goes_away_ends_the_series(
    api: httpx.AsyncClient, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "AT_ONCE", 2)
    with serving(saying(answer(body=RSS))) as server:
        register(database_url, *(NewFeed(server.url(f"/{number}")) for number in range(60)))
        async with api.stream("POST", "/api/feeds/check", json={}) as said:
            async for _ in said.aiter_lines():
                break
        assert len(server.requests) < 60
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("check")]


async def test_checks_need_a_scope_and_a_sound_body(api: httpx.AsyncClient, caller: Caller) -> None:
    for body in ({"feeds": [True]}, {"feeds": [0]}, {"feeds": ["a\0"]}, {"fields": 1}, {"feeds": [2**63]}):
        assert (await api.post("/api/feeds/check", json=body)).status_code == 422
    for content in (b'{"feeds": ["\\ud800"]}', b"[", b"\xff", b'{"tag": "\\u0000"}'):
        assert (await api.post("/api/feeds/check", content=content)).status_code == 422
    caller.scopes = {Scope.READ}
    assert (await api.post("/api/feeds/check", json={})).status_code == 403
    assert (await api.post("/api/feeds/1/check")).status_code == 403


def test_the_command_says_it_in_words(
    database_url: str, hosts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    register(database_url, NewFeed(hosts["moved"].url("/feed"), tags=("good",)), NewFeed(hosts["missing"].url("/")))
    with connect(database_url) as connection:
        connection.execute("UPDATE feeds SET source_config = %s WHERE id = 1", [Json({"timeout_seconds": 20})])

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["feeds", "check", *arguments], catch_exceptions=False)
        return result.exit_code, result.stdout

    code, said = run("--tag", "good")
    assert code == 0
    assert "well, status 200, strict tier, 3 entries, newest of 2026-11-2" in said
    assert "1 with a sure date, 0 with a full body" in said
    assert f"1 redirect, to {hosts['good'].url('/feed')}" in said
    assert "moved for good to" in said
    assert "1 feeds checked, 0 not well" in said
    code, said = run("2")
    assert code == 1
    assert "not well: hard_error" in said
    assert "404" in said
    code, said = run("--json")
    assert code == 1
    assert [row["well"] for row in sorted(json.loads(said), key=lambda row: row["feed_id"])] == [True, False]
    assert run("--tag", "nobody", "--json") == (0, "[]\n")
