"""`feedmill fire` against whole services: for real, dry, with a fetcher that is killed, with a writer of before."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from local.addresses import Addresses
from local.demo.demo import SETTINGS
from local.farm import Farm, FeedFormat, FeedKind, FeedSpec
from local.farm.specs import loopback_host
from local.settings import child_environment
from services.admin.registry import NewFeed, add_feed, connect
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import TRIALS
from tests.e2e.test_upgrade import OLD, ROOT, running

pytestmark = pytest.mark.e2e

BEFORE = "27dd5a8a09bca43560e7f107e1830cea3d8d269e"
"""A commit of before dry runs had a queue."""


@dataclass
class Bench:
    """A farm with one feed, and the servers."""

    farm: Farm
    database_url: str
    amqp_url: str

    @property
    def environment(self) -> dict[str, str]:
        return Addresses(self.amqp_url, self.database_url).environment()

    async def feedmill(self, *arguments: str) -> tuple[int, str]:
        """Return the exit code of a command, and what it printed."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "services.cli",
            *arguments,
            env=child_environment(self.environment | SETTINGS | OLD),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(90):
            said, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, said.decode()

    async def fire(self, *options: str) -> dict[str, Any]:
        code, said = await self.feedmill("fire", self.farm.url(self.farm.specs[0]), "--json", *options)
        task: dict[str, Any] = json.loads(said)
        assert code == (task["status"] == "error"), said
        return task

    def count(self, table: str) -> int:
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
            assert row is not None
            return int(row[0])

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(60):
            while not await asyncio.to_thread(condition):
                await asyncio.sleep(0.05)


@pytest.fixture
def bench(amqp_url: str, database_url: str) -> Iterator[Bench]:
    spec = FeedSpec(
        name="feed",
        host=loopback_host(1),
        path="/feed",
        kind=FeedKind.GROWING,
        format=FeedFormat.RSS,
        items=10,
        items_per_wave=5,
        delay_seconds=1.0,
    )
    with Farm([spec]) as farm:
        with connect(database_url) as connection:
            add_feed(connection, NewFeed(farm.url(spec)))
        yield Bench(farm, database_url, amqp_url)


async def test_a_feed_is_fired_dry_and_for_real(bench: Bench) -> None:
    async with running(["fetcher", "writer"], bench.environment, []):
        dry = await bench.fire("--dry-run", "--wait")
        assert (dry["status"], dry["fetched"], dry["new"], len(dry["entries"])) == ("done", 10, 10, 10)
        assert (bench.count("pending_articles"), bench.count("feed_fetch_log")) == (0, 0)
        real = await bench.fire("--wait")
        assert (real["status"], real["new"], real["entries"]) == ("done", 10, None)
        assert bench.count("pending_articles") == 10
        code, said = await bench.feedmill("fire", "1")
        assert code == 1
        assert "was fired within the last minute" in said
        bench.farm.publish()
        code, said = await bench.feedmill("fire", "1", "--dry-run", "--wait")
        assert code == 0, said
        assert "15 entries: 5 new, 0 changed, 10 known" in said
        assert bench.count("pending_articles") == 10


async def test_a_fire_whose_fetcher_is_killed_is_made_by_the_next(bench: Bench) -> None:
    async with running(["fetcher", "writer"], bench.environment, []) as supervisor:
        asked = bench.farm.request_count()
        waiting = asyncio.create_task(bench.fire("--wait"))
        await bench.until(lambda: bench.count("fire_tasks") == 1)
        await bench.until(lambda: bench.farm.request_count() > asked)
        supervisor.kill("fetcher")
        task = await waiting
        assert (task["status"], task["new"]) == ("done", 10)
        assert bench.farm.request_count() == asked + 2
        assert bench.count("pending_articles") == 10


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """Return a directory with the code of the version before."""
    git = ["git", "-C", str(ROOT), "archive", BEFORE, "services", "shared"]
    found = subprocess.run(git, check=False, capture_output=True)
    if found.returncode:
        pytest.skip(f"this clone has no history down to {BEFORE[:8]}: {found.stderr.decode().strip()[:100]}")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(tmp_path / "before", filter="data")
    return tmp_path / "before"


async def test_a_writer_of_before_writes_no_dry_run(bench: Bench, before: Path) -> None:
    async with running(["fetcher"], bench.environment, []):
        async with running(["writer"], bench.environment, [], before):
            dry = await bench.fire("--dry-run")
            async with RabbitMQ(bench.amqp_url, name="test", max_message_bytes=10**6).connect(None) as session:
                async with asyncio.timeout(60):
                    while not await session.count_ready(TRIALS.queue):
                        await asyncio.sleep(0.05)
            real = await bench.fire()
            await bench.until(lambda: bench.count("pending_articles") == 10)
            assert (dry["status"], real["status"]) == ("running", "running")
            assert bench.count("feed_fetch_log") == 1
        async with running(["writer"], bench.environment, []):
            await bench.until(lambda: bench.count("fire_tasks WHERE dry_run AND status = 'done'") == 1)
    assert bench.count("feed_fetch_log") == 1
    assert bench.count("fire_tasks WHERE NOT dry_run AND status = 'running'") == 1, "it ends by its deadline"
