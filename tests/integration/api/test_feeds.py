"""Feeds over HTTP."""

from __future__ import annotations

import httpx

from services.admin.actor import Scope
from services.admin.registry import NewFeed, add_feed, connect
from tests.integration.api.conftest import Caller


async def test_feeds_are_listed_page_by_page(api: httpx.AsyncClient, database_url: str) -> None:
    with connect(database_url) as connection:
        for number in range(5):
            add_feed(connection, NewFeed(f"http://site-{number}.example/feed"))
    urls, cursor = [], None
    while True:
        answer = await api.get("/api/feeds", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))
        page = answer.json()
        urls += [feed["url"] for feed in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert urls == [f"http://site-{number}.example/feed" for number in range(5)]


async def test_a_cursor_that_was_made_up_is_refused(api: httpx.AsyncClient) -> None:
    answer = await api.get("/api/feeds", params={"cursor": "bm8"})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"][0]["field"] == "query.cursor"


async def test_feeds_are_for_those_who_may_read(api: httpx.AsyncClient, caller: Caller) -> None:
    caller.scopes = {Scope.CONSUME}
    assert (await api.get("/api/feeds")).status_code == 403
