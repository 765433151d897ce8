"""How things stand, over HTTP."""

from __future__ import annotations

import httpx
import psycopg

from services.admin.registry import NewFeed, add_feed, connect
from services.api.resources import Resources
from tests.integration.api.test_health import NOWHERE, api_on, write


async def test_stats_count_feeds_articles_and_hours(
    api: httpx.AsyncClient, resources: Resources, database_url: str
) -> None:
    with connect(database_url) as connection:
        feed_id = add_feed(connection, NewFeed("http://news.example/feed"))[0]
        add_feed(connection, NewFeed("http://other.example/feed"))
        connection.execute("UPDATE feeds SET enabled = false WHERE id <> %s", [feed_id])
    now = await resources.database.read_clock()
    await write(resources.database, feed_id, started_at=now, number=1, quality="full")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SELECT * FROM claim_pending_articles(3)")
    stats = (await api.get("/api/stats")).json()
    assert (stats["counts"]["feeds"], stats["counts"]["disabled"]) == (2, 1)
    assert stats["articles"] == {"pending": 25, "claimed": 3, "dead": 0, "ledger": 25}
    assert len(stats["hours"]) == 24
    assert sum(hour["articles"] for hour in stats["hours"]) == 25
    assert sum(hour["succeeded"] for hour in stats["hours"]) == 1
    assert (stats["quality"]["day"]["articles"], stats["quality"]["day"]["enriched"]) == (25, 0.0)
    assert stats["queues"]["writer"] is None
    assert {alarm["name"] for alarm in stats["alarms"]} == {"queues_missing"}
    assert stats["reasons"] == [alarm["sentence"] for alarm in stats["alarms"]]


async def test_stats_without_a_broker_say_so_and_tell_the_rest(database_url: str) -> None:
    async with api_on(f"amqp://me:secret@127.0.0.1:{NOWHERE}/", database_url) as api:
        answer = await api.get("/api/stats")
    stats = answer.json()
    assert (answer.status_code, stats["queues"], stats["queues_at"]) == (200, {}, None)
    assert (stats["counts"]["feeds"], stats["counts_at"] is None) == (0, False)
    (alarm,) = stats["alarms"]
    assert (alarm["name"], alarm["severity"]) == ("broker_away", "critical")
    assert "FEEDMILL_AMQP_URL" in alarm["action"]
    assert stats["reasons"] == [alarm["sentence"]]
    assert "secret" not in answer.text


async def test_stats_without_a_database_say_so_and_tell_the_rest(amqp_url: str) -> None:
    async with api_on(amqp_url, f"postgresql://me:secret@127.0.0.1:{NOWHERE}/none") as api:
        answer = await api.get("/api/stats")
    stats = answer.json()
    assert (answer.status_code, stats["counts"], stats["articles"], stats["hours"]) == (200, None, None, [])
    assert (stats["queues"]["writer"], stats["queues_at"] is None) == (None, False)
    assert [alarm["name"] for alarm in stats["alarms"]][:2] == ["database_away", "queues_missing"]
    assert "secret" not in answer.text
