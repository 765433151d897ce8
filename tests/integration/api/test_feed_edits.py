"""Changes of feeds over HTTP: what is merged, what is refused, who is first."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row

from services.admin.registry import NewFeed, add_feed, connect

SECRETS = {"headers": {"X-Key": "hunter2"}, "user": "me", "password": "hunter2"}


@pytest.fixture(autouse=True)
def _feed(database_url: str) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://a.example/feed", config=SECRETS, tags=("news",)))


def row(database_url: str, statement: str = "SELECT *, next_fetch_at - now() AS wait FROM feeds WHERE id = 1") -> Any:
    with psycopg.connect(database_url, row_factory=dict_row) as connection:
        return connection.execute(statement.encode()).fetchone()


def change(database_url: str, statement: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(statement.encode())


async def patch(api: httpx.AsyncClient, status: int = 200, if_match: str | None = None, **body: Any) -> httpx.Response:
    headers = {"If-Match": if_match} if if_match else {}
    answer = await api.patch("/api/feeds/1", json=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert "hunter2" not in answer.text
    return answer


async def test_only_what_is_given_is_changed(api: httpx.AsyncClient, database_url: str) -> None:
    answer = await patch(api, name="A", interval_seconds=60, priority=3)
    assert (answer.json()["name"], answer.json()["interval_seconds"], answer.json()["tags"]) == ("A", 60, ["news"])
    assert row(database_url)["source_config"] == SECRETS
    answer = await patch(api, name=None, interval_seconds=None)
    assert (answer.json()["name"], answer.json()["interval_seconds"], answer.json()["priority"]) == (None, None, 3)
    assert (await patch(api)).json()["priority"] == 3


async def test_tags_are_replaced_or_given_and_taken(api: httpx.AsyncClient) -> None:
    assert (await patch(api, add_tags=["b", "NEWS"], remove_tags=["x"])).json()["tags"] == ["news", "b"]
    assert (await patch(api, remove_tags=["News"])).json()["tags"] == ["b"]
    assert (await patch(api, tags=["c", " d / e "])).json()["tags"] == ["c", "d/e"]
    assert (await patch(api, tags=None)).json()["tags"] == []
    assert "at most 32" in (await patch(api, 422, add_tags=[f"t{n}" for n in range(33)])).json()["detail"]


async def test_settings_are_merged_and_secrets_never_shown(api: httpx.AsyncClient, database_url: str) -> None:
    answer = await patch(api, config={"headers": {"X-Other": "hunter2"}, "timeout_seconds": 9})
    assert answer.json()["config"]["headers"] == {"X-Key": "***", "X-Other": "***"}
    assert row(database_url)["source_config"]["headers"] == {"X-Key": "hunter2", "X-Other": "hunter2"}
    await patch(api, config={"headers": {"X-Key": None}, "user": None, "password": None})
    assert row(database_url)["source_config"] == {"headers": {"X-Other": "hunter2"}, "timeout_seconds": 9}
    assert "leave it out to keep it" in (await patch(api, 422, config={"headers": {"X-Other": "***"}})).text
    await patch(api, config=None)
    assert row(database_url)["source_config"] == {}


async def test_secrets_stay_with_the_origin_that_they_are_for(api: httpx.AsyncClient, database_url: str) -> None:
    await patch(api, url="http://a.example/other")
    assert row(database_url)["source_config"] == SECRETS
    change(database_url, "UPDATE feeds SET etag = '1', validators_url = url, next_fetch_at = now() + interval '1 day'")
    await patch(api, url="http://evil.example/feed")
    found = row(database_url)
    assert (found["source_config"], found["etag"], found["politeness_group"]) == ({}, None, "evil.example")
    assert found["wait"].total_seconds() <= 0
    assert (await patch(api, url="http://b.example/", config={"user": "me"})).json()["config"] == {"user": "me"}


async def test_a_url_that_another_feed_has_is_a_conflict(api: httpx.AsyncClient, database_url: str) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://b.example/feed"))
    answer = await patch(api, 409, url="HTTP://B.example/feed#x")
    assert "another feed has this URL" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"interval_seconds": 0.5}, "interval_seconds"),
        ({"shortest_seconds": 60, "longest_seconds": 30}, "is more than"),
        ({"url": "http://10.0.0.1/feed"}, "not a public address"),
        ({"url": "ftp://a.example/feed"}, "http"),
        ({"source_type": "nonsense"}, "not installed"),
        ({"config": {"nonsense": 1}}, "there is no such setting"),
        ({"config": {"headers": {"Host": "evil"}}}, "headers.Host"),
        ({"config": {"timeout_seconds": 0.1}}, "expected a number from 1 to 300"),
        ({"priority": 1001}, "priority"),
        ({"enabled": None}, "enabled"),
        ({"nonsense": 1}, "nonsense"),
        ({"tags": ["/"]}, "a tag is empty"),
    ],
)
async def test_what_cannot_be_used_is_named(
    api: httpx.AsyncClient, database_url: str, body: dict[str, Any], said: str
) -> None:
    before = row(database_url)["source_config"]
    assert said in (await patch(api, 422, **body)).json()["detail"]
    assert row(database_url)["source_config"] == before


async def test_a_bound_is_compared_with_the_one_that_is_there(api: httpx.AsyncClient) -> None:
    await patch(api, longest_seconds=30)
    assert "is more than" in (await patch(api, 422, shortest_seconds=60)).json()["detail"]


async def test_an_edition_is_what_people_made_and_not_what_polls_make(
    api: httpx.AsyncClient, database_url: str
) -> None:
    seen = (await api.get("/api/feeds/1")).headers["ETag"]
    change(database_url, "UPDATE feeds SET next_fetch_at = now(), last_success_at = now(), etag = 'x', failures = 3")
    assert (await api.get("/api/feeds/1")).headers["ETag"] == seen
    mine = (await patch(api, if_match=seen, name="mine")).headers["ETag"]
    assert mine != seen
    late = await patch(api, 412, if_match=seen, name="theirs")
    assert late.headers["ETag"] == mine
    assert "read it again" in late.json()["detail"]
    assert (await api.delete("/api/feeds/1", headers={"If-Match": seen})).status_code == 412
    await patch(api, if_match=f'"x", {mine}', config={"password": "other"})
    assert (await api.get("/api/feeds/1")).headers["ETag"] != mine, "secrets are part of it"
    assert (await api.delete("/api/feeds/1", headers={"If-Match": "*"})).json() == {"id": 1, "pending_articles": 0}


async def test_of_many_who_saw_the_same_edition_one_changes_the_feed(api: httpx.AsyncClient, database_url: str) -> None:
    seen = (await api.get("/api/feeds/1")).headers["ETag"]
    answers = await asyncio.gather(
        *(api.patch("/api/feeds/1", json={"name": f"caller {n}"}, headers={"If-Match": seen}) for n in range(20))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 19
    (won,) = [answer.json()["name"] for answer in answers if answer.status_code == 200]
    assert row(database_url)["name"] == won


async def test_tags_that_are_given_side_by_side_all_stay(api: httpx.AsyncClient) -> None:
    await asyncio.gather(*(patch(api, add_tags=[f"t{n}"]) for n in range(12)))
    assert len((await api.get("/api/feeds/1")).json()["tags"]) == 13


async def test_a_feed_is_paused_and_resumed(api: httpx.AsyncClient, database_url: str) -> None:
    paused = await api.post("/api/feeds/1/pause")
    assert (paused.json()["enabled"], paused.json()["disabled_reason"]) == (False, "by hand")
    refused = await api.post("/api/feeds/1/fetch")
    assert refused.status_code == 409
    assert "feed 1 is disabled: `feedmill feeds set 1 --enable`" in refused.json()["detail"]
    change(database_url, "UPDATE feeds SET failures = 9, gone_since = now()")
    resumed = await api.post("/api/feeds/1/resume", headers={"If-Match": paused.headers["ETag"]})
    assert (resumed.json()["enabled"], resumed.json()["failures"], row(database_url)["gone_since"]) == (True, 0, None)
    assert 0 < row(database_url)["wait"].total_seconds() <= 300
    assert (await api.post("/api/feeds/1/pause", headers={"If-Match": paused.headers["ETag"]})).status_code == 412


async def test_every_change_leaves_an_audit_row_without_secrets(api: httpx.AsyncClient, database_url: str) -> None:
    await patch(api, name="A", config={"headers": {"X-Key": "hunter2"}})
    await api.post("/api/feeds/1/fetch")
    await api.delete("/api/feeds/1")
    await api.post("/api/feeds", json={"url": "http://me:hunter2@b.example/feed", "config": SECRETS})
    with psycopg.connect(database_url) as connection:
        written = connection.execute("SELECT actor, action, target, details FROM audit_log ORDER BY id").fetchall()
    assert [row[:3] for row in written] == [
        ("test fm_test", "feed.update", "1"),
        ("test fm_test", "feed.fetch", "1"),
        ("test fm_test", "feed.delete", "1"),
        ("test fm_test", "feed.create", "2"),
    ]
    assert written[0][3] == {"name": "A", "config": ["headers"]}
    assert "hunter2" not in str(written)
