"""The health of the pipeline over HTTP: on a pipeline at work, on an idle one, and on servers that are away or hang."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest
from pydantic import AmqpDsn, PostgresDsn

from services.admin.actor import Scope
from services.admin.health.pipeline import figures
from services.admin.registry import NewFeed, add_feed, connect
from services.api.app import make_app
from services.api.resources import Resources, open_database
from services.api.settings import ApiSettings
from services.cli.calls.within import WithinProcess
from services.writer.schedule.feed_state import Rules
from services.writer.store import write_batch
from shared.database.postgres import Database
from tests.factories import make_entry, make_result
from tests.integration.api.conftest import Caller

PATH = "/api/health/pipeline"
NOWHERE = 9
"""A port on which nobody listens."""


@asynccontextmanager
async def api_on(amqp_url: str, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    settings = ApiSettings(database_url=PostgresDsn(database_url), amqp_url=AmqpDsn(amqp_url))
    async with open_database(settings).open() as database:
        transport = WithinProcess(make_app(Resources(settings, database), Caller().authenticate))
        async with httpx.AsyncClient(transport=transport, base_url="http://feedmill") as client:
            yield client


@contextmanager
def silent_server() -> Iterator[int]:
    """Yield the port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def stages_of(health: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {stage["stage"]: stage for stage in health["stages"]}


def statuses_of(health: dict[str, Any]) -> dict[str, str]:
    return {name: stage["status"] for name, stage in stages_of(health).items()}


async def write(database: Database, feed_id: int, *, started_at: datetime, number: int, quality: str) -> None:
    """Write 25 new articles as the writer does; every fifth has a guessed date."""
    entries = [
        make_entry(
            number + n,
            content_quality=quality,
            published_at=started_at,
            flags=("date_guessed",) if n % 5 == 0 else (),
        )
        for n in range(25)
    ]
    result = make_result(feed_id=feed_id, tier="strict", entries=entries, queued_at=started_at, started_at=started_at)
    async with database.transaction() as connection:
        await write_batch(connection, [result], now=started_at, rules=Rules(), proxy_hosts=frozenset())


async def test_a_broker_without_queues_is_a_pipeline_that_is_down(api: httpx.AsyncClient) -> None:
    answer = await api.get(PATH)
    health = answer.json()
    assert (answer.status_code, health["status"]) == (503, "down")
    assert answer.headers["content-type"] == "application/json"
    assert statuses_of(health) == {
        "scheduler": "healthy",
        "fetcher": "down",
        "parser": "healthy",
        "enricher": "healthy",
        "writer": "down",
    }
    assert "the queue `writer` is not declared: no service has run on this broker yet" in health["reasons"]


@pytest.mark.usefixtures("consumers")
async def test_an_idle_pipeline_is_healthy(api: httpx.AsyncClient) -> None:
    answer = await api.get(PATH)
    assert (answer.status_code, answer.json()["status"], answer.json()["reasons"]) == (200, "healthy", [])
    assert stages_of(answer.json())["fetcher"]["workers"] == 12


@pytest.mark.usefixtures("consumers")
async def test_what_was_written_in_the_last_hour_is_counted(
    api: httpx.AsyncClient, resources: Resources, database_url: str
) -> None:
    with connect(database_url) as connection:
        feed_id = add_feed(connection, NewFeed("http://news.example/feed"))[0]
        connection.execute("UPDATE feeds SET next_fetch_at = now() + interval '1 hour'")
    now = datetime.now(UTC)
    await write(resources.database, feed_id, started_at=now - timedelta(days=3), number=1000, quality="full")
    await write(resources.database, feed_id, started_at=now - timedelta(minutes=1), number=1, quality="summary")
    with psycopg.connect(database_url) as connection:
        connection.execute(
            """
            INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome, final,
                attempt, items_seen, items_new, wire_bytes, decoded_bytes)
            SELECT gen_random_uuid(), %s, now(), now(), 1, ok, outcome, true, 1, 0, 0, 0, 0
            FROM (VALUES (true, 'not_modified'), (false, 'soft_error'), (false, 'hard_error'), (false, 'skipped'))
                AS attempts (ok, outcome)
            """,
            [feed_id],
        )
    answer = await api.get(PATH)
    health = answer.json()
    stages = stages_of(health)
    assert (answer.status_code, health["status"], health["window_seconds"]) == (200, "degraded", 3600.0)
    assert stages["fetcher"]["per_hour"] == {"fetches": 4.0}
    assert stages["fetcher"]["shares"] == {
        "not_modified": 0.25, "failed": 0.5, "failed_soft": 0.25, "failed_hard": 0.25,
    }  # fmt: skip
    assert stages["parser"]["shares"] == {"strict": 1.0, "unparseable": 0.0}
    assert stages["writer"]["per_hour"] == {"results": 5.0, "articles": 25.0}
    quality = health["quality"]
    labels = {"enriched": 0.0, "language": None, "topic": None}
    duplicates = {"duplicate_address": 0.0, "duplicate_title": 0.0, "duplicate_text": 0.0}
    assert quality["day"] == {"articles": 25, "share": 1.0, "dated": 0.8, "full": 0.0, **labels, **duplicates}
    assert quality["week"] == {"articles": 25, "share": 1.0, "dated": 0.8, "full": 1.0, **labels, **duplicates}
    assert quality["tiers"]["strict"]["change"] == {"dated": 0.0, "full": -1.0, **labels, **duplicates}
    assert quality["status"] == "degraded"
    alarms = {alarm["name"]: alarm for alarm in health["alarms"]}
    assert list(alarms) == ["nobody_drains", "quality_fell"]
    assert "the oldest for 3 days: does anybody take them?" in alarms["nobody_drains"]["sentence"]
    assert [alarm["sentence"] for alarm in alarms.values()] == health["reasons"]
    assert health["reasons"][1:] == [
        "0% of the last day's new articles have their whole text; in the week before it was 100%"
    ]


@pytest.mark.usefixtures("consumers")
async def test_a_feed_that_nobody_claims_is_a_scheduler_that_is_down(api: httpx.AsyncClient, database_url: str) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://news.example/feed"))
        connection.execute("UPDATE feeds SET next_fetch_at = now() - interval '20 min'")
    answer = await api.get(PATH)
    assert answer.status_code == 503
    assert statuses_of(answer.json())["scheduler"] == "down"
    assert "due for up to 20 minutes and nobody claims them" in answer.json()["reasons"][0]


@pytest.mark.usefixtures("consumers")
async def test_feeds_of_a_throttled_host_are_late_for_a_reason(api: httpx.AsyncClient, database_url: str) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://news.example/feed"))
        connection.execute("UPDATE feeds SET next_fetch_at = now() - interval '20 min'")
        connection.execute("INSERT INTO throttled_groups SELECT 'news.example', now() + interval '1 hour'")
    assert (await api.get(PATH)).json()["status"] == "healthy"


async def test_without_a_broker_it_is_said_and_the_rest_is_told(database_url: str) -> None:
    async with api_on(f"amqp://me:secret@127.0.0.1:{NOWHERE}/", database_url) as api:
        answer = await api.get(PATH)
    health = answer.json()
    assert answer.status_code == 503
    assert statuses_of(health) == {
        "scheduler": "down",
        "fetcher": "down",
        "parser": "healthy",
        "enricher": "down",
        "writer": "down",
    }
    assert health["reasons"][0].startswith("RabbitMQ can't be asked: ")
    assert "secret" not in answer.text


@pytest.mark.usefixtures("consumers")
async def test_without_a_database_it_is_said_and_the_rest_is_told(amqp_url: str) -> None:
    async with api_on(amqp_url, f"postgresql://me:secret@127.0.0.1:{NOWHERE}/none") as api:
        answer = await api.get(PATH)
    health = answer.json()
    assert answer.status_code == 503
    assert statuses_of(health) == {
        "scheduler": "down",
        "fetcher": "healthy",
        "parser": "unknown",
        "enricher": "healthy",
        "writer": "down",
    }
    assert health["quality"] is None
    assert health["reasons"][0].startswith("PostgreSQL can't be asked: ")
    assert "secret" not in answer.text


async def test_servers_that_hang_keep_nobody_waiting() -> None:
    with silent_server() as broker, silent_server() as database:
        async with (
            api_on(f"amqp://me@127.0.0.1:{broker}/", f"postgresql://me@127.0.0.1:{database}/none") as api,
            asyncio.timeout(30),
        ):
            answers = await asyncio.gather(*(api.get(PATH) for _ in range(50)))
    assert {answer.status_code for answer in answers} == {503}
    reasons = " ".join(answers[0].json()["reasons"])
    assert "RabbitMQ does not answer within 2 s" in reasons
    assert "PostgreSQL does not answer within 2 s" in reasons


async def test_health_is_for_those_who_may_read(api: httpx.AsyncClient, caller: Caller) -> None:
    caller.scopes = {Scope.CONSUME}
    answer = await api.get(PATH)
    assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json")


@pytest.mark.usefixtures("consumers")
async def test_runs_of_batch_are_counted_and_excuse_nobody_where_shards_are_read(
    amqp_url: str, database_url: str
) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://news.example/feed"))
        connection.execute("UPDATE feeds SET next_fetch_at = now() - interval '20 min'")
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO batch_runs (finished_at, seconds, summary)"
            " SELECT now() - n * interval '23 hours', 1, '{}' FROM generate_series(1, 3) AS n"
        )
    async with api_on(amqp_url, database_url) as api:
        health = (await api.get(PATH)).json()
    assert health["batches"]["runs"] == 1
    assert health["batches"]["seconds_since"] == pytest.approx(23 * 3600, abs=60)
    assert statuses_of(health)["scheduler"] == "down"  # somebody reads the shards: no batches fetch here


async def test_the_figures_are_read_from_indexes(resources: Resources) -> None:
    statements: dict[str, dict[str, Any]] = {
        figures._ATTEMPTS: {"window": 3600.0},
        figures._MINUTE: {},
        figures._PACE: {"group_jobs": 400},
        figures._QUALITY: {},
    }
    async with resources.database.transaction() as connection:
        await connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        for statement, values in statements.items():
            cursor = await connection.execute(b"EXPLAIN " + statement.encode(), values)
            plan = "\n".join(row["QUERY PLAN"] for row in await cursor.fetchall())
            assert not re.search(r"Seq Scan on (feeds|feed_fetch_log)\b", plan), plan
