"""`feedmill doctor` on servers that are well, and on broken ones."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from typer.testing import CliRunner

from local.servers import Servers
from services.admin.doctor.broker import check_management
from services.cli.__main__ import app
from shared.broker.rabbitmq import RabbitMQ
from shared.database.postgres import SCHEMA_VERSION
from shared.settings import BrokerSettings
from tests.integration.writer.test_migrations import database_before

NOWHERE = 9
"""A port on which nobody listens."""

Doctor = Callable[..., dict[str, Any]]


@pytest.fixture
def doctor(
    amqp_url: str, database_url: str, servers: Servers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Doctor:
    """Runs the command; returns what it found by check, with the exit code under `exit`."""
    monkeypatch.setenv("FEEDMILL_AMQP_URL", amqp_url)
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    monkeypatch.setenv("FEEDMILL_MANAGEMENT_URL", servers.management_url)
    monkeypatch.setenv("FEEDMILL_HOME", str(tmp_path))

    def run(*arguments: str) -> dict[str, Any]:
        result = CliRunner().invoke(app, ["doctor", "--json", *arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        found: dict[str, Any] = {"exit": result.exit_code}
        for finding in json.loads(result.output):
            assert bool(finding["advice"]) == (finding["severity"] != "ok")
            found.setdefault(finding["check"], []).append(finding)
        return found

    return run


@pytest.fixture
async def consumers(amqp_url: str) -> AsyncIterator[None]:
    """All queues, each with a reader."""
    topology = BrokerSettings().topology()
    async with RabbitMQ(amqp_url, name="test", max_message_bytes=10**6).connect(topology) as session:
        for queue in (*topology.fetcher.queues, topology.writer.queue):
            await session.consume(queue, prefetch=1, deliver=lambda delivery: None)
        yield


def severities(findings: list[dict[str, Any]]) -> set[str]:
    return {finding["severity"] for finding in findings}


@pytest.mark.usefixtures("consumers")
async def test_servers_that_are_well_have_nothing_found(doctor: Doctor) -> None:
    found = await asyncio.to_thread(doctor)
    del found["DNS"]  # tests have no internet
    assert found.pop("exit") in {0, 3}
    assert [finding for findings in found.values() for finding in findings if finding["severity"] != "ok"] == []
    assert {"settings", "Python", "disk", "open files", "PostgreSQL", "migrations", "clock"} <= found.keys()
    assert found["queues"][0]["found"] == "all are declared, with our arguments"
    assert found["pipeline"][0]["found"] == "healthy"
    assert {"RabbitMQ", "management"} <= found.keys()


def test_queues_that_are_not_there_are_a_warning_and_stay_away(doctor: Doctor) -> None:
    for _ in range(2):
        found = doctor()
        assert found["exit"] == 3
        assert found["queues"][0]["found"].startswith("not declared: enricher, enricher.dead, ")
        assert found["pipeline"][0]["found"].startswith("down: ")


async def test_a_queue_with_other_arguments_is_an_error(
    doctor: Doctor, amqp_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = BrokerSettings().topology()
    broker = RabbitMQ(amqp_url, name="test", max_message_bytes=10**6)
    async with broker.connect(topology):
        pass
    import aio_pika

    connection = await aio_pika.connect(amqp_url)
    async with connection:
        channel = await connection.channel()
        await channel.queue_delete("writer.dead")
        await channel.declare_queue("writer.dead", durable=True, arguments={"x-queue-type": "classic"})
    found = await asyncio.to_thread(doctor)
    assert found["exit"] == 1
    assert "writer.dead" in found["queues"][0]["found"]


@pytest.mark.parametrize(
    ("broken", "said", "advice"),
    [
        ("password", "password authentication failed", "correct user and password"),
        ("database", "does not exist", "create it"),
        ("port", "refused", "start PostgreSQL"),
    ],
)
def test_a_database_that_can_not_be_used_is_an_error(
    doctor: Doctor, database_url: str, monkeypatch: pytest.MonkeyPatch, broken: str, said: str, advice: str
) -> None:
    parts = urlsplit(database_url)
    urls = {
        "password": f"postgresql://{parts.username}:wrong-secret@{parts.hostname}:{parts.port}{parts.path}",
        "database": f"{database_url}_of_nobody",
        "port": f"postgresql://me@127.0.0.1:{NOWHERE}/feedmill",
    }
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", urls[broken])
    found = doctor()
    (finding,) = found["database"]
    assert found["exit"] == 1
    assert finding["severity"] == "error"
    assert said in finding["found"]
    assert advice in finding["advice"]
    assert "wrong-secret" not in str(found)
    assert severities(found["broker"]) == {"ok"}
    assert "pipeline" not in found


def test_an_old_schema_and_a_database_without_tables_are_errors(
    doctor: Doctor, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database_before(servers, tmp_path, SCHEMA_VERSION) as url:
        monkeypatch.setenv("FEEDMILL_DATABASE_URL", url)
        found = doctor()
        assert found["exit"] == 1
        (finding,) = found["migrations"]
        assert (finding["severity"], finding["advice"]) == ("error", "run `feedmill migrate`")
        with psycopg.connect(url) as connection:
            connection.execute("DROP TABLE schema_migrations")
        assert doctor()["migrations"][0]["found"] == "there are no tables yet"


@pytest.mark.parametrize(
    ("broken", "advice"),
    [("password", "user and password"), ("vhost", "virtual host"), ("port", "start RabbitMQ")],
)
def test_a_broker_that_can_not_be_used_is_an_error(
    doctor: Doctor, amqp_url: str, monkeypatch: pytest.MonkeyPatch, broken: str, advice: str
) -> None:
    parts = urlsplit(amqp_url)
    urls = {
        "password": f"amqp://{parts.username}:wrong-secret@{parts.hostname}:{parts.port}{parts.path}",
        "vhost": f"{amqp_url}-of-nobody",
        "port": f"amqp://me@127.0.0.1:{NOWHERE}/",
    }
    monkeypatch.setenv("FEEDMILL_AMQP_URL", urls[broken])
    found = doctor()
    (finding,) = found["broker"]
    assert (found["exit"], finding["severity"]) == (1, "error")
    assert advice in finding["advice"]
    assert "wrong-secret" not in str(found)
    assert severities(found["database"]) == {"ok"}


def test_without_servers_it_is_said_how_to_have_some(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEEDMILL_AMQP_URL")
    monkeypatch.delenv("FEEDMILL_DATABASE_URL")
    found = doctor()
    assert found["exit"] == 1
    assert found["servers"][0]["found"].startswith("no servers: start `feedmill up` first")


def test_a_setting_that_can_not_be_read_ends_the_search(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_LOG_LEVEL", "LOUD")
    found = doctor()
    assert found.keys() == {"exit", "settings"}
    assert found["exit"] == 1
    assert "FEEDMILL_LOG_LEVEL" in found["settings"][0]["found"]


@contextmanager
def serving(status: int, body: bytes) -> Iterator[str]:
    """Yield the address of a site that answers all requests so."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{site.server_port}"
        finally:
            site.shutdown()
            thread.join()


