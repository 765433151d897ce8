"""API and command while servers are away, hang, are full or read-only: they say what is wrong, and what they know."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
import pytest
from typer.testing import CliRunner

from local.servers import Servers
from services.admin.access import remembered
from services.admin.actor import Scope
from services.admin.health import stats
from services.admin.health.pipeline import watch
from services.admin.registry import NewFeed, add_feed, connect
from services.cli.__main__ import app
from shared.broker.rabbitmq import RabbitMQ
from shared.settings import BrokerSettings
from tests.e2e.broker_control import BrokerControl
from tests.faults.frozen import frozen
from tests.integration.api.conftest import MakeToken, bearer
from tests.integration.api.test_health import api_on


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are kept for a moment only."""
    monkeypatch.setattr(watch, "KEEP_SECONDS", 0.1)
    monkeypatch.setattr(stats, "KEEP_SECONDS", 0.1)


@pytest.fixture
async def api(amqp_url: str, database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """An API that has seen both servers well: a feed, and readers for it."""
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://news.example/feed"))
        connection.execute("UPDATE feeds SET next_fetch_at = now() + interval '1 hour'")
    async with RabbitMQ(amqp_url, name="test", max_message_bytes=10**6).connect(BrokerSettings().topology()):
        pass
    async with api_on(amqp_url, database_url) as client:
        before = await read(client)
        assert before["counts"]["feeds"] == 1
        assert before["queues"]["writer"] == 0
        yield client


async def read(api: httpx.AsyncClient) -> dict[str, Any]:
    answer = await api.get("/api/stats")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


async def until_rings(api: httpx.AsyncClient, name: str, *, rings: bool = True) -> dict[str, Any]:
    """Return the stats as soon as the alarm rings, or is over; health says the same."""
    async with asyncio.timeout(60):
        while True:
            found = await read(api)
            alarms = {alarm["name"]: alarm for alarm in found["alarms"]}
            if (name in alarms) == rings:
                break
            await asyncio.sleep(0.1)
    if rings:
        health = await api.get("/api/health/pipeline")
        assert (health.status_code, health.json()["status"]) == (503, "down")
        assert name in {alarm["name"] for alarm in health.json()["alarms"]}
    return {**found, "alarm": alarms.get(name)}


def status(amqp_url: str, database_url: str, monkeypatch: pytest.MonkeyPatch, exit_code: int = 1) -> str:
    """Return what `feedmill status` prints."""
    monkeypatch.setenv("FEEDMILL_AMQP_URL", amqp_url)
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    result = CliRunner().invoke(app, ["status"])
    assert result.exit_code == exit_code, result.output
    said = CliRunner().invoke(app, ["status", "--health"])
    assert said.exit_code == 1
    return result.output


@contextmanager
def stopped(server: Any) -> Iterator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


@contextmanager
def refusing(control: BrokerControl) -> Iterator[None]:
    """Let the broker refuse connections, as one that does not run. (A restart may cost the tests after it a queue.)"""
    control.evaluate("rabbit_maintenance:suspend_all_client_listeners()")
    try:
        yield
    finally:
        control.evaluate("rabbit_maintenance:resume_all_client_listeners()")


@pytest.mark.parametrize("how", ["refusing", "frozen"])
async def test_without_a_broker_the_database_is_told_and_since_when(
    api: httpx.AsyncClient,
    servers: Servers,
    amqp_url: str,
    database_url: str,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with frozen(servers.rabbitmq.process_ids()[0]) if how == "frozen" else refusing(BrokerControl(servers)):
        found = await until_rings(api, "broker_away")
        assert found["queues"]["writer"] == 0  # as it was seen last
        assert found["queues_at"] < found["counts_at"]
        assert found["alarm"]["since"] is not None
        assert found["counts"]["feeds"] == 1
        said = await asyncio.to_thread(status, amqp_url, database_url, monkeypatch)
        assert "critical: RabbitMQ can't be asked: " in said
        assert "docs/how-to/alerts.md#feedmillnotready" in said
        assert "due" in said
    await until_rings(api, "broker_away", rings=False)


@pytest.mark.parametrize("how", ["stopped", "frozen"])
async def test_without_a_database_the_broker_is_told_and_since_when(
    api: httpx.AsyncClient,
    servers: Servers,
    amqp_url: str,
    database_url: str,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with frozen(servers.postgres.process_ids()[0]) if how == "frozen" else stopped(servers.postgres):
        found = await until_rings(api, "database_away")
        assert found["counts"]["feeds"] == 1  # as it was seen last
        assert found["alarm"]["since"] is not None
        async with asyncio.timeout(60):
            while found["counts_at"] >= found["queues_at"]:  # they were seen at one moment before; now only queues are
                await asyncio.sleep(0.1)
                found = await read(api)
        said = await asyncio.to_thread(status, amqp_url, database_url, monkeypatch)
        assert "critical: PostgreSQL can't be asked: " in said
        assert "fetcher.* (12 shards)" in said
    await until_rings(api, "database_away", rings=False)


@pytest.mark.parametrize("resource", ["memory", "disk"])
async def test_an_alarm_of_the_broker_is_told_with_its_reason(
    api: httpx.AsyncClient,
    servers: Servers,
    amqp_url: str,
    database_url: str,
    resource: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control = BrokerControl(servers)
    with control.memory_alarm() if resource == "memory" else control.disk_alarm():
        found = await until_rings(api, "broker_alarm")
        assert found["alarm"]["sentence"] == f"RabbitMQ takes no messages: it is low on {resource}"
        assert found["queues"]["writer"] == 0
        connections = count_connections(control, amqp_url)
        for _ in range(5):
            await asyncio.sleep(0.15)
            await until_rings(api, "broker_alarm")
        assert count_connections(control, amqp_url) == connections == 2  # the broker would not notice their end
        assert "low on" in await asyncio.to_thread(status, amqp_url, database_url, monkeypatch)
    await until_rings(api, "broker_alarm", rings=False)
    async with asyncio.timeout(30):
        while count_connections(control, amqp_url):
            await asyncio.sleep(0.1)


def count_connections(control: BrokerControl, amqp_url: str) -> int:
    vhost = amqp_url.rpartition("/")[2]
    return int(
        control.evaluate(
            f'length([1 || [{{vhost, V}}] <- rabbit_networking:connection_info_all([vhost]), V =:= <<"{vhost}">>])'
        )
    )


@contextmanager
def read_only(database_url: str) -> Iterator[None]:
    name = database_url.rpartition("/")[2]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
        end_others(connection)
    yield
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())
        end_others(connection)


def end_others(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


async def test_a_database_that_takes_no_changes_is_told(api: httpx.AsyncClient, database_url: str) -> None:
    with read_only(database_url):
        found = await until_rings(api, "database_read_only")
        assert found["alarm"]["sentence"] == "PostgreSQL is read-only: it takes no changes"
        assert found["counts"]["feeds"] == 1
    await until_rings(api, "database_read_only", rings=False)


@contextmanager
def full_disk(servers: Servers) -> Iterator[None]:
    """Let the database's scratch files have a disk of their own, with next to no room."""
    with psycopg.connect(servers.postgres.database_url()) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    place = f"{row[0]}/base/pgsql_tmp"
    subprocess.run(["mkdir", "-p", place], check=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=1777", "tmpfs", place], check=False)
    if mounted.returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


async def test_a_full_disk_of_the_database_is_told(
    api: httpx.AsyncClient, servers: Servers, amqp_url: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with full_disk(servers):
        found = await until_rings(api, "database_full")
        assert found["counts"]["feeds"] == 1
        assert "the disk of PostgreSQL is full" in await asyncio.to_thread(status, amqp_url, database_url, monkeypatch)
    await until_rings(api, "database_full", rings=False)


async def test_tables_that_are_missing_are_told(
    servers: Servers, amqp_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers.postgres.create_database("bare")
    try:
        url = servers.postgres.database_url("bare")
        async with api_on(amqp_url, url) as api:
            found = await until_rings(api, "tables_missing")
        assert found["alarm"]["action"] == "run `feedmill migrate`"
        assert found["counts"] is None
        assert "the tables are missing" in await asyncio.to_thread(status, amqp_url, url, monkeypatch)
    finally:
        servers.postgres.drop_database("bare")


async def test_who_was_let_in_before_sees_page_and_health_while_the_database_hangs(
    closed: httpx.AsyncClient, make_token: MakeToken, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "TRUSTED_SECONDS", 0.0)
    known, unknown = bearer(await make_token(Scope.ADMIN)), bearer(await make_token(Scope.ADMIN))
    assert (await closed.get("/", headers=known)).status_code == 200
    with frozen(servers.postgres.process_ids()[0]):
        for _ in range(2):
            answer = await closed.get("/api/health/pipeline", headers=known)
            assert (answer.status_code, answer.json()["status"]) == (503, "down")
            assert "database_away" in {alarm["name"] for alarm in answer.json()["alarms"]}
        async with asyncio.timeout(60):  # the page may be a few seconds old
            while "PostgreSQL can" not in (await closed.get("/", headers=known)).text:
                await asyncio.sleep(0.2)
        changing = asyncio.create_task(closed.post("/api/feeds", headers=known, json={"url": "http://a.example/"}))
        asking = asyncio.create_task(closed.get("/api/health/pipeline", headers=unknown))
        await asyncio.sleep(0.2)
        assert not changing.done()
        assert not asking.done() or asking.result().status_code == 503
    await asyncio.gather(changing, asking)
    assert (await closed.get("/api/health/pipeline", headers=unknown)).json()["stages"]


async def test_json_has_the_alarms_too(amqp_url: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_AMQP_URL", amqp_url)
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    result = await asyncio.to_thread(CliRunner().invoke, app, ["status", "--json"])
    assert result.exit_code == 1
    assert "queues_missing" in {alarm["name"] for alarm in json.loads(result.output)["alarms"]}
