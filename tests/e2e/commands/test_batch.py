"""`feedmill batch` as a cron job runs it: whole runs as processes against real servers and real feeds."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import dict_row

from local.demo.demo import SETTINGS
from local.farm import Farm, FeedKind, FeedSpec
from local.servers import Servers
from local.settings import child_environment
from services.admin.registry import NewFeed, add_feed, connect
from shared.broker.rabbitmq import RabbitMQ
from tests.e2e.broker_control import BrokerControl
from tests.e2e.fetcher.counting_server import counting_server
from tests.e2e.process_watch import remaining_processes

pytestmark = pytest.mark.e2e

RARELY = {
    "FEEDMILL_MIN_POLL_SECONDS": "600",
    "FEEDMILL_MAX_POLL_SECONDS": "3600",
    "FEEDMILL_CLAIM_SECONDS": "600",
}
"""A fetched feed does not become due again during the test, and no claim expires on a busy machine."""


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

    def run(self, *arguments: str, **settings: str) -> dict[str, Any]:
        """Do a whole run and return its summary."""
        with self.running(*arguments, **settings) as process:
            return end_of(process)

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
    said, log = process.communicate(timeout=100)
    assert process.returncode == code, log
    assert "Traceback" not in log, log
    return json.loads(said)  # type: ignore[no-any-return]


@pytest.fixture
def bench(amqp_url: str, database_url: str) -> Bench:
    return Bench(amqp_url, database_url)


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
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
        interval = {"FEEDMILL_HOST_MIN_INTERVAL_SECONDS": "0.25"}
        found = bench.run("--writer", FEEDMILL_CONNECT_FAILURE_SECONDS="60", **interval)
        expected = sorted(farm.expected_articles().items())
        requests = Counter(record.path for record in farm.access_log())
        moments = sorted(record.at for record in farm.access_log() if record.host == "127.0.0.2")
    assert bench.delivered() == expected
    assert found["new_articles"] == bench.brought() == len(expected)
    assert (found["claimed"], found["given_back"], found["broken"], found["unwritten"]) == (17, 0, 0, 0)
    # Of the two at the host that is down one was asked, and is given up; the other one stays as due as it was.
    assert found["outcomes"] == {"fetched": 13, "soft_error": 3, "gave_up": 2, "hard_error": 1}
    assert (found["skipped"], found["retried"]) == (1, 2)
    assert (requests["/broken"], requests["/recovers"], requests["/plain-0"]) == (2, 2, 1)
    assert (bench.claims(), bench.due()) == (0, 1)
    # They are seen to arrive, which on a busy machine is later than they left.
    assert len(moments) == 4
    assert moments[-1] - moments[0] > 3 * 0.25 - 0.2
    assert min(after - before for before, after in pairwise(moments)) > 0.05
    failed = bench.rows("SELECT failures, next_fetch_at > now() AS is_later FROM feeds WHERE url LIKE '%/broken'")
    assert failed == [{"failures": 1, "is_later": True}]
    reasons = bench.rows("SELECT count(*) AS n FROM feed_fetch_log WHERE NOT final")
    assert reasons[0]["n"] >= 3
    (recorded,) = bench.rows("SELECT summary, seconds FROM batch_runs")
    assert recorded["seconds"] > 0
    assert {name: recorded["summary"][name] for name in ("claimed", "new_articles", "outcomes")} == {
        name: found[name] for name in ("claimed", "new_articles", "outcomes")
    }


def test_a_run_that_is_killed_loses_nothing_and_the_next_one_completes_it(bench: Bench) -> None:
    specs = [spec(f"feed-{n}", host=2 + n % 6, delay_seconds=0.1) for n in range(60)]
    settings = {"FEEDMILL_FETCH_THREADS": "6", "FEEDMILL_FETCHER_PREFETCH": "24"}
    with farm_of(bench, specs) as farm:
        with bench.running(**settings) as process:
            until(lambda: farm.request_count() >= 15)
            process.kill()
        killed = bench.claims()
        passed_on = bench.count_ready("writer") or 0
        assert 0 < passed_on < killed < 60, "memory is bounded: not all were claimed"
        second = bench.run("--writer", **settings)
        assert second["claimed"] == 60 - killed, "the claims of the other one are alive"
        lost = bench.claims()
        assert lost == killed - passed_on
        with psycopg.connect(bench.database_url) as connection:
            connection.execute("UPDATE feeds SET claim_expires_at = now() WHERE claim_id IS NOT NULL")
        third = bench.run("--writer", **settings)
        assert third["claimed"] == third["attempts"] == lost
        assert bench.delivered() == sorted(farm.expected_articles().items())
        assert bench.brought() == len(farm.expected_articles())
    assert (bench.claims(), bench.due()) == (0, 0)


@pytest.mark.parametrize("by_deadline", [False, True])
def test_on_sigterm_and_at_the_deadline_what_runs_is_passed_on_and_the_rest_is_given_back(
    bench: Bench, by_deadline: bool
) -> None:
    arguments = ["--most-seconds", "4"] if by_deadline else []
    with counting_server() as server:
        bench.register(*(f"{server.url}/hang/{n}" for n in range(20)))
        with bench.running(*arguments, FEEDMILL_FETCHER_PREFETCH="8") as process:
            until(lambda: server.hanging == 2)
            if not by_deadline:
                process.send_signal(signal.SIGTERM)
            until(lambda: bench.due() == 18)
            assert process.poll() is None
            server.release()
            found = end_of(process, 0 if by_deadline else 130)
        assert server.requests.total() == 2
    assert (found["claimed"], found["given_back"], found["outcomes"]) == (8, 6, {"fetched": 2})
    assert (bench.claims(), bench.due(), bench.count_ready("writer")) == (2, 18, 2)


def test_two_runs_at_once_share_the_feeds_and_keep_the_distance_each(bench: Bench) -> None:
    interval = 0.1
    specs = [spec(f"feed-{n}", host=2 + n % 2) for n in range(20)]
    settings = {"FEEDMILL_FETCHER_PREFETCH": "4", "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": str(interval)}
    with farm_of(bench, specs) as farm:
        with bench.running(**settings) as one, bench.running(**settings) as other:
            found = [end_of(one), end_of(other)]
        requests = Counter(record.path for record in farm.access_log())
        assert set(requests.values()) == {1}
        assert len(requests) == sum(run["claimed"] for run in found) == 20
        assert max(load.peak_in_flight for load in farm.host_loads().values()) <= 4, "two of each"
    assert bench.count_ready("writer") == 20


def test_sessions_that_are_lost_in_the_middle_are_made_anew(bench: Bench, servers: Servers) -> None:
    specs = [spec(f"feed-{n}", host=2 + n % 3, delay_seconds=0.1) for n in range(30)]
    control = BrokerControl(servers)
    with farm_of(bench, specs) as farm, bench.running(FEEDMILL_FETCHER_PREFETCH="12") as process:
        until(lambda: farm.request_count() >= 5)
        assert control.close_connections(bench.amqp_url, "feedmill batch", kill=True) == 2
        until(lambda: farm.request_count() >= 15)
        control.close_connections(bench.amqp_url, "feedmill batch")  # which may just be connecting
        found = end_of(process)
        assert farm.request_count() == 30, "what was fetched already is only published"
    assert found["outcomes"] == {"fetched": 30}
    results = bench.count_ready("writer")
    assert results is not None
    assert results >= 30, "a result whose confirm was lost comes twice, and is written once"


def test_nothing_due_is_a_success_and_servers_or_tables_that_are_not_there_are_one_sentence(
    bench: Bench, servers: Servers
) -> None:
    found = bench.run()
    assert (found["claimed"], found["attempts"], found["outcomes"], found["new_articles"]) == (0, 0, {}, None)

    bare = f"bare_{uuid4().hex[:8]}"
    servers.postgres.create_database(bare)
    for settings, sentence in (
        ({"FEEDMILL_AMQP_URL": "amqp://user:secret@127.0.0.1:1/"}, "cannot connect to amqp://"),
        ({"FEEDMILL_DATABASE_URL": "postgresql://user:secret@127.0.0.1:1/x"}, "cannot use postgresql://"),
        ({"FEEDMILL_DATABASE_URL": servers.postgres.database_url(bare)}, "feedmill migrate"),
    ):
        with bench.running(**settings) as process:
            said, log = process.communicate(timeout=30)
        assert (process.returncode, said) == (1, "")
        last = log.strip().splitlines()[-1]
        assert last.startswith("feedmill: ")
        assert sentence in last
        assert "secret" not in log
        assert "Traceback" not in log


def test_on_a_laptop_add_batch_and_list_are_all_it_takes(home: Path) -> None:
    environment = child_environment({"FEEDMILL_HOME": str(home), "FEEDMILL_ALLOW_NETWORKS": "127.0.0.0/8"})

    def feedmill(*arguments: str) -> str:
        answer = subprocess.run(
            [sys.executable, "-m", "services.cli", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    one = spec("site.xml")
    with Farm([one]) as farm:
        assert "added as feed 1" in feedmill("feeds", "add", farm.url(one))
        said = feedmill("batch")
        assert said.startswith("1 feeds claimed, 1 attempts, 5 entries passed on, 5 articles new; ")
        listed = json.loads(feedmill("pending", "list", "--json"))
        assert {article["url"] for article in listed} == set(farm.expected_articles())
    assert remaining_processes(home) == []
