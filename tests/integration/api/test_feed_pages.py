"""The pages of feeds: what they say of each state, and that nothing of a stranger's is code."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import httpx
import pytest
from psycopg.types.json import Json

from services.admin.actor import Scope
from services.admin.registry import NewFeed
from services.api.pages import feeds as feeds_page
from services.api.resources import Resources
from tests.integration.api.conftest import Caller
from tests.integration.api.test_polling import change, log, register

EVIL = '"><script>alert(1)</script>'


def words(page: str) -> str:
    """Return what a person reads of a page."""
    without = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(without).split())


def urls(page: str) -> list[str]:
    return [html.unescape(found) for found in re.findall(r'(?:href|src)="([^"]*)"', page)]


async def read(api: httpx.AsyncClient, path: str, **query: Any) -> str:
    answer = await api.get(path, params=query or None)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


async def test_without_feeds_the_table_says_what_to_do_first(api: httpx.AsyncClient, caller: Caller) -> None:
    page = await read(api, "/feeds")
    assert "There are no feeds yet" in page
    assert "feedmill feeds add URL" in page
    assert 'id="add"' in page
    caller.scopes = {Scope.READ}
    assert 'id="add"' not in await read(api, "/feeds")


async def test_the_table_is_searched_filtered_and_sorted(api: httpx.AsyncClient, database_url: str) -> None:
    register(database_url, *(NewFeed(f"http://site{n}.example/feed", name=f"Feed {n}") for n in range(1, 6)))
    change(
        database_url,
        "UPDATE feeds SET enabled = id <> 1, disabled_reason = 'by hand' WHERE id = 1;"
        "UPDATE feeds SET failures = id, tags = '{news}' WHERE id > 3",
    )

    async def shown(**query: Any) -> list[str]:
        return re.findall(r'<a href="/feeds/(\d+)">', await read(api, "/feeds", **query))

    assert await shown() == ["1", "2", "3", "4", "5"]
    assert await shown(q="SITE3", tag="", host="", state="") == ["3"]
    assert await shown(tag="News", sort="-failures") == ["5", "4"]
    assert await shown(state="disabled") == ["1"]
    assert await shown(host="site2.example") == ["2"]
    assert await shown(q="nothing") == []
    assert "No feed fits" in await read(api, "/feeds", q="nothing")
    page = await read(api, "/feeds", sort="-failures", q="site")
    assert 'aria-sort="descending"' in page
    assert "/feeds?q=site&sort=failures" in urls(page)
    assert "/api/feeds/export?format=opml&tag=a%26b" in urls(await read(api, "/feeds", tag="a&b"))


@pytest.mark.parametrize("query", [{"sort": "color"}, {"cursor": "bm8"}, {"state": "odd"}, {"q": "\0"}])
async def test_what_can_not_be_shown_is_refused_on_a_page(api: httpx.AsyncClient, query: dict[str, str]) -> None:
    answer = await api.get("/feeds", params=query)
    assert answer.status_code == 422
    assert answer.headers["content-type"].startswith("text/html")


async def test_the_table_is_paged_by_key(
    api: httpx.AsyncClient, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds_page, "PAGE_FEEDS", 2)
    register(database_url, *(NewFeed(f"http://site{n}.example/feed", name=f"F{n}") for n in range(5)))
    for sort in ("id", "-name"):
        found: list[str] = []
        path = f"/feeds?sort={sort}&q=site"
        while path:
            page = await read(api, path)
            found += re.findall(r'<a href="/feeds/(\d+)">', page)
            path = next((url for url in urls(page) if "cursor=" in url), "")
        assert found == (["1", "2", "3", "4", "5"] if sort == "id" else ["5", "4", "3", "2", "1"])


async def test_who_may_only_read_finds_nothing_to_change_with(
    api: httpx.AsyncClient, caller: Caller, database_url: str
) -> None:
    register(database_url, NewFeed("http://a.example/feed"))
    caller.scopes = {Scope.READ}
    for path in ("/feeds", "/feeds/1"):
        page = await read(api, path)
        assert not {"data-do", "data-api", "data-fire", "checkbox", 'id="settings"'} & set(
            re.findall(r'data-do|data-api|data-fire|checkbox|id="settings"', page)
        )
    caller.scopes = {Scope.CONSUME}
    assert (await api.get("/feeds")).status_code == 403


async def test_nothing_of_a_stranger_is_code_and_no_secret_is_shown(
    api: httpx.AsyncClient, caller: Caller, database_url: str
) -> None:
    register(
        database_url,
        NewFeed("http://me:hunter2@a.example/feed?token=hunter2&x=%22%3E%3Cscript%3E", name=EVIL, tags=("<b>x</b>",)),
    )
    change(
        database_url,
        "UPDATE feeds SET title = %s, last_error = %s, last_outcome = 'hard_error', failures = 1,"
        " last_attempt_at = now(), site_url = 'javascript:alert(1)', moved_to = 'javascript:alert(2)',"
        " disabled_reason = %s",
        EVIL, f"http://u:hunter2@x/ {EVIL}", EVIL,
    )  # fmt: skip
    change(database_url, "UPDATE feed_fetch_log SET error = %s", EVIL)
    for scope in (Scope.READ, Scope.ADMIN):
        caller.scopes = {scope}
        for path in ("/feeds", "/feeds/1", "/hosts", "/hosts/a.example"):
            page = await read(api, path)
            assert "hunter2" not in page
            assert not re.search(r"<script(?! type=\"module\" src=\"/static/)|<b>x|\son\w+=|style=", page), path
            assert not [url for url in urls(page) if url.lower().startswith("javascript")]
            assert "alert(1)" in words(page) or path == "/hosts"


STATES = {
    "well": ("next_fetch_at = now() + interval '1 hour', last_outcome = 'fetched'", "It is polled next at"),
    "paused": ("enabled = false, disabled_reason = 'by hand'", "It is not polled: paused by hand."),
    "due": ("next_fetch_at = now() - interval '1 hour'", "It is late. It is due since"),
    "retry": (
        "claim_id = gen_random_uuid(), claim_expires_at = now() + interval '6 hours', last_attempt_at = now(),"
        " last_outcome = 'soft_error', last_error = 'the server answered 500'",
        "It is late. It is tried again at",
    ),
    "under way": (
        "claim_id = gen_random_uuid(), issued_at = now(), claim_expires_at = now() + interval '1 hour'",
        "It is being polled: its job was issued at",
    ),
    "failing": (
        "next_fetch_at = now() + interval '1 day', failures = 4, last_outcome = 'hard_error', last_attempt_at = now(),"
        " last_error = 'the server answered 404'",
        "Each failure in a row doubles the wait",
    ),
}


@pytest.mark.parametrize("state", STATES)
async def test_a_feed_says_how_it_is_and_why(api: httpx.AsyncClient, database_url: str, state: str) -> None:
    register(database_url, NewFeed("http://a.example/feed"))
    columns, expected = STATES[state]
    change(database_url, f"UPDATE feeds SET {columns}")
    log(database_url, timedelta(minutes=1), "soft_error" if state == "retry" else "fetched")
    page = await read(api, "/feeds/1")
    assert expected in words(page)
    assert ("Resume" in words(page)) == (state == "paused")
    if state == "retry":
        assert "(retry 2 of 12)" in words(page)
        assert "the server answered 500" in words(page)


async def test_a_throttled_host_is_why_its_feed_waits(api: httpx.AsyncClient, database_url: str) -> None:
    register(database_url, NewFeed("http://a.example/feed"))
    change(database_url, "INSERT INTO throttled_groups VALUES ('a.example', '2100-01-01T12:00Z')")
    page = await read(api, "/feeds/1")
    assert "It waits for its host until 2100-01-01 12:00 UTC" in words(page)
    assert '<time datetime="2100-01-01T12:00:00Z" title="2100-01-01 12:00:00 UTC"' in page


async def test_a_broker_that_is_away_does_not_hide_the_feed(
    api: httpx.AsyncClient, resources: Resources, database_url: str
) -> None:
    register(database_url, NewFeed("http://a.example/feed"))
    change(database_url, "UPDATE feeds SET next_fetch_at = now() - interval '1 hour'")
    resources.no_broker = "RabbitMQ is away"
    assert "The queues can't be seen: RabbitMQ is away." in words(await read(api, "/feeds/1"))
    assert "It can't be seen: RabbitMQ is away" in words(await read(api, "/hosts/a.example"))


async def test_the_pictures_say_in_words_what_they_show(api: httpx.AsyncClient, database_url: str) -> None:
    register(database_url, NewFeed("http://a.example/feed"))
    assert "Nothing is known yet" in words(await read(api, "/feeds/1"))
    counts = [0] * 31
    counts[7], counts[8], counts[24] = 5, 2, 7
    change(database_url, "UPDATE feeds SET pace = %s", Json({"rhythm": counts, "rhythm_since": "2026-11-01T00:00:00Z"}))
    for days in range(3):
        log(database_url, timedelta(days=days, minutes=1), new=2)
        log(database_url, timedelta(days=days, minutes=2), "hard_error")
    page = await read(api, "/feeds/1")
    assert "7 new articles since" in words(page)
    assert "most between 7 and 8 h UTC, and on Mondays" in words(page)
    assert "6 polls, 3 of them failed; 6 new articles." in words(page)
    assert page.count("<svg") == page.count('role="img"') == 4
    assert page.count('<rect class="second"') == 3


async def test_a_short_history_is_told_in_words_and_counts_of_one_are_singular(
    api: httpx.AsyncClient, database_url: str
) -> None:
    register(database_url, NewFeed("http://a.example/feed", tags=("news",)))
    change(database_url, "UPDATE feeds SET site_url = 'http://site.example/'")
    log(database_url, timedelta(seconds=1), new=1)
    page = await read(api, "/feeds/1")
    assert "1 poll, 0 of it failed; 1 new article. As a table" in words(page)
    assert "<svg" not in page
    assert "1 attempt," in words(page)
    assert "http://site.example/ · tags news" in words(page)


async def test_articles_that_do_not_count_as_fresh_are_named(api: httpx.AsyncClient, database_url: str) -> None:
    register(database_url, NewFeed("http://a.example/feed"))
    assert "Freshness, last week no article came" in words(await read(api, "/feeds/1"))
    change(
        database_url,
        "INSERT INTO feed_freshness (at, feed_id, kind, bucket, articles)"
        " VALUES (date_trunc('hour', now()), 1, 'first_reading', 0, 12)",
    )
    assert "Freshness, last week none counted; left out: 12 of a first reading" in words(await read(api, "/feeds/1"))


async def test_the_table_says_how_many_feeds_there_are(
    api: httpx.AsyncClient, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(database_url, *(NewFeed(f"http://site{n}.example/feed") for n in range(3)))
    page = await read(api, "/feeds")
    assert "3 feeds Choose all" in words(page)
    assert '"Failures" class="number"></td>' in page, "none is shown as nothing"
    assert "1 feed that fits" in words(await read(api, "/feeds", q="site1"))
    monkeypatch.setattr(feeds_page, "PAGE_FEEDS", 2)
    assert "All feeds, 2 on this page" in words(await read(api, "/feeds"))
    await read(api, "/")  # counts them
    assert "3 feeds, 2 on this page" in words(await read(api, "/feeds"))


async def test_attempts_are_paged(api: httpx.AsyncClient, database_url: str) -> None:
    register(database_url, NewFeed("http://a.example/feed"))
    assert "It was never polled" in words(await read(api, "/feeds/1"))
    for minutes in range(25):
        log(database_url, timedelta(minutes=minutes))
    page = await read(api, "/feeds/1")
    assert page.count("The feed was read") == 20
    earlier = next(url for url in urls(page) if "cursor=" in url)
    assert (await read(api, earlier)).count("The feed was read") == 5


async def test_settings_are_shown_as_people_type_them(api: httpx.AsyncClient, database_url: str) -> None:
    register(database_url, NewFeed("http://a.example/feed", interval_seconds=90.0, longest_seconds=172800.0))
    page = await read(api, "/feeds/1")
    assert re.search(r'name="interval_seconds"[^>]*value="90s"', page)
    assert re.search(r'name="longest_seconds"[^>]*value="2d"', page)
    etag = html.unescape(next(iter(re.findall(r'data-etag="([^"]*)"', page))))
    assert etag == (await api.get("/api/feeds/1")).headers["etag"]


@pytest.mark.parametrize("path", ["/feeds/9", "/feeds/99999999999999999999", "/feeds/x", "/hosts/nobody.example"])
async def test_what_is_not_there_is_told_on_a_page(api: httpx.AsyncClient, path: str) -> None:
    answer = await api.get(path)
    assert answer.status_code in {404, 422}
    assert answer.headers["content-type"].startswith("text/html")
    assert re.search("There is no (such page|feed 9|such feed|host nobody)", words(answer.text), re.IGNORECASE)
    assert "feedmill" not in words(answer.text).replace("Feedmill", "")
    assert {"/feeds", "/hosts"} & set(urls(answer.text))


async def test_a_wrong_cursor_leads_back_to_the_list(api: httpx.AsyncClient) -> None:
    answer = await api.get("/feeds?cursor=bm8")
    assert "This address is not valid The place in the list" in words(answer.text)
    assert "All feeds" in words(answer.text)
