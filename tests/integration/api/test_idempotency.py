"""Creations with an Idempotency-Key, on an API of two operations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import APIRouter
from pydantic import BaseModel

from services.admin.access import answers
from services.admin.errors import Conflict
from services.api.access import Admin
from services.api.access.idempotency import CreatingRoute
from services.api.app import make_app
from services.api.resources import Here, Resources
from services.cli.calls.within import WithinProcess
from tests.integration.api.conftest import Caller

KEY = {"Idempotency-Key": "one"}


class Thing(BaseModel):
    name: str


class Made:
    """What the operation made, and what it waits for."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.began = asyncio.Event()


@pytest.fixture
async def made() -> Made:
    return Made()


@pytest.fixture
async def things(resources: Resources, caller: Caller, made: Made) -> AsyncIterator[httpx.AsyncClient]:
    router = APIRouter(route_class=CreatingRoute)

    @router.post("/api/things", status_code=201)
    async def create_thing(_here: Here, _actor: Admin, thing: Thing) -> dict[str, object]:
        made.began.set()
        await made.may_go_on.wait()
        if thing.name == "refused":
            raise Conflict("there is one")
        made.names.append(thing.name)
        return {"id": len(made.names), "name": thing.name}

    app = make_app(resources, caller.authenticate)
    app.include_router(router)
    async with httpx.AsyncClient(transport=WithinProcess(app), base_url="http://feedmill") as client:
        yield client


async def test_the_same_request_gets_the_same_answer(things: httpx.AsyncClient, made: Made) -> None:
    first = await things.post("/api/things", json={"name": "a"}, headers=KEY)
    second = await things.post("/api/things", json={"name": "a"}, headers=KEY)
    assert first.status_code == second.status_code == 201
    assert first.content == second.content
    assert first.headers["content-type"] == second.headers["content-type"]
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    assert made.names == ["a"]
    await things.post("/api/things", json={"name": "a"}, headers={"Idempotency-Key": "two"})
    await things.post("/api/things", json={"name": "a"})
    assert made.names == ["a", "a", "a"]


async def test_of_fifty_at_once_one_makes_it(things: httpx.AsyncClient, made: Made) -> None:
    async def create() -> int:
        while True:
            answer = await things.post("/api/things", json={"name": "a"}, headers=KEY)
            if answer.status_code not in {409, 503}:
                return answer.status_code
            assert "retry-after" in answer.headers

    assert await asyncio.gather(*(create() for _ in range(50))) == [201] * 50
    assert made.names == ["a"]


async def test_another_request_with_the_key_is_refused(things: httpx.AsyncClient, made: Made) -> None:
    await things.post("/api/things", json={"name": "a"}, headers=KEY)
    other = await things.post("/api/things", json={"name": "b"}, headers=KEY)
    assert other.status_code == 422
    assert other.json()["errors"][0]["field"] == "header.idempotency-key"
    assert made.names == ["a"]


async def test_while_the_first_runs_the_second_is_told_so(things: httpx.AsyncClient, made: Made) -> None:
    made.may_go_on.clear()
    first = asyncio.create_task(things.post("/api/things", json={"name": "a"}, headers=KEY))
    await made.began.wait()
    second = await things.post("/api/things", json={"name": "a"}, headers=KEY)
    assert second.status_code == 409
    assert 1 <= int(second.headers["retry-after"]) <= answers.LOCK_SECONDS
    made.may_go_on.set()
    assert (await first).status_code == 201


async def test_a_request_that_died_locks_its_key_for_minutes_only(
    things: httpx.AsyncClient, made: Made, resources: Resources
) -> None:
    made.may_go_on.clear()
    first = asyncio.create_task(things.post("/api/things", json={"name": "a"}, headers=KEY))
    await made.began.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    made.may_go_on.set()
    for hold, least, most in ((0, 100, answers.LOCK_SECONDS), (60, 30, 60)):
        if hold:
            async with resources.database.transaction() as connection:
                await connection.execute("UPDATE idempotency_keys SET locked_until = now() + interval '60 seconds'")
        refused = await things.post("/api/things", json={"name": "a"}, headers=KEY)
        assert refused.status_code == 409
        assert least <= int(refused.headers["retry-after"]) <= most
        assert "or died" in refused.json()["detail"]
    async with resources.database.transaction() as connection:
        await connection.execute("UPDATE idempotency_keys SET locked_until = now() - interval '1 second'")
    assert (await things.post("/api/things", json={"name": "a"}, headers=KEY)).status_code == 201
    assert made.names == ["a"]


