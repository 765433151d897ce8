"""Who may only read can't find out a credential in a feed's URL by trying."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from services.admin.actor import Scope
from services.admin.registry import NewFeed, add_feed, connect
from tests.integration.api.conftest import Caller

SECRET_URLS = ("http://user:passw0rd@b.example/feed", "http://c.example/feed?x=1&api_key=s3cr3t&lang=passw")


@pytest.fixture(autouse=True)
def _feeds(database_url: str) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://a.example/plain"))
        for number, url in enumerate(SECRET_URLS):
            add_feed(connection, NewFeed(url, name=f"Secret {number}"))
        add_feed(connection, NewFeed("http://d.example/passw0rd"))


async def ids(api: httpx.AsyncClient, **query: Any) -> list[int]:
    """Return the ids of all pages of one row."""
    found: list[int] = []
    while True:
        page = (await api.get("/api/feeds", params={"limit": 1, **query})).json()
        found += [row["id"] for row in page["items"]]
        if page["next"] is None:
            return found
        query["cursor"] = page["next"]


@pytest.mark.parametrize("scope", [Scope.READ, Scope.WRITE, Scope.ADMIN])
@pytest.mark.parametrize("sort", ["id", "-id", "name"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("passw0", {4}), ("user:P", set()), ("s3c", set()), ("api_key=S", set()), ("@b.example", {2}), ("api_key", {3}),
        ("LANG=passw", {3}), ("passw", {3, 4}), ("secret", {2, 3}), ("example/", {1, 2, 3, 4}),
    ],
)  # fmt: skip
async def test_the_search_does_not_look_into_credentials(
    api: httpx.AsyncClient, caller: Caller, scope: Scope, sort: str, text: str, expected: set[int]
) -> None:
    caller.scopes = {scope}
    found = await ids(api, q=text, sort=sort)
    assert len(found) == len(expected)
    assert set(found) == expected


async def test_a_page_is_filled_past_many_feeds_that_fit_by_their_credentials_only(
    api: httpx.AsyncClient, database_url: str
) -> None:
    with connect(database_url) as connection:
        for number in range(30):
            add_feed(connection, NewFeed(f"http://user:passw0rd@site-{number}.example/feed"))
        add_feed(connection, NewFeed("http://e.example/passw0rd"))
    page = (await api.get("/api/feeds", params={"q": "passw0rd", "limit": 2})).json()
    assert [row["url"] for row in page["items"]] == ["http://d.example/passw0rd", "http://e.example/passw0rd"]


@pytest.mark.parametrize("url", SECRET_URLS)
async def test_a_feed_with_credentials_is_found_by_its_url_by_those_who_may_write(
    api: httpx.AsyncClient, caller: Caller, url: str
) -> None:
    for scope in (Scope.READ, Scope.WRITE, Scope.ADMIN):
        caller.scopes = {scope}
        may = scope is not Scope.READ
        looked_up = await api.post("/api/feeds/lookup", json={"url": url})
        assert looked_up.status_code == (200 if may else 404)
        assert len(await ids(api, url=url)) == may
        for path in ("/api/articles", "/api/articles/dead", "/api/ledger", "/api/dead-letters"):
            answer = await api.get(path, params={"feed": url})
            assert answer.status_code == (200 if may else 404) or (scope is Scope.WRITE and answer.status_code == 403)
            assert "passw0rd" not in answer.text
            assert "s3cr3t" not in answer.text
    caller.scopes = {Scope.READ}
    assert await ids(api, url="http://a.example/plain") == [1]
    plain = await api.post("/api/feeds/lookup", json={"url": "http://a.example/plain"})
    assert plain.json()["id"] == 1
    assert (await api.get("/api/ledger", params={"feed": "http://a.example/plain"})).status_code == 200
