"""`feedmill batch` as a cron job runs it: whole runs as processes against real servers and real feeds."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import dict_row

from services.cli.demo import SETTINGS
from services.cli.farm import Farm, FeedKind, FeedSpec
from services.cli.registry import NewFeed, add_feed, connect
from services.cli.servers import Servers, delete_servers
from services.cli.settings import child_environment
from shared.rabbitmq import RabbitMQ
from tests.conftest import ROOT
from tests.e2e.counting_server import counting_server
from tests.e2e.process_watch import remaining_processes

pytestmark = pytest.mark.e2e

RARELY = {"FEEDMILL_MIN_POLL_SECONDS": "600", "FEEDMILL_MAX_POLL_SECONDS": "3600"}
"""What a run has fetched is not due again while the test looks."""


class Bench:
    """Given servers, and runs over them."""

    def __init__(self, amqp_url: str, database_url: str) -> None:
        self.amqp_url = amqp_url
        self.database_url = database_url

    def environment(self, **settings: str) -> dict[str, str]:
        given = {"FEEDMILL_AMQP_URL": self.amqp_url, "FEEDMILL_DATABASE_URL": self.database_url}
        return child_environment(SETTINGS | RARELY | given | settings)

    @contextmanager
    def running(self, *arguments: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "services.cli", "batch", "--json", *arguments],
            env=self.environment(**settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    def run(self, *arguments: str, code: int = 0, **settings: str) -> dict[str, Any]:
        """Do a whole run and return its summary."""
        with self.running(*arguments, **settings) as process:
            return end_of(process, code)

    def register(self, *urls: str) -> None:
        with connect(self.database_url) as connection:
            for url in urls:
                add_feed(connection, NewFeed(url))

    def rows(self, query: str) -> list[dict[str, Any]]:
        with psycopg.connect(self.database_url, row_factory=dict_row) as connection:
            return connection.execute(query.encode()).fetchall()

    def delivered(self) -> list[tuple[str, str]]:
        return sorted((row["url"], row["title"]) for row in self.rows("SELECT url, title FROM pending_articles"))

    def brought(self) -> int:
        return int(self.rows("SELECT coalesce(sum(items_new), 0) AS n FROM feed_fetch_log")[0]["n"])

    def claims(self) -> int:
        """Return how many feeds are claimed."""
        return int(self.rows("SELECT count(*) AS n FROM feeds WHERE claim_id IS NOT NULL")[0]["n"])

    def due(self) -> int:
        return int(self.rows("SELECT count(*) AS n FROM feeds WHERE enabled AND due_at <= now()")[0]["n"])

    def count_ready(self, queue: str) -> int | None:
        async def count() -> int | None:
            async with RabbitMQ(self.amqp_url, name="test", max_message_bytes=1000).connect(None) as session:
                return await session.count_ready(queue)

        return asyncio.run(count())


def end_of(process: subprocess.Popen[str], code: int = 0) -> dict[str, Any]:
    said, log = process.communicate(timeout=60)
    assert process.returncode == code, log
    assert "Traceback" not in log, log
    return json.loads(said)  # type: ignore[no-any-return]


@pytest.fixture
def bench(amqp_url: str, database_url: str) -> Bench:
    return Bench(amqp_url, database_url)


def until(condition: Callable[[], bool], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


@contextmanager
def farm_of(bench: Bench, specs: Sequence[FeedSpec]) -> Iterator[Farm]:
    with Farm(specs) as farm:
        bench.register(*(farm.url(spec) for spec in farm.specs))
        yield farm


def spec(name: str, kind: FeedKind = FeedKind.PLAIN, host: int = 2, **fields: Any) -> FeedSpec:
    return FeedSpec(name=name, host=f"127.0.0.{host}", path=f"/{name}", kind=kind, items=5, **fields)


def test_all_that_is_due_is_fetched_once_and_failures_are_tried_again_once(bench: Bench) -> None:
    specs = [
        *(spec(f"plain-{n}", host=2 + n % 3) for n in range(12)),
        spec("broken", FeedKind.ERROR_500, host=5),
        spec("recovers", FeedKind.RECOVERS, host=6, failures=1),
        spec("refused-a", FeedKind.REFUSED, host=7),
        spec("refused-b", FeedKind.REFUSED, host=7),
        spec("missing", FeedKind.NOT_FOUND, host=8),
    ]
    with farm_of(bench, specs) as farm:
        found = bench.run("--writer", FEEDMILL_CONNECT_FAILURE_SECONDS="60")
        expected = sorted(farm.expected_articles().items())
        requests = Counter(record.path for record in farm.access_log())
    assert bench.delivered() == expected
    assert found["new_articles"] == bench.brought() == len(expected)
    assert (found["claimed"], found["given_back"], found["broken"], found["unwritten"]) == (17, 0, 0, 0)
    # Of the two at the host that is down one was asked, and is given up; the other one stays as due as it was.
    assert found["outcomes"] == {"fetched": 13, "soft_error": 3, "gave_up": 2, "hard_error": 1}
    assert (found["skipped"], found["retried"]) == (1, 2)
    assert (requests["/broken"], requests["/recovers"], requests["/plain-0"]) == (2, 2, 1)
    assert (bench.claims(), bench.due()) == (0, 1)
    failed = bench.rows("SELECT failures, next_fetch_at > now() AS is_later FROM feeds WHERE url LIKE '%/broken'")
    assert failed == [{"failures": 1, "is_later": True}]
    reasons = bench.rows("SELECT count(*) AS n FROM feed_fetch_log WHERE NOT final")
    assert reasons[0]["n"] >= 3
