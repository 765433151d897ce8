"""Dead letters over HTTP, on a real broker."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from pydantic import AmqpDsn

from services.admin.actor import Scope
from services.api.resources import Resources
from shared.broker.port import Publication
from tests.factories import make_job
from tests.integration.api.conftest import Caller
from tests.integration.consumers.test_pending_articles import connect

IDS = ("abcdef0" + "1" * 25, "abcdef0" + "2" * 25, "0123456" + "3" * 25)
PATH = "/api/dead-letters"


@pytest.fixture(autouse=True)
async def letters(resources: Resources) -> None:
    topology = resources.topology
    async with resources.broker().connect(topology) as session:
        for number, id_ in enumerate(IDS):
            job = make_job(feed_id=number, source_config={"headers": {"X-Key": "secret"}, "password": "secret"})
            body, encoding = job.encode()
            headers: dict[str, str | int] = {"reason": "exhausted", "error": f"Bug {number}: http://me:secret@x/"}
            headers |= {"feed_id": number, "died_at": "2026-01-02T03:04:05Z"}
            await session.publish(
                Publication(topology.fetcher.dead, body, "feedmill", "feed.fetch.v1", encoding, headers, id_)
            )
        async with asyncio.timeout(30):
            while await session.count_ready(topology.fetcher.dead) != len(IDS):
                await asyncio.sleep(0.02)


async def listed(api: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await api.get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    return [row["message_id"] for row in answer.json()["items"]]


async def test_letters_are_listed_and_shown_without_secrets(api: httpx.AsyncClient) -> None:
    assert await listed(api) == [*IDS]
    assert await listed(api, service="writer") == []
    assert await listed(api, feed="1") == [IDS[1]]
    assert await listed(api, q="BUG 2") == [IDS[2]]
    assert (await api.get(PATH, params={"limit": 2})).json()["more"] is True
    shown = await api.get(f"{PATH}/0123")
    assert (shown.json()["message_id"], shown.json()["headers"]["reason"]) == (IDS[2], "exhausted")
    assert "secret" not in shown.text + (await api.get(PATH)).text


@pytest.mark.parametrize(
    ("method", "path", "values", "status"),
    [
        ("GET", "", {"service": "nobody"}, 422),
        ("GET", "", {"feed": "http://unknown/"}, 404),
        ("GET", "", {"limit": 10_001}, 422),
        ("GET", "/ffff", {}, 404),
        ("GET", "/abcdef", {}, 409),
        ("GET", "/%00", {}, 422),
        ("POST", "/requeue", {}, 422),
        ("POST", "/requeue", {"ids": ["ffff"]}, 404),
        ("POST", "/requeue", {"ids": ["0123", "abcdef"]}, 409),
        ("POST", "/requeue", {"ids": ["0123"], "all": True}, 422),
        ("POST", "/requeue", {"all": True, "service": "nobody"}, 422),
        ("POST", "/purge", {"ids": [""]}, 422),
        ("POST", "/purge", {"ids": ["ffff"]}, 404),
        ("POST", "/purge", {"all": True, "more": 1}, 422),
    ],
)
async def test_what_is_not_there_is_a_sentence(
    api: httpx.AsyncClient, method: str, path: str, values: dict[str, Any], status: int
) -> None:
    is_read = method == "GET"
    answer = await api.request(
        method, PATH + path, params=values if is_read else None, json=None if is_read else values
    )
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert await listed(api) == [*IDS]


async def test_letters_are_requeued_and_purged_by_admins_and_the_log_says_who(
    api: httpx.AsyncClient, caller: Caller, database_url: str
) -> None:
    caller.scopes = {Scope.WRITE, Scope.CONSUME}
    for verb in ("requeue", "purge"):
        assert (await api.post(f"{PATH}/{verb}", json={"all": True})).status_code == 403
    caller.scopes = {Scope.ADMIN}
    assert (await api.post(f"{PATH}/requeue", json={"ids": ["0123"]})).json() == {"requeued": 1}
    found = {"purged": 1, "ids": [IDS[1]]}
    assert (await api.post(f"{PATH}/purge", json={"ids": ["abcdef02"], "dry_run": True})).json() == found
    assert await listed(api) == [*IDS[:2]]
    assert (await api.post(f"{PATH}/purge", json={"ids": ["abcdef02"]})).json() == found
    assert (await api.post(f"{PATH}/purge", json={"all": True})).json() == {"purged": 1, "ids": [IDS[0]]}
    assert (await api.post(f"{PATH}/purge", json={"all": True})).json() == {"purged": 0, "ids": []}
    assert await listed(api) == []
    with connect(database_url) as connection:
        rows = connection.execute("SELECT action, details->'ids' AS ids FROM audit_log ORDER BY id").fetchall()
    assert [tuple(row.values()) for row in rows] == [
        ("dead_letter.requeue", [IDS[2]]),
        ("dead_letter.purge", [IDS[1]]),
        ("dead_letter.purge", [IDS[0]]),
    ]


async def test_a_broker_that_is_away_is_said(api: httpx.AsyncClient, resources: Resources) -> None:
    resources.settings = resources.settings.model_copy(update={"amqp_url": AmqpDsn("amqp://127.0.0.1:1/")})
    answer = await api.get(PATH)
    assert answer.status_code == 503
    assert "FEEDMILL_AMQP_URL" in answer.json()["detail"]
