"""Lists of feeds over HTTP: in as lines of progress, out as files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from services.admin.actor import Scope
from services.admin.registry import NewFeed, add_feed, connect, insert_feeds
from services.admin.subscriptions import importing, source
from services.api.resources import Resources
from services.api.routes import lists
from tests.integration.api.conftest import Caller
from tests.unit.subscriptions.lists import opml, outline

IMPORT = "/api/feeds/import"


def lines(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def urls_of(count: int) -> bytes:
    return "".join(f"http://f{number}.example/feed\n" for number in range(count)).encode()


def count_feeds(database_url: str) -> int:
    with connect(database_url) as connection:
        row = connection.execute("SELECT count(*) AS feeds FROM feeds").fetchone()
    assert row is not None
    return int(row["feeds"])


def audited(database_url: str) -> list[dict[str, Any]]:
    with connect(database_url) as connection:
        return connection.execute("SELECT action, actor, details FROM audit_log ORDER BY id").fetchall()


async def test_an_import_says_what_it_does_while_it_does_it(
    api: httpx.AsyncClient, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "CHUNK", 2)
    document = opml(
        '<outline text="Tech">',
        outline("http://me:hunter2@a.example/feed?token=hunter2", "A &nbsp;"),
        "</outline>",
        outline("http://b.example/feed", "B"),
        outline("http://10.0.0.1/feed?token=hunter2", "Private"),
    )
    answer = await api.post(IMPORT, content=document.encode(), params={"tag": ["x", "X", "y"]})
    opened, first, skipped, second, done = lines(answer)
    assert (opened["opened"]["format"], opened["opened"]["feeds"]) == ("opml", 3)
    assert [warning["line"] for warning in opened["opened"]["warnings"]] == [4]
    assert first == {"progress": {"read": 2, "added": 2}}
    assert (skipped["skipped"]["reason"], skipped["skipped"]["line"]) == ("refused_address", 7)
    assert second == {"progress": {"read": 3, "added": 2}}
    assert done["done"]["reasons"] == {"refused_address": 1}
    assert "hunter2" not in answer.text
    with connect(database_url) as connection:
        rows = connection.execute("SELECT tags FROM feeds ORDER BY id").fetchall()
    assert sorted(row["tags"] for row in rows) == [["Tech", "x", "y"], ["x", "y"]]
    (row,) = audited(database_url)
    assert (row["action"], row["actor"], row["details"]["added"]) == ("feed.import", "test fm_test", 2)
    again = lines(await api.post(IMPORT, content=document.encode()))[-1]["done"]
    assert (again["added"], again["tagged"], again["reasons"]["already_there"]) == (0, 0, 2)
    assert len(audited(database_url)) == 1, "an import that changes nothing is no write"


async def test_a_dry_run_writes_nothing(api: httpx.AsyncClient, database_url: str) -> None:
    answer = await api.post(IMPORT, content=urls_of(3), params={"dry_run": True})
    done = lines(answer)[-1]["done"]
    assert (done["added"], done["dry_run"]) == (3, True)
    assert (count_feeds(database_url), audited(database_url)) == (0, [])


@pytest.mark.parametrize(
    ("content", "query", "reason"),
    [
        (b"", {}, "line 1: the file is empty"),
        (b"PK\x03\x04", {}, "a ZIP archive"),
        (b"<html><body>Please log in</body></html>", {}, "an HTML page instead of a list"),
        (opml(outline("http://a.example/"), outline("http://b.example/"))[:-40].encode(), {}, "salvage"),
        (b"\0" * 100, {}, "line 1"),
        (urls_of(1), {"format": "opml"}, "line 1"),
        (urls_of(1), {"format": "xml"}, "query.format"),
        (urls_of(1), {"tag": ["/"]}, "a tag is empty"),
        (urls_of(1), {"tag": ["t"] * 33}, "query.tag"),
    ],
)
async def test_a_list_that_cannot_be_read_is_refused_before_anything_is_imported(
    api: httpx.AsyncClient, database_url: str, content: bytes, query: dict[str, Any], reason: str
) -> None:
    answer = await api.post(IMPORT, content=content, params=query)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert reason in answer.json()["detail"]
    assert count_feeds(database_url) == 0


async def test_a_list_beyond_the_bounds_is_not_kept(api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 100_000)
    monkeypatch.setattr(lists, "MAX_BYTES", 100_000)
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while taken < 50_000_000:
            taken += 60_000
            yield b"http://a.example/feed\n".ljust(60_000)

    answer = await api.post(IMPORT, content=endless())
    assert answer.status_code == 422
    assert "split it" in answer.json()["detail"]
    assert taken < 1_000_000


async def test_a_client_that_goes_away_leaves_whole_chunks(
    api: httpx.AsyncClient, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "CHUNK", 10)
    async with api.stream("POST", IMPORT, content=urls_of(10_000)) as answer:
        async for line in answer.aiter_lines():
            if "progress" in line:
                break
    found = count_feeds(database_url)
    assert 10 <= found < 10_000
    assert found % 10 == 0
    (row,) = audited(database_url)
    assert row["details"]["added"] == found
    monkeypatch.setattr(importing, "CHUNK", 1000)
    assert lines(await api.post(IMPORT, content=urls_of(10_000)))[-1]["done"]["added"] == 10_000 - found


async def test_what_ends_an_import_in_its_middle_is_the_last_line(
    api: httpx.AsyncClient, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "CHUNK", 10)
    kill = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND datname = current_database()"""
    calls = 0

    def insert_and_die(*given: Any) -> dict[str, int]:
        nonlocal calls
        calls += 1
        if calls == 3:
            with connect(database_url) as connection:
                connection.execute(kill)
        return insert_feeds(*given)

    monkeypatch.setattr(importing, "insert_feeds", insert_and_die)
    answer = await api.post(IMPORT, content=urls_of(100))
    error = lines(answer)[-1]["error"]
    assert error["status"] == 503
    assert "20 new feeds are in; the same import again adds the rest" in error["detail"]
    assert count_feeds(database_url) == 20


