"""Hosts over HTTP, and as a command."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import httpx
import psycopg
import pytest
from typer.testing import CliRunner

from services.admin.health import hosts as admin_hosts
from services.admin.registry import NewFeed, add_feed, connect
from services.api.resources import Resources
from services.cli.__main__ import app
from shared.errors import ConfigurationError

URLS = [
    "http://busy.example/1", "http://busy.example/2", "http://busy.example/3",
    "http://calm.example/1",
    "http://down.example/1",
    "http://failing.example/1", "http://failing.example/2",
    "http://throttled.example/1",
]  # fmt: skip

STATE = """
UPDATE feeds SET next_fetch_at = now() + interval '1 hour', last_success_at = '2026-01-01Z';
UPDATE feeds SET next_fetch_at = now() WHERE url = 'http://busy.example/1';
UPDATE feeds SET claim_id = gen_random_uuid(), claim_expires_at = now() + interval '1 hour', issued_at = now()
    WHERE url = 'http://busy.example/2';
UPDATE feeds SET failures = 2, last_outcome = 'hard_error' WHERE url = 'http://failing.example/2';
UPDATE feeds SET failures = 1, last_outcome = 'soft_error' WHERE url = 'http://down.example/1';
INSERT INTO throttled_groups VALUES ('throttled.example', '2100-01-01Z'), ('calm.example', '2020-01-01Z');
INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome, final, attempt,
    items_seen, items_new, wire_bytes, decoded_bytes, error_class)
SELECT gen_random_uuid(), id, now(), now() - interval '1 min', 0.5, ok, outcome, true, 1, 0, 0, 0, 0, error_class
FROM feeds JOIN (VALUES
    ('http://down.example/1', false, 'soft_error', 'connect'),
    ('http://calm.example/1', true, 'fetched', NULL),
    ('http://failing.example/2', false, 'hard_error', 'http_404')
) AS attempts (url, ok, outcome, error_class) USING (url);
"""


@pytest.fixture(autouse=True)
def some_hosts(database_url: str) -> None:
    with connect(database_url) as connection:
        for url in URLS:
            add_feed(connection, NewFeed(url))
    with psycopg.connect(database_url) as connection:
        connection.execute(STATE)


async def names(api: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await api.get("/api/hosts", params=query)
    assert answer.status_code == 200
    return [host["host"] for host in answer.json()["items"]]


async def test_hosts_are_listed_page_by_page(api: httpx.AsyncClient) -> None:
    found: list[str] = []
    cursor = None
    while True:
        answer = await api.get("/api/hosts", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))
        found += [host["host"] for host in answer.json()["items"]]
        cursor = answer.json()["next"]
        if cursor is None:
            break
    assert found == [f"{name}.example" for name in ("busy", "calm", "down", "failing", "throttled")]


async def test_a_host_tells_how_its_feeds_fare(api: httpx.AsyncClient) -> None:
    busy = (await api.get("/api/hosts/busy.example")).json()
    assert (busy["feeds"], busy["due"], busy["in_flight"], busy["backlog"], busy["failing"]) == (3, 1, 1, 2, 0)
    assert (busy["throttled_until"], busy["down_until"], busy["mean_seconds"]) == (None, None, None)
    calm = (await api.get("/api/hosts/calm.example")).json()
    assert (calm["throttled_until"], calm["mean_seconds"]) == (None, 0.5)
    assert datetime.fromisoformat(calm["last_success_at"]).year == 2026


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("throttled", ["throttled.example"]),
        ("down", ["down.example"]),
        ("backlog", ["busy.example"]),
        ("failing", ["down.example", "failing.example"]),
    ],
)
async def test_hosts_are_chosen_by_state(api: httpx.AsyncClient, state: str, expected: list[str]) -> None:
    assert await names(api, state=state) == expected
    assert await names(api, state=state, q="EXAMPLE") == expected
    assert await names(api, state=state, q="nothing") == []


async def test_a_host_that_answered_since_is_not_down(api: httpx.AsyncClient, database_url: str) -> None:
    assert (await api.get("/api/hosts/down.example")).json()["down_until"] is not None
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE feeds SET last_success_at = now() WHERE url = 'http://down.example/1'")
    assert (await api.get("/api/hosts/down.example")).json()["down_until"] is None
    assert await names(api, state="down") == []


async def test_a_path_of_a_proxy_is_part_of_the_name(api: httpx.AsyncClient, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE feeds SET politeness_group = 'hub.example/news' WHERE url ~ 'calm'")
    assert (await api.get("/api/hosts/hub.example/news")).json()["feeds"] == 1
    assert (await api.get("/api/hosts/hub.example%2Fnews")).json()["feeds"] == 1


async def test_a_host_without_feeds_is_not_found(api: httpx.AsyncClient) -> None:
    answer = await api.get("/api/hosts/nobody.example")
    assert (answer.status_code, answer.json()["detail"]) == (
        404, "no feed is at the host nobody.example: `feedmill hosts` shows all",
    )  # fmt: skip


@pytest.mark.parametrize("path", ["/api/hosts?q=%00", "/api/hosts/a%00b", "/api/hosts?state=odd", "/api/hosts?limit=0"])
async def test_what_can_not_be_looked_for_is_refused(api: httpx.AsyncClient, path: str) -> None:
    answer = await api.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


async def test_the_list_reads_an_index(resources: Resources) -> None:
    statement = admin_hosts._HOSTS.format(names=admin_hosts._NAMES[None].format(chosen=admin_hosts._CHOSEN))
    values = {"connect_failure_seconds": 600.0, "text": None, "limit": 50, "after": "busy.example"}
    async with resources.database.transaction() as connection:
        await connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        cursor = await connection.execute(b"EXPLAIN " + statement.encode(), values)
        plan = "\n".join(row["QUERY PLAN"] for row in await cursor.fetchall())
    assert not re.search(r"Seq Scan on (feeds|feed_fetch_log)\b", plan)
    assert {"feeds_host", "feed_fetch_log_failed", "feed_fetch_log_feed"} <= set(re.findall(r"using (\w+)", plan))


def test_the_command_shows_hosts(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["hosts", *arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    assert "5 hosts; times in" in run()
    assert "2100-01-01 00:00:00" in run("--state", "throttled", "--utc")
    assert [host["host"] for host in json.loads(run("--state", "down", "--json"))] == ["down.example"]
    assert "throttled until             2100-01-01 00:00:00 UTC" in run("throttled.example", "--utc")
    busy = json.loads(run("busy.example", "--json"))
    assert (busy["backlog"], busy["last_success_at"]) == (2, "2026-01-01T00:00:00Z")
    with pytest.raises(ConfigurationError, match=r"no feed is at the host nobody\.example"):
        run("nobody.example")