async def test_an_error_is_not_kept(things: httpx.AsyncClient, made: Made) -> None:
    for _ in range(2):
        answer = await things.post("/api/things", json={"name": "refused"}, headers=KEY)
        assert answer.status_code == 409
        assert "retry-after" not in answer.headers
    assert (await things.post("/api/things", json={"name": 5}, headers=KEY)).status_code == 422
    assert (await things.post("/api/things", json={"name": "a"}, headers=KEY)).status_code == 201
    assert made.names == ["a"]


async def test_keys_of_two_tokens_are_two(things: httpx.AsyncClient, made: Made, caller: Caller) -> None:
    await things.post("/api/things", json={"name": "a"}, headers=KEY)
    caller.token_id = 2
    await things.post("/api/things", json={"name": "b"}, headers=KEY)
    assert made.names == ["a", "b"]


async def test_answers_are_kept_for_a_day(things: httpx.AsyncClient, made: Made, resources: Resources) -> None:
    await things.post("/api/things", json={"name": "a"}, headers=KEY)
    async with resources.database.transaction() as connection:
        await answers.forget_answers(connection)
    assert (await things.post("/api/things", json={"name": "a"}, headers=KEY)).headers["idempotency-replayed"]
    async with resources.database.transaction() as connection:
        await connection.execute("UPDATE idempotency_keys SET created_at = now() - interval '25 hours'")
    await things.post("/api/things", json={"name": "a"}, headers=KEY)
    assert made.names == ["a", "a"]
    async with resources.database.transaction() as connection:
        await connection.execute("UPDATE idempotency_keys SET created_at = now() - interval '25 hours'")
        await answers.forget_answers(connection)
        row = await (await connection.execute("SELECT count(*) AS n FROM idempotency_keys")).fetchone()
    assert row == {"n": 0}


@pytest.mark.parametrize("key", ["", "a b", "\u00e9".encode().decode("latin-1"), "x" * 256])
async def test_a_key_is_short_and_ascii(things: httpx.AsyncClient, made: Made, key: str) -> None:
    headers = [(b"Idempotency-Key", key.encode("latin-1"))]
    assert (await things.post("/api/things", json={"name": "a"}, headers=headers)).status_code == 422
    assert made.names == []


async def test_a_secret_is_answered_once(api: httpx.AsyncClient, resources: Resources) -> None:
    wanted = {"name": "indexer", "scopes": ["read"]}
    made = await api.post("/api/tokens", json=wanted, headers=KEY)
    assert made.status_code == 201
    again = await api.post("/api/tokens", json=wanted, headers=KEY)
    assert again.status_code == 409
    assert "shown once" in again.json()["detail"]
    assert len((await api.get("/api/tokens")).json()["items"]) == 1
    async with resources.database.transaction() as connection:
        row = await (await connection.execute("SELECT body FROM idempotency_keys")).fetchone()
    assert row == {"body": None}


async def test_a_feed_is_added_once_and_fired_once(api: httpx.AsyncClient) -> None:
    wanted = {"url": "http://news.example/feed.xml", "check": False}
    first, again = [await api.post("/api/feeds", json=wanted, headers=KEY) for _ in range(2)]
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert first.headers["location"] == again.headers["location"]
    assert (await api.post("/api/feeds", json=wanted)).status_code == 200
    path = f"/api/feeds/{first.json()['id']}/fire"
    fired, again = [await api.post(path, headers={"Idempotency-Key": "fire"}) for _ in range(2)]
    assert (fired.status_code, again.status_code) == (202, 202), fired.text
    assert fired.json() == again.json()
    assert (await api.post(path)).status_code == 429


async def test_openapi_names_the_header(api: httpx.AsyncClient) -> None:
    paths = (await api.get("/api/openapi.json")).json()["paths"]
    names = [item["name"] for item in paths["/api/tokens"]["post"]["parameters"]]
    assert names == ["Idempotency-Key"]
    assert "409" in paths["/api/tokens"]["post"]["responses"]
    assert "Idempotency-Key" not in str(paths["/api/tokens"]["get"])
