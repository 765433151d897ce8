"""A broker that stands still for longer than its heartbeats, and goes on: every service survives, and goes on too."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable

import psycopg
import pytest

from local.servers import Servers
from tests.e2e.fetcher.counting_server import counting_server
from tests.e2e.test_services import running

pytestmark = pytest.mark.e2e

FROZEN_SECONDS = 12.0
"""Longer than three heartbeats and a bit, after which the library gives a connection up."""


def test_all_services_live_on_when_the_broker_hangs_for_longer_than_its_heartbeats(
    amqp_url: str, database_url: str, servers: Servers
) -> None:
    settings = {
        "FEEDMILL_AMQP_URL": f"{amqp_url}?heartbeat=2",
        "FEEDMILL_DATABASE_URL": database_url,
        "FEEDMILL_TICK_SECONDS": "0.2",
        "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": "0.01",
        "FEEDMILL_ALLOW_NETWORKS": "127.0.0.0/8",
    }
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(counting_server())
        services = [stack.enter_context(running(name, **settings)) for name in ("scheduler", "fetcher", "writer")]
        add_feeds(database_url, server.url, 0, 20)
        until(lambda: count_fetched(database_url) == 20)
        (node, *_) = servers.rabbitmq.process_ids()
        os.kill(node, signal.SIGSTOP)
        try:
            add_feeds(database_url, server.url, 20, 20)
            time.sleep(FROZEN_SECONDS)
            assert [service.process.poll() for service in services] == [None, None, None]
        finally:
            os.kill(node, signal.SIGCONT)
        until(lambda: count_fetched(database_url) == 40)
        assert [service.stop() for service in services] == [0, 0, 0]


def add_feeds(database_url: str, url: str, first: int, number: int) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            """
            INSERT INTO feeds (url, politeness_group)
            SELECT format('%%s/feed/%%s', %s::text, n), format('h%%s.example', n)
            FROM generate_series(%s::int, %s::int) AS n
            """,
            [url, first, first + number - 1],
        )


def count_fetched(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(DISTINCT feed_id) FROM feed_fetch_log").fetchone()
    assert row is not None
    return int(row[0])


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
