"""Adding feeds over HTTP, and how little their servers are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest

from services.admin.feeds import adding
from services.admin.feeds.host_slot import host_slot
from services.admin.registry import connect
from tests.integration.fetcher.raw_server import RawServer, answer, saying, serving
from tests.unit.parse.feeds import rss

PAGE = b"""<html><head><link rel=alternate type="application/rss+xml" title="[/b] Posts" href="/posts.xml">
<link rel=alternate type="application/rss+xml" title="Comments" href="http://other.example/rss"></head></html>"""
FEED = rss("<item><title>t</title><link>http://news.example/1</link></item>").encode()


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("FEEDMILL_HOST_MIN_INTERVAL_SECONDS", "0.01")


async def add(api: httpx.AsyncClient, url: str, status: int = 201, **body: Any) -> httpx.Response:
    found = await api.post("/api/feeds", json={"url": url, **body})
    assert found.status_code == status, found.text
    return found


def rows(database_url: str, statement: str) -> list[Any]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(statement.encode()).fetchall()


async def test_a_feed_is_created_once_and_found_afterwards(api: httpx.AsyncClient) -> None:
    first = await add(api, "HTTP://News.example/feed#x", name="News", tags=["a", "A", "b"], longest_seconds=60)
    assert first.headers["Location"] == "/api/feeds/1"
    assert (first.json()["url"], first.json()["tags"], first.json()["longest_seconds"]) == (
        "http://news.example/feed",
        ["a", "b"],
        60,
    )
    shown = await api.get(first.headers["Location"])
    assert shown.headers["ETag"] == first.headers["ETag"]
    again = await add(api, "http://news.example/feed", 200, name="Other")
    assert (again.json()["is_new"], again.json()["name"], "Location" in again.headers) == (False, "News", False)
    assert again.headers["ETag"] == first.headers["ETag"]


@pytest.mark.parametrize(
    ("url", "registered"),
    [
        ("feed://news.example/rss", "http://news.example/rss"),
        ("feed:https://news.example/rss", "https://news.example/rss"),
        (" http://news.example/rss\n", "http://news.example/rss"),
    ],
)
async def test_a_feed_url_of_old_browsers_is_http(api: httpx.AsyncClient, url: str, registered: str) -> None:
    assert (await add(api, url)).json()["url"] == registered


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://a.example/feed", "http"),
        ("file:///etc/passwd", "http"),
        ("javascript:feed", "http"),
        ("news.example/feed", "http"),
        ("", "http"),
        ("http://", "host"),
        ("http://10.0.0.1/feed", "FEEDMILL_ALLOW_NETWORKS"),
        ("http://169.254.169.254/feed", "FEEDMILL_ALLOW_NETWORKS"),
        ("http://[::1]/feed", "FEEDMILL_ALLOW_NETWORKS"),
        ("http://0xa000001/feed", "FEEDMILL_ALLOW_NETWORKS"),
        ("feed://192.168.0.1/feed", "FEEDMILL_ALLOW_NETWORKS"),
        ("http://a.example/\u0001feed", "control character"),
        ("http://a.example/" + "x" * 3000, "at most 2000"),
        ("http://me:hunter2@10.0.0.1/feed", "not a public address"),
    ],
)
async def test_what_cannot_be_polled_is_refused_with_a_sentence(
    api: httpx.AsyncClient, database_url: str, url: str, said: str
) -> None:
    problem = (await add(api, url, 422)).json()
    assert said in problem["detail"]
    assert problem["errors"][0]["field"] == "body.url"
    assert "hunter2" not in str(problem)
    assert rows(database_url, "SELECT FROM feeds") == []


async def test_this_machine_is_refused(api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEEDMILL_ALLOW_NETWORKS")
    for host in ("localhost:8000", "a.localhost.", "127.1"):
        assert "not a public address" in (await add(api, f"http://{host}/feed", 422)).json()["detail"]


async def test_three_hundred_callers_create_one_feed(api: httpx.AsyncClient, database_url: str) -> None:
    async def create() -> httpx.Response:
        while True:  # a pool of ten connections has no room for all within three seconds on a busy machine
            found = await api.post("/api/feeds", json={"url": "http://a.example/feed"})
            if found.status_code != 503:
                return found

    answers = await asyncio.gather(*(create() for _ in range(300)))
    assert sorted(found.status_code for found in answers) == [200] * 299 + [201]
    assert {found.json()["id"] for found in answers} == {rows(database_url, "SELECT id FROM feeds")[0][0]}


@pytest.fixture
def page() -> Iterator[RawServer]:
    with serving(saying(answer(200, PAGE))) as server:
        yield server


async def test_of_a_page_the_first_feed_is_taken_and_said(api: httpx.AsyncClient, page: RawServer) -> None:
    added = (await add(api, page.url("/"))).json()
    assert added["url"] == page.url("/posts.xml")
    assert added["notes"] == [f"a page with 2 feeds; took {page.url('/posts.xml')}"]
    assert len(page.requests) == 1


async def test_a_person_who_chooses_costs_the_page_no_second_request(
    api: httpx.AsyncClient, page: RawServer, database_url: str
) -> None:
    config = {"user": "me", "password": "hunter2", "timeout_seconds": 9}
    problem = await add(api, page.url("/"), 409, choose="ask", config=config)
    assert problem.headers["content-type"] == "application/problem+json"
    candidates = problem.json()["candidates"]
    assert candidates == [
        {"url": page.url("/posts.xml"), "title": "[/b] Posts"},
        {"url": "http://other.example/rss", "title": "Comments"},
    ]
    for one in candidates:
        await add(api, one["url"], found_at=page.url("/"), check=False, config=config)
    assert len(page.requests) == 1
    stored = rows(database_url, "SELECT source_config FROM feeds ORDER BY id")
    assert stored == [(config,), ({"timeout_seconds": 9},)], "secrets stay with the page's origin"


async def test_a_feed_that_is_found_has_had_its_first_poll(api: httpx.AsyncClient, database_url: str) -> None:
    with serving(saying(answer(200, FEED, ETag='"1"'))) as server:
        added = (await add(api, server.url("/"))).json()
        assert (added["last_outcome"], added["pending_articles"], added["notes"]) == ("fetched", 1, [])
        assert (await add(api, server.url("/"), 200)).json()["is_new"] is False
        assert len(server.requests) == 1
    assert rows(database_url, "SELECT etag, claim_id, next_fetch_at > now() FROM feeds") == [('"1"', None, True)]


async def test_callers_of_one_page_ask_its_server_once(api: httpx.AsyncClient, database_url: str) -> None:
    with serving(saying(answer(200, FEED))) as server:
        answers = await asyncio.gather(*(api.post("/api/feeds", json={"url": server.url("/")}) for _ in range(20)))
        assert len(server.requests) == 1
    assert sorted(found.status_code for found in answers) == [200] * 19 + [201]


async def test_where_no_feed_is_found_nothing_is_added(api: httpx.AsyncClient, database_url: str) -> None:
    with serving(saying(answer(200, b"<html>"))) as server:
        assert "no feed was found" in (await add(api, server.url("/"), 422)).json()["detail"]
    assert rows(database_url, "SELECT FROM feeds") == []


async def test_a_page_that_cannot_be_looked_at_is_taken_as_it_is(api: httpx.AsyncClient) -> None:
    (note,) = (await add(api, "http://127.0.0.1:1/")).json()["notes"]
    assert note.startswith("could not be checked, taken as it is")


WAITING = """
SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database
WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()
"""


async def test_a_host_that_others_ask_all_the_time_is_a_503_and_keeps_no_other_host_waiting(
    api: httpx.AsyncClient, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "PATIENCE_SECONDS", 2.0)
    with (
        serving(saying(answer(200, FEED))) as free,
        serving(saying(answer(200, FEED))) as busy,
        connect(database_url) as connection,
    ):
        connection.commit()
        with host_slot(connection, f"127.0.0.1:{busy.port}", 0.0):
            waiting = [asyncio.create_task(api.post("/api/feeds", json={"url": busy.url(f"/{n}")})) for n in range(12)]
            while not rows(database_url, WAITING):
                await asyncio.sleep(0.02)
            await add(api, free.url("/"))
            first, *others = waiting
            found = await first
            assert (found.status_code, found.headers["Retry-After"]) == (503, "5")
            assert "others are asking this host" in found.json()["detail"]
            for one in others:
                one.cancel()
        assert busy.requests == []