async def test_only_few_imports_run_at_once_and_each_gives_its_place_back(
    api: httpx.AsyncClient, database_url: str
) -> None:
    go_on, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def slow() -> AsyncIterator[bytes]:
        begun.release()
        yield b"http://a.example/feed\n"
        await go_on.wait()

    running = [asyncio.create_task(api.post(IMPORT, content=slow())) for _ in range(lists.AT_ONCE)]
    async with asyncio.timeout(30):
        for _ in running:
            await begun.acquire()
    refused = await api.post(IMPORT, content=urls_of(1))
    assert (refused.status_code, "Retry-After" in refused.headers) == (429, True)
    go_on.set()
    assert {answer.status_code for answer in await asyncio.gather(*running)} == {200}
    for _ in range(2 * lists.AT_ONCE):
        assert (await api.post(IMPORT, content=b"<html>")).status_code == 422
    assert (await api.post(IMPORT, content=urls_of(1))).status_code == 200


async def test_an_export_imports_as_the_same_feeds(api: httpx.AsyncClient, database_url: str) -> None:
    with connect(database_url) as connection:
        for number in range(2500):
            add_feed(connection, NewFeed(f"http://f{number}.example/feed", tags=("a/b", "c") if number % 2 else ()))
    for form, media in (("opml", "text/x-opml"), ("csv", "text/csv"), ("list", "text/plain")):
        answer = await api.get("/api/feeds/export", params={"format": form})
        assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, media)
        done = lines(await api.post(IMPORT, content=answer.content))[-1]["done"]
        assert (done["added"], done["tagged"], done["reasons"]["already_there"]) == (0, 0, 2500)
    tagged = (await api.get("/api/feeds/export", params={"format": "list", "tag": "C"})).text
    assert len(tagged.splitlines()) == 1250


async def test_passwords_are_exported_in_full_to_an_administrator_only(
    api: httpx.AsyncClient, caller: Caller, database_url: str
) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://me:hunter2@a.example/feed"))
        add_feed(connection, NewFeed("http://b.example/feed"))
    for scope, in_full in ((Scope.ADMIN, True), (Scope.WRITE, False), (Scope.READ, False)):
        caller.scopes = {scope}
        answer = await api.get("/api/feeds/export")
        assert answer.headers["feedmill-secret-urls"] == "1"
        assert ("hunter2" in answer.text) is in_full


async def test_lists_need_their_scopes(api: httpx.AsyncClient, caller: Caller) -> None:
    caller.scopes = {Scope.READ}
    assert (await api.post(IMPORT, content=urls_of(1))).status_code == 403
    caller.scopes = {Scope.CONSUME}
    assert (await api.get("/api/feeds/export")).status_code == 403


async def test_without_a_database_both_are_unavailable(resources: Resources, api: httpx.AsyncClient) -> None:
    resources.settings = resources.settings.model_copy(update={"database_url": "postgresql://nobody@127.0.0.1:1/none"})
    assert (await api.post(IMPORT, content=urls_of(1))).status_code == 503
    assert (await api.get("/api/feeds/export")).status_code == 503