def test_a_probe_tells_what_came(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor("--probe", f"http://127.0.0.1:{NOWHERE}/feed")["probe"][0]["severity"] == "error"
    feed = b"<rss version='2.0'><channel><title>T</title><item><title>A</title></item></channel></rss>"
    with serving(200, feed) as site:
        monkeypatch.setenv("FEEDMILL_ALLOW_NETWORKS", "127.0.0.0/8")
        (finding,) = doctor("--probe", f"{site}/feed")["probe"]
    assert finding["severity"] == "ok"
    assert "1 entries in" in finding["found"]


@pytest.mark.parametrize("url", [f"http://127.0.0.1:{NOWHERE}"])
def test_from_afar_it_asks_the_api_alone(doctor: Doctor, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("FEEDMILL_API_URL", url)
    found = doctor()
    assert found["exit"] == 1
    assert found["API"][0]["severity"] == "error"
    assert "nothing answers" in found["API"][0]["found"]
    assert not {"database", "broker", "pipeline"} & found.keys()


def test_a_site_that_is_no_api_is_told_once(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(404, b"<p>not here</p>") as site:
        monkeypatch.setenv("FEEDMILL_API_URL", site)
        (finding,) = doctor()["API"]
    assert finding["severity"] == "error"
    assert finding["advice"] == "correct FEEDMILL_API_URL: something else answers there"


@pytest.mark.parametrize("url", ["nowhere", "http://127.0.0.1:99999", "http://[::1", "http://a b"])
def test_what_is_no_url_of_an_api_is_a_setting_to_correct(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("FEEDMILL_API_URL", url)
    (finding,) = doctor()["settings"]
    assert finding["found"] == "FEEDMILL_API_URL: it is no URL of an API: expected https://HOST[:PORT][/PREFIX]"


async def test_the_management_api_that_tells_nothing_is_told_in_words() -> None:
    async def said(url: str) -> str:
        (finding,) = [finding async for finding in check_management(url, "amqp://guest:guest@127.0.0.1/")]
        assert finding.severity == "warning"
        return finding.found.removeprefix(f"{url}: ")

    assert await said(f"http://127.0.0.1:{NOWHERE}") == "nothing answers there"
    assert await said("nowhere") == "it is no URL"
    with serving(401, b"{}") as site:
        assert await said(site) == "it refuses the user (status 401)"
    for status, body in ((200, b"<p>hello</p>"), (404, b"{}")):
        with serving(status, body) as site:
            assert await said(site) == "what answers there is no management API"
