"""What the first page says of the whole: never more than is known."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import psycopg
import pytest

from services.admin.registry import NewFeed, add_feed, connect
from services.api.resources import Resources
from tests.integration.api.test_health import write

pytestmark = pytest.mark.usefixtures("consumers")


async def verdict(api: httpx.AsyncClient) -> tuple[str, str]:
    """Return the page's state and its headline."""
    page = (await api.get("/")).text
    found = re.search(r'class="verdict (\w+)".*?<h2 id="verdict-title">(.*?)</h2>', page, re.DOTALL)
    assert found
    return found[1], re.sub("<.*?>", "", found[2])


def add(database_url: str, feeds: int, change: str) -> None:
    """Add feeds that are well and not due; then change some."""
    with connect(database_url) as connection:
        for number in range(feeds):
            add_feed(connection, NewFeed(f"http://f{number}.example/"))
        connection.execute(
            "UPDATE feeds SET next_fetch_at = now() + interval '1 hour', last_success_at = now(), last_new_at = now()"
        )
        connection.execute(change.encode())


async def test_feeds_that_mostly_fail_are_not_well(api: httpx.AsyncClient, database_url: str) -> None:
    add(database_url, 15, "UPDATE feeds SET failures = 3, last_outcome = 'hard_error' WHERE id > 2")
    assert await verdict(api) == ("degraded", "13 of 15 feeds fail")
    stats, health = (await api.get("/api/stats")).json(), (await api.get("/api/health/pipeline")).json()
    for answer in (stats, health):
        (alarm,) = answer["alarms"]
        assert (alarm["name"], alarm["severity"]) == ("most_feeds_fail", "warning")
        assert "`feedmill feeds list --health failing`" in alarm["action"]


async def test_one_feed_is_polled(api: httpx.AsyncClient, database_url: str) -> None:
    add(database_url, 1, "SELECT")
    state, headline = await verdict(api)
    assert (state, headline.split(",")[0]) == ("healthy", "All is well: 1 feed is polled")


async def test_if_all_feeds_are_disabled_it_is_said(api: httpx.AsyncClient, database_url: str) -> None:
    add(database_url, 3, "UPDATE feeds SET enabled = false")
    assert await verdict(api) == ("unknown", "All feeds are disabled: nothing is polled.")


async def test_old_figures_are_never_green(
    api: httpx.AsyncClient, resources: Resources, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(database_url, 1, "SELECT")
    assert (await verdict(api))[0] == "healthy"
    look, old = resources.scene, datetime.now(UTC) - timedelta(minutes=1)
    assert look.last
    look.last, look.last_at = replace(look.last, picture=replace(look.last.picture, now=old)), old
    monkeypatch.setattr("services.api.pages.overview.LOOK_SECONDS", 0.0)
    look._ended_at = 0.0
    state, headline = await verdict(api)
    assert state == "unknown"
    assert "Nothing newer is known than what was seen" in headline


async def test_articles_of_a_first_reading_are_told_to_be_left_out_and_counted(
    api: httpx.AsyncClient, resources: Resources, database_url: str
) -> None:
    add(database_url, 1, "SELECT")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("ANALYZE feed_items")
        await write(resources.database, 1, started_at=datetime.now(UTC), number=1, quality="full")
        connection.execute("SELECT * FROM claim_pending_articles(3)")
    page = (await api.get("/")).text
    assert "None counted; left out: " in page
    assert "No new articles in the last week" not in page
    assert "<dt>ever seen, about</dt><dd>25</dd>" in page
