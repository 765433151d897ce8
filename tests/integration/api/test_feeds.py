"""Feeds over HTTP: lists, one feed, its fetches, tags."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import httpx
import psycopg
import pytest

from services.admin.actor import Scope
from services.admin.feeds.listing import SORTS
from services.admin.registry import NewFeed, add_feed, connect
from services.api.routes import feeds as routes
from tests.integration.api.conftest import Caller


def register(database_url: str, *feeds: NewFeed) -> None:
    with connect(database_url) as connection:
        for feed in feeds:
            add_feed(connection, feed)


def change(database_url: str, statement: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(statement.encode())


async def pages(api: httpx.AsyncClient, path: str, **query: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    while True:
        answer = await api.get(path, params=query)
        assert answer.status_code == 200, answer.text
        items += answer.json()["items"]
        query["cursor"] = answer.json()["next"]
        if query["cursor"] is None:
            return items


async def test_feeds_are_listed_page_by_page(api: httpx.AsyncClient, database_url: str) -> None:
    register(database_url, *(NewFeed(f"http://site-{number}.example/feed") for number in range(5)))
    urls = [feed["url"] for feed in await pages(api, "/api/feeds", limit=2)]
    assert urls == [f"http://site-{number}.example/feed" for number in range(5)]


async def test_a_cursor_that_was_made_up_is_refused(api: httpx.AsyncClient) -> None:
    for cursor in ("bm8", "WyJpZCIsMSwxXQ"):  # the second one is for sort=id
        answer = await api.get("/api/feeds", params={"cursor": cursor, "sort": "name"})
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["errors"][0]["field"] == "query.cursor"


async def test_feeds_are_for_those_who_may_read_and_changes_for_those_who_may_write(
    api: httpx.AsyncClient, caller: Caller, database_url: str
) -> None:
    register(database_url, NewFeed("http://a.example/feed"))
    caller.scopes = {Scope.CONSUME}
    for path in ("/api/feeds", "/api/feeds/1", "/api/feeds/1/fetches", "/api/tags"):
        assert (await api.get(path)).status_code == 403
    caller.scopes = {Scope.READ}
    assert (await api.get("/api/feeds/1")).status_code == 200
    refused = [
        await api.post("/api/feeds", json={"url": "http://b.example/feed"}),
        await api.patch("/api/feeds/1", json={"name": "x"}),
        await api.delete("/api/feeds/1"),
        *[await api.post(f"/api/feeds/1/{what}") for what in ("pause", "resume", "fetch")],
    ]
    assert {answer.status_code for answer in refused} == {403}
    assert len(await pages(api, "/api/feeds")) == 1


def test_every_order_is_offered() -> None:
    assert get_args(get_args(routes.Order)[0]) == tuple(SORTS)


@pytest.mark.parametrize("sort", SORTS)
async def test_every_order_is_complete_page_by_page_with_feeds_without_a_value_last(
    api: httpx.AsyncClient, database_url: str, sort: str
) -> None:
    register(database_url, *(NewFeed(f"http://{n}.example/feed", name=["é", "B", None, "A"][n % 4]) for n in range(8)))
    change(
        database_url,
        """
        UPDATE feeds SET failures = id % 3, next_fetch_at = now() + id % 2 * interval '1 hour',
            last_success_at = CASE WHEN id % 4 > 1 THEN now() - id % 3 * interval '1 microsecond' END,
            last_attempt_at = CASE WHEN id > 2 THEN now() - id * interval '1 day' END
        """,
    )
    found = await pages(api, "/api/feeds", sort=sort, limit=1)
    at_once = await pages(api, "/api/feeds", sort=sort)
    for feed in (*found, *at_once):
        del feed["health"]  # says how long ago something was
    assert found == at_once
    assert sorted(feed["id"] for feed in found) == list(range(1, 9))
    by = sort.removeprefix("-")
    values = [feed[by] for feed in found]
    given = [value.lower() if by == "name" else value for value in values if value is not None]
    assert values[len(given) :] == [None] * (8 - len(given))
    assert given == sorted(given, reverse=sort.startswith("-"))
    for one, other in itertools.pairwise(found):
        if one[by] == other[by]:
            assert (one["id"] < other["id"]) != sort.startswith("-")


STATES = """
UPDATE feeds SET next_fetch_at = now() + interval '1 hour';
UPDATE feeds SET enabled = false WHERE id = 1;
UPDATE feeds SET next_fetch_at = now() WHERE id = 2;
UPDATE feeds SET claim_id = gen_random_uuid(), issued_at = now(), claim_expires_at = now() + interval '1 hour'
WHERE id = 3;
UPDATE feeds SET claim_id = gen_random_uuid(), claim_expires_at = now() + interval '1 hour', last_outcome = 'soft_error'
WHERE id = 4;
UPDATE feeds SET failures = 3 WHERE id = 5;
INSERT INTO throttled_groups VALUES ('6.example', now() + interval '1 hour'), ('5.example', now() - interval '1 s');
"""


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"state": "disabled"}, [1]),
        ({"state": "enabled"}, [2, 3, 4, 5, 6]),
        ({"state": "due"}, [2]),
        ({"state": "in_flight"}, [3]),
        ({"state": "retrying"}, [4]),
        ({"state": "failing"}, [4, 5]),
        ({"state": "throttled"}, [6]),
        ({"host": "2.example"}, [2]),
        ({"source_type": "feed", "q": "4.EXAMPLE"}, [4]),
        ({"source_type": "other"}, []),
        ({"url": "HTTP://3.Example/feed"}, [3]),
        ({"url": "no url"}, []),
        ({"tag": "News", "sort": "-id"}, [2, 1]),
        ({"tag": "News", "state": "due"}, [2]),
    ],
)
async def test_feeds_are_chosen_by_what_is_given(
    api: httpx.AsyncClient, database_url: str, query: dict[str, str], ids: list[int]
) -> None:
    tags = {1: ("news",), 2: ("NEWS", "b")}
    register(database_url, *(NewFeed(f"http://{n}.example/feed", tags=tags.get(n, ())) for n in range(1, 7)))
    change(database_url, STATES)
    assert [feed["id"] for feed in await pages(api, "/api/feeds", **query)] == ids


async def test_a_feed_is_shown_without_its_secrets(api: httpx.AsyncClient, database_url: str) -> None:
    config = {"headers": {"X-Anything": "hunter2"}, "user": "me", "password": "hunter2", "timeout_seconds": 9}
    register(database_url, NewFeed("http://me:hunter2@a.example/feed?token=hunter2", config=config))
    change(database_url, "UPDATE feeds SET last_error = 'http://u:hunter2@x/', moved_to = 'http://u:hunter2@y/'")
    shown = await api.get("/api/feeds/1")
    found = await api.post("/api/feeds/lookup", json={"url": "http://me:hunter2@a.example/feed?token=hunter2"})
    assert found.json() == shown.json() | {name: found.json()[name] for name in ("seconds_since_success",)}
    listed = await api.get("/api/feeds")
    for answer in (shown, found, listed):
        assert answer.status_code == 200
        assert "hunter2" not in answer.text + str(answer.headers)
    assert shown.json()["config"] == {
        "headers": {"X-Anything": "***"},
        "user": "me",
        "password": "***",
        "timeout_seconds": 9,
    }


async def test_what_is_not_there_is_404_with_a_sentence(api: httpx.AsyncClient) -> None:
    answers = [
        await api.get("/api/feeds/7"),
        await api.get("/api/feeds/7/fetches"),
        await api.patch("/api/feeds/7", json={"name": "x"}, headers={"If-Match": "*"}),
        await api.delete("/api/feeds/7"),
        *[await api.post(f"/api/feeds/7/{what}") for what in ("pause", "resume", "fetch")],
    ]
    for answer in answers:
        assert answer.status_code == 404
        assert answer.json()["detail"] == "there is no feed 7: `feedmill feeds list` shows all"
    missing = await api.post("/api/feeds/lookup", json={"url": "http://me:hunter2@a.example/"})
    assert missing.status_code == 404
    assert "hunter2" not in missing.text


async def test_fetches_are_listed_from_the_latest_on(api: httpx.AsyncClient, database_url: str) -> None:
    register(database_url, NewFeed("http://a.example/feed"), NewFeed("http://b.example/feed"))
    change(
        database_url,
        """
        INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome, final,
            attempt, items_seen, items_new, wire_bytes, decoded_bytes, status, error)
        SELECT gen_random_uuid(), 1 + n % 2, now(), now() - n / 6 * interval '1 microsecond', 0.5, true, 'fetched',
            true, 0, 7, 3, 0, 0, 200, 'at http://me:hunter2@a.example/' FROM generate_series(1, 20) AS n
        """,
    )
    found = await pages(api, "/api/feeds/1/fetches", limit=3)
    assert len(found) == 10
    assert found == await pages(api, "/api/feeds/1/fetches")
    assert found == sorted(found, key=lambda row: (row["started_at"], row["id"]), reverse=True)
    assert "hunter2" not in str(found)
    for cursor in ("Wzk5OTk5OTk5OTk5OTk5OTk5OSwxXQ", "WzFd"):
        assert (await api.get("/api/feeds/1/fetches", params={"cursor": cursor})).status_code == 422


async def test_tags_are_counted(api: httpx.AsyncClient, database_url: str) -> None:
    register(
        database_url,
        NewFeed("http://a.example/", tags=("News", "b/c")),
        NewFeed("http://b.example/", tags=("news",)),
        NewFeed("http://c.example/"),
    )
    change(database_url, "UPDATE feeds SET enabled = false WHERE id = 2")
    found = await pages(api, "/api/tags", limit=1)
    assert [(row["tag"].lower(), row["feeds"], row["enabled"]) for row in found] == [("b/c", 1, 1), ("news", 2, 1)]
