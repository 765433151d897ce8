"""How feeds are: the view and the rule agree; filter, counts and the order of day and month over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.admin.actor import Scope
from services.admin.feed_health.counts import count_words
from services.admin.feed_health.rule import Word
from services.admin.feeds.listing import SORTS, Filters, list_feeds
from services.admin.registry import NewFeed
from services.fetcher.retries import RetryRules
from shared.database.postgres import Connection, Database
from shared.wire.outcomes import Outcome
from tests.integration.api.conftest import Caller
from tests.integration.api.test_feeds import change, pages, register

DAY = 86_400
AGES = st.sampled_from([0, 1, 3600, DAY, DAY + 1, 3 * DAY, 3 * DAY + 1, 7 * DAY, 10 * DAY, 10 * DAY + 1, 30 * DAY + 1])
"""Seconds: on the bounds of the rules, and beside them."""

MOMENTS = ("gone_since", "last_success_at", "last_new_at", "created_at", "cursor_at", "ambiguous_since", "moved_at")
STATES = st.fixed_dictionaries(
    {
        **{name: AGES if name == "created_at" else st.none() | AGES for name in MOMENTS},
        "next_fetch_at": st.sampled_from([-60, 0, 60]),
        "enabled": st.sampled_from([True, True, True, False]),
        "disabled_reason": st.sampled_from(
            [None, "by hand", "gone: the server answered 410 twice", "duplicate: moved …", "gone"]
        ),
        "failures": st.sampled_from([0, 0, 0, 1, 5]),
        "last_outcome": st.sampled_from([None, *(outcome.value for outcome in Outcome)]),
        "politeness_group": st.sampled_from(["free", "throttled", "past"]),
        "news_gap_seconds": st.sampled_from([None, 0.0, 60.0, float(DAY), float(10 * DAY), 1e15]),
        "duplicate_of": st.sampled_from([None, 1, 2, 99]),
        "date_order": st.sampled_from([None, "day", "month"]),
        "moved_to": st.sampled_from([None, "http://new.example/"]),
    }
)


async def insert(connection: Connection, number: int, state: dict[str, Any]) -> None:
    values = {"url": f"http://feed-{number}.example/", **state}
    moments = {*MOMENTS, "next_fetch_at"}
    marks = ", ".join(
        f"now() - make_interval(secs => %({name})s)" if name in moments else f"%({name})s" for name in values
    )
    await connection.execute(f"INSERT INTO feeds ({', '.join(values)}) VALUES ({marks})".encode(), values)


async def compare(database_url: str, states: list[dict[str, Any]]) -> None:
    async with Database(database_url, size=1).open() as database, database.transaction() as connection:
        await connection.execute("TRUNCATE feeds RESTART IDENTITY CASCADE")
        await connection.execute("DELETE FROM throttled_groups")
        await connection.execute(
            """
            INSERT INTO throttled_groups
            VALUES ('throttled', now() + interval '1 hour'), ('past', now() - interval '1 hour')
            """
        )
        for number, state in enumerate(states):
            await insert(connection, number, state)
        found = await list_feeds(connection, RetryRules(), Filters(), SORTS["id"], limit=1000)
        cursor = await connection.execute("SELECT feed_id, word FROM feed_words ORDER BY feed_id")
        in_sql = {row["feed_id"]: row["word"] for row in await cursor.fetchall()}
        assert {row["id"]: row["health"].word for row in found} == in_sql
        counts = await count_words(connection)
        assert set(counts) == set(Word)
        for word, number in counts.items():
            chosen = await list_feeds(connection, RetryRules(), Filters(health=word), SORTS["-id"], limit=1000)
            assert [row["health"].word for row in chosen] == [word] * number


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states=st.lists(STATES, min_size=15, max_size=30))
def test_the_view_and_the_rule_find_the_same_word(database_url: str, states: list[dict[str, Any]]) -> None:
    asyncio.run(compare(database_url, states))


async def test_a_feed_says_how_it_is_and_lists_are_chosen_by_that(api: httpx.AsyncClient, database_url: str) -> None:
    register(database_url, *(NewFeed(f"http://site-{number}.example/feed") for number in range(6)))
    change(
        database_url,
        """
        UPDATE feeds SET last_success_at = now(), last_attempt_at = now(), last_new_at = now() - interval '9 days',
            news_gap_seconds = 86400, next_fetch_at = now() + interval '1 hour' WHERE id <> 4
        """,
    )
    stale = await pages(api, "/api/feeds", health="stale", limit=2)
    assert [feed["id"] for feed in stale] == [1, 2, 3, 5, 6]
    by_name = await pages(api, "/api/feeds", health="stale", sort="-name", q="site", limit=2)
    assert sorted(feed["id"] for feed in by_name) == [1, 2, 3, 5, 6]
    (new,) = await pages(api, "/api/feeds", health="new")
    shown = (await api.get("/api/feeds/4")).json()
    assert shown["health"] == new["health"]
    assert set(shown["health"]) == {"word", "text", "since", "until", "reason", "advice", "feed_id", "url"}
    assert (shown["health"]["word"], shown["health"]["text"]) == ("new", "new")
    refused = await api.get("/api/feeds", params={"health": "well"})
    assert (refused.status_code, "dates_ambiguous" in refused.json()["detail"]) == (422, True)


async def test_secrets_are_in_no_sentence(api: httpx.AsyncClient, database_url: str) -> None:
    register(database_url, NewFeed("http://me:secret@site.example/feed"))
    for state in (
        "last_outcome = 'not_a_feed', failures = 1, last_error = 'at http://me:secret@site.example/feed'",
        "last_outcome = 'fetched', failures = 0, last_success_at = now(), created_at = now() - interval '90 days'",
        "last_new_at = now(), moved_to = 'http://me:secret@new.example/', moved_since = now()",
    ):
        change(database_url, f"UPDATE feeds SET {state}")
        answer = await api.get("/api/feeds/1")
        assert "secret" not in answer.text
        assert "***" in answer.text


async def test_a_person_decides_the_order_once_and_the_body_is_read_anew(
    api: httpx.AsyncClient, caller: Caller, database_url: str
) -> None:
    register(database_url, NewFeed("http://site.example/feed"))
    change(
        database_url,
        """
        UPDATE feeds SET ambiguous_since = now(), last_success_at = now(), last_new_at = now(), body_hash = 'x',
            etag = 'y', next_fetch_at = now() + interval '1 hour'
        """,
    )
    before = await api.get("/api/feeds/1")
    assert before.json()["health"]["text"] == "dates ambiguous"
    decided = await api.patch("/api/feeds/1", json={"date_order": "day"})
    assert (decided.json()["date_order"], decided.json()["health"]["word"]) == ("day", "healthy")
    assert decided.headers["ETag"] != before.headers["ETag"]
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT etag, body_hash, ambiguous_since FROM feeds").fetchone() == (None,) * 3
        audited = connection.execute("SELECT details->>'date_order' FROM audit_log WHERE action = 'feed.update'")
        assert audited.fetchall() == [("day",)]
    assert (await api.patch("/api/feeds/1", json={"date_order": "year"})).status_code == 422
    assert (await api.patch("/api/feeds/1", json={"date_order": None})).json()["date_order"] is None
    caller.scopes = {Scope.READ}
    assert (await api.patch("/api/feeds/1", json={"date_order": "day"})).status_code == 403
