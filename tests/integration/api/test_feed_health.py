"""How feeds are: the view and the rule agree; filter, counts and the order of day and month over HTTP."""

from __future__ import annotations

from random import Random
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.types.json import Json

from services.admin.actor import Scope
from services.admin.feed_health.counts import count_words
from services.admin.feed_health.rule import Word
from services.admin.feeds.listing import SORTS, Filters, list_feeds
from services.admin.registry import NewFeed
from services.fetcher.retries import RetryRules
from shared.database.postgres import Database
from shared.wire.outcomes import Outcome
from tests.integration.api.conftest import Caller
from tests.integration.api.test_feeds import change, pages, register

DAY = 86_400
AGES = [0, 1, 3600, DAY, DAY + 1, 3 * DAY, 3 * DAY + 1, 7 * DAY, 7 * DAY + 1, 10 * DAY, 10 * DAY + 1, 30 * DAY + 1]
"""Seconds: on the bounds of the rules, and beside them."""
MOMENTS = (
    *("gone_since", "last_success_at", "last_new_at", "created_at", "cursor_at", "ambiguous_since", "moved_at"),
    "next_fetch_at",
)


def make_state(random: Random) -> dict[str, Any]:
    """Return a feed's row; its moments are seconds ago. What hides later words is seldom."""

    def seldom(*values: Any, usual: Any = None) -> Any:
        return random.choice(values) if random.random() < 0.15 else usual

    return {
        "gone_since": seldom(*AGES),
        "last_success_at": seldom(None, usual=60),
        "last_new_at": random.choice([None, *AGES]),
        "created_at": random.choice(AGES),
        "cursor_at": random.choice([None, *AGES]),
        "ambiguous_since": seldom(*AGES),
        "moved_at": random.choice([None, *AGES]),
        "next_fetch_at": random.choice([-60, 0, 60]),
        "enabled": seldom(False, usual=True),
        "disabled_reason": random.choice([None, "by hand", "gone: 410 twice", "duplicate: of feed 1", "gone"]),
        "failures": seldom(1, 5, usual=0),
        "last_outcome": seldom(*(outcome.value for outcome in Outcome)),
        "politeness_group": seldom("throttled", usual=random.choice(["free", "past"])),
        "news_gap_seconds": random.choice([None, 0.0, 60.0, float(DAY), float(10 * DAY), 1e15]),
        "duplicate_of": seldom(1, 2, 3, 10**9),
        "date_order": random.choice([None, "day", "month"]),
        "moved_to": seldom("http://new.example/"),
    }


def insertion(states: list[dict[str, Any]]) -> tuple[str, list[Any]]:
    """Return the statement that inserts the feeds."""
    values = ", ".join(f"now() - make_interval(secs => {name})" if name in MOMENTS else name for name in states[0])
    types = {"enabled": "boolean", "failures": "integer", "duplicate_of": "bigint"}
    types |= dict.fromkeys((*MOMENTS, "news_gap_seconds"), "float8")
    columns = ", ".join(f"{name} {types.get(name, 'text')}" for name in states[0])
    statement = f"""
        INSERT INTO feeds (url, {", ".join(states[0])}) SELECT 'http://' || number, {values}
        FROM ROWS FROM (json_to_recordset(%s) AS ({columns})) WITH ORDINALITY AS given ({", ".join(states[0])}, number)
        ORDER BY number
        """
    return statement, [Json(states)]


@pytest.mark.parametrize("seed", range(3))
async def test_the_view_and_the_rule_find_the_same_word(database_url: str, seed: int) -> None:
    random = Random(seed)
    states = [make_state(random) for _ in range(2000)]
    async with Database(database_url, size=1).open() as database, database.transaction() as connection:
        await connection.execute(
            """
            INSERT INTO throttled_groups
            VALUES ('throttled', now() + interval '1 hour'), ('past', now() - interval '1 hour')
            """
        )
        statement, values = insertion(states)
        await connection.execute(statement.encode(), values)
        found = await list_feeds(connection, RetryRules(), Filters(), SORTS["id"], limit=len(states))
        cursor = await connection.execute("SELECT word FROM feed_words ORDER BY feed_id")
        in_sql = [row["word"] for row in await cursor.fetchall()]
        pairs = zip(states, in_sql, (row["health"].word for row in found), strict=True)
        assert [pair for pair in pairs if pair[1] != pair[2]] == []
        counts = await count_words(connection)
        assert counts == {word: in_sql.count(word) for word in Word}
        assert min(counts.values()) > 0, "each word is compared"
        for word, number in counts.items():
            chosen = await list_feeds(connection, RetryRules(), Filters(health=word), SORTS["-id"], limit=len(states))
            assert [row["health"].word for row in chosen] == [word] * number
        cursor = await connection.execute("SHOW max_parallel_workers_per_gather")
        assert await cursor.fetchall() == [{"max_parallel_workers_per_gather": "0"}]  # they cost more than they save


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
