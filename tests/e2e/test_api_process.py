"""The API as a process: how it begins, how it ends, and how it is while its servers are away or it is under load."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from local.servers.identity import choose_ports
from services.admin.registry import NewFeed, add_feed, connect
from tests.e2e.test_services import Service, running

pytestmark = pytest.mark.e2e

PATIENCE_SECONDS = 30.0
NO_BROKER = "amqp://user:secret@127.0.0.1:1/"


@contextlib.contextmanager
def running_api(database_url: str, port: int = 0, **settings: str) -> Iterator[tuple[Service, httpx.Client]]:
    given = {
        "FEEDMILL_DATABASE_URL": database_url,
        "FEEDMILL_AMQP_URL": NO_BROKER,
        "FEEDMILL_API_PORT": str(port),
        "FEEDMILL_API_OPEN": "true",
    }
    with running("api", **(given | settings)) as api:
        metrics = api.wait_for("started")["metrics"]
        address = api.wait_for("listening")["api"].removesuffix("/api")
        threading.Thread(target=api.process.stderr.read, daemon=True).start()  # type: ignore[union-attr]  # it is a pipe
        with httpx.Client(base_url=address, trust_env=False, timeout=PATIENCE_SECONDS) as client:
            client.headers["x-metrics"] = metrics
            yield api, client


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_ready(client: httpx.Client) -> bool:
    return client.get("/readyz").status_code == 200


def refuses(client: httpx.Client) -> bool:
    """Return whether new connections are refused."""
    with (
        contextlib.suppress(ConnectionRefusedError),
        socket.create_connection((client.base_url.host, client.base_url.port or 80)),
    ):
        return False
    return True


def end(api: Service) -> int:
    api.process.send_signal(signal.SIGTERM)
    return api.process.wait(timeout=20)


def metrics_of(client: httpx.Client) -> list[str]:
    said = client.get(client.headers["x-metrics"]).text
    return [line for line in said.splitlines() if line.startswith("feedmill_api_")]


# A list of feeds takes until there is a row in `released`.
HOLD = """
CREATE TABLE released (at timestamptz);
CREATE FUNCTION held() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    WHILE NOT EXISTS (SELECT FROM released) LOOP PERFORM pg_sleep(0.02); END LOOP;
    RETURN 1;
END $$;
ALTER TABLE feeds RENAME TO all_feeds;
CREATE VIEW feeds AS SELECT all_feeds.* FROM (SELECT held() AS one OFFSET 0) AS h, all_feeds WHERE h.one = 1;
"""


def test_on_sigterm_it_takes_no_more_requests_and_finishes_the_one_that_runs(database_url: str) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://a.example/feed"))
    with (
        running_api(database_url) as (api, client),
        psycopg.connect(database_url, autocommit=True) as database,
        ThreadPoolExecutor() as pool,
    ):
        until(lambda: is_ready(client))
        database.execute(HOLD)
        asked = pool.submit(client.get, "/api/feeds")
        until(lambda: "feedmill_api_requests_active 1.0" in metrics_of(client))
        api.process.send_signal(signal.SIGTERM)
        until(lambda: refuses(client))
        assert not asked.done()
        database.execute("INSERT INTO released VALUES (now())")
        assert asked.result(PATIENCE_SECONDS).status_code == 200
        assert api.process.wait(timeout=20) == 0


def test_a_database_that_is_away_at_the_start_makes_it_not_ready_and_each_request_says_so() -> None:
    with running_api("postgresql://user:secret@127.0.0.1:1/x") as (api, client):
        assert client.get("/healthz").json() == {"ok": True, "failures": []}
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (503, {"ok": False, "failures": ["database"]})
        answer = client.get("/api/feeds")
        assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
        assert "secret" not in answer.text
        assert end(api) == 0


def test_without_the_broker_feeds_can_be_listed(database_url: str) -> None:
    with running_api(database_url) as (api, client):
        until(lambda: is_ready(client))
        assert client.get("/api/feeds").json()
        assert end(api) == 0


def test_two_replicas_give_the_same_answers(database_url: str) -> None:
    with connect(database_url) as connection:
        for number in range(5):
            add_feed(connection, NewFeed(f"http://h{number}.example/feed"))
    with running_api(database_url) as (_, one), running_api(database_url) as (_, other):
        until(lambda: is_ready(one) and is_ready(other))
        first = one.get("/api/feeds", params={"limit": 2}).json()
        rest = other.get("/api/feeds", params={"limit": 9, "cursor": first["next"]}).json()
        ids = [feed["id"] for feed in first["items"] + rest["items"]]
        assert ids == [feed["id"] for feed in one.get("/api/feeds").json()["items"]]
        assert len(ids) == 5


def test_killed_under_load_it_is_there_again_at_its_port(database_url: str) -> None:
    (port,) = choose_ports([0])
    statuses: list[int | str] = []
    enough = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            while not enough.is_set():
                try:
                    statuses.append(client.get("/api/feeds").status_code)
                except httpx.TransportError:
                    statuses.append("gone")
                    enough.wait(0.02)

    with ThreadPoolExecutor(4) as pool:
        try:
            with running_api(database_url, port) as (api, client):
                until(lambda: is_ready(client))
                _ = [pool.submit(ask) for _ in range(4)]
                until(lambda: statuses.count(200) > 50)
                api.process.kill()
                api.process.wait()
            until(lambda: "gone" in statuses)
            with running_api(database_url, port) as (api, client):
                until(lambda: is_ready(client))
                before = len(statuses)
                until(lambda: statuses[before:].count(200) > 50)
                since = statuses[before:]
        finally:
            enough.set()
    assert set(statuses) <= {200, 503, "gone"}
    assert set(since) == {200}


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def test_memory_and_the_number_of_series_stay_flat(database_url: str) -> None:
    with running_api(database_url) as (api, client):
        until(lambda: is_ready(client))

        def ask(requests: int, name: str) -> None:
            for number in range(requests):
                assert client.get("/api/feeds" if number % 4 == 0 else f"/api/{name}/{number}").status_code < 500

        ask(300, "warm")
        series, memory = len(metrics_of(client)), resident_bytes(api.process.pid)
        ask(1200, "nothing")
        assert len(metrics_of(client)) == series
        assert resident_bytes(api.process.pid) - memory < 8 * 1024 * 1024


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"FEEDMILL_API_HOST": "192.0.2.1", "FEEDMILL_API_OPEN": ""}, "FEEDMILL_API_HOST"),
        ({"FEEDMILL_API_PORT": "70000"}, "FEEDMILL_API_PORT"),
        ({"FEEDMILL_API_HOST": "0.0.0.0", "FEEDMILL_API_OPEN": "true"}, "FEEDMILL_API_OPEN"),
    ],
)
def test_a_configuration_that_cannot_work_is_exit_78_and_a_sentence(settings: dict[str, str], complaint: str) -> None:
    with running("api", **({"FEEDMILL_API_PORT": "0"} | settings)) as api:
        _, said = api.process.communicate(timeout=20)
        assert api.process.returncode == 78
    assert complaint in said
    assert "Traceback" not in said
