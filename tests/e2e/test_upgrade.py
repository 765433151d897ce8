"""Services are replaced while they work: by others of another version, and onto another broker. Nothing is lost."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from local.addresses import Addresses
from local.demo.demo import SETTINGS
from local.farm import Farm
from local.servers import Servers
from local.settings import child_environment
from local.supervisor import Process, Supervisor
from services.admin.registry import NewFeed, add_feed, connect
from shared.broker.port import Publication
from shared.broker.rabbitmq import RabbitMQ
from shared.database.migrate import DIRECTORY, migrate
from shared.database.postgres import SCHEMA_VERSION
from shared.politeness import politeness_group
from shared.wire.results import FeedFetched
from tests.e2e.pipeline import Pipeline, growing_specs
from tests.factories import make_entry, make_result

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parent.parent.parent
RELEASED = "7971691eb29afe8f87197456fc63dbdd204d08ce"
"""A commit of before the queues of jobs were shards, before unknown fields were left out, and three migrations back."""

SERVICES = ("scheduler", "fetcher", "writer")
WITH_ENRICHER = {"FEEDMILL_ENRICHER": "true"}  # of which an older version knows nothing
OLD = {"FEEDMILL_CLAIM_SECONDS": "8"}  # what only old fetchers would have taken comes again as soon


@asynccontextmanager
async def running(
    names: Iterable[str], environment: dict[str, str], lines: list[tuple[str, str]], code: Path = ROOT
) -> AsyncIterator[Supervisor]:
    """Run services of the code in a directory."""
    settings = child_environment(environment | SETTINGS | OLD | {"PYTHONPATH": str(code), "PYTHONSAFEPATH": "1"})
    processes = [Process(name, name) for name in names]
    supervisor = Supervisor(processes, settings, lambda name, line: lines.append((name, line)))
    async with supervisor.run():
        yield supervisor


def register(farm: Farm, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:  # by hand: commands need the tables of their own version
        for spec in farm.specs:
            url = farm.url(spec)
            connection.execute(
                "INSERT INTO feeds (url, name, politeness_group) VALUES (%s, %s, %s)",
                [url, spec.name, politeness_group(url)],
            )


def faults(lines: Sequence[tuple[str, str]]) -> list[str]:
    """Return the errors and tracebacks in the log."""
    return [line for _, line in lines if '"level": "ERROR"' in line or "Traceback" in line]


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """Return a directory with the code of an earlier version, out of the history."""
    git = ["git", "-C", str(ROOT), "archive", RELEASED, "services", "shared"]
    found = subprocess.run(git, check=False, capture_output=True)
    if found.returncode:
        pytest.skip(f"this clone has no history down to {RELEASED[:8]}: {found.stderr.decode().strip()[:100]}")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(tmp_path / "released", filter="data")
    return tmp_path / "released"


@pytest.mark.parametrize("direction", ["upgrade", "rollback"])
async def test_two_versions_side_by_side_lose_nothing(
    direction: str, released: Path, amqp_url: str, database_url: str
) -> None:
    """All of one version, then both, then all of the other: as when Deployments roll together."""
    before, after = (released, ROOT) if direction == "upgrade" else (ROOT, released)
    names = {released: SERVICES, ROOT: (*SERVICES, "enricher")}
    environment, lines = Addresses(amqp_url, database_url).environment() | WITH_ENRICHER, list[tuple[str, str]]()
    with Farm(growing_specs(60)) as farm:
        register(farm, database_url)
        async with AsyncExitStack() as later:
            async with running(names[before], environment, lines, before) as supervisor:
                pipeline = Pipeline(farm, supervisor, database_url, lines)
                await pipeline.until_started(0.2)
                await later.enter_async_context(running(names[after], environment, lines, after))
                await pipeline.until_started(0.5)
                farm.publish()
                await pipeline.until_started(0.7)
            await pipeline.until_complete()
            farm.publish()
            await pipeline.until_complete()
    assert any("newer than this code's" in line for _, line in lines)  # the old one did run
    assert faults(lines) == []


async def test_results_of_a_later_fetcher_are_written_without_what_an_older_writer_does_not_know(
    amqp_url: str, database_url: str
) -> None:
    with connect(database_url) as connection:
        id_, _ = add_feed(connection, NewFeed("http://news.example/feed"))
    body = json.loads(make_result(feed_id=id_, entries=(make_entry(1), make_entry(2))).model_dump_json())
    body["since_tomorrow"] = 1
    body["entries"][0]["summary"] = {"of": "tomorrow"}
    message = Publication("writer", json.dumps(body).encode(), exchange="", type=FeedFetched.KIND)
    lines: list[tuple[str, str]] = []
    async with (
        running(["writer"], Addresses(amqp_url, database_url).environment(), lines),
        RabbitMQ(amqp_url, name="test", max_message_bytes=10**6).connect(None) as session,
        asyncio.timeout(60),
    ):
        while await session.count_ready("writer") is None:
            await asyncio.sleep(0.05)
        await session.publish(message)
        while count(database_url, "pending_articles") < 2:
            await asyncio.sleep(0.05)
        assert await session.count_ready("writer.dead") == 0
    assert any("entries.summary" in line for _, line in lines)


def count(database_url: str, table: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
        assert row is not None
        return int(row[0])


async def test_new_services_wait_for_the_migration_of_a_schema_that_is_older(
    amqp_url: str, servers: Servers, tmp_path: Path
) -> None:
    name = f"old_{uuid4().hex[:12]}"
    servers.postgres.create_database(name)
    database_url, lines = servers.postgres.database_url(name), list[tuple[str, str]]()
    for path in sorted(DIRECTORY.glob("*.sql"))[:-1]:
        shutil.copy(path, tmp_path)
    migrate(database_url, tmp_path)
    with Farm(growing_specs(5)) as farm:
        register(farm, database_url)
        async with running(SERVICES, Addresses(amqp_url, database_url).environment(), lines) as supervisor:
            pipeline = Pipeline(farm, supervisor, database_url, lines)
            await pipeline.until(lambda: any(f"needs {SCHEMA_VERSION}" in line for _, line in lines))
            assert count(database_url, "feed_fetch_log") == 0
            await asyncio.to_thread(migrate, database_url)
            await pipeline.until_complete()
    servers.postgres.drop_database(name)


async def test_a_move_to_another_broker_loses_nothing_that_waits_in_the_old_one(
    amqp_url: str, database_url: str, servers: Servers
) -> None:
    """docs/how-to/operate.md: services go to the new one; a writer stays at the old until its results are written."""
    vhost, lines = f"new-{uuid4().hex[:12]}", list[tuple[str, str]]()
    servers.rabbitmq.create_vhost(vhost)
    old = Addresses(amqp_url, database_url).environment()
    new = Addresses(servers.rabbitmq.amqp_url(vhost), database_url).environment()
    broker = RabbitMQ(amqp_url, name="test", max_message_bytes=10**6)
    with Farm(growing_specs(40)) as farm:
        register(farm, database_url)
        async with (
            running(["scheduler", "fetcher"], old, lines),
            broker.connect(None) as session,
            asyncio.timeout(60),
        ):
            while (await session.count_ready("writer") or 0) < 10:
                await asyncio.sleep(0.05)
        farm.publish()
        async with running(SERVICES, new, lines) as supervisor, running(["writer"], old, lines):
            pipeline = Pipeline(farm, supervisor, database_url, lines)
            await pipeline.until_complete()
            async with broker.connect(None) as session:
                assert await session.count_ready("writer") == 0
    servers.rabbitmq.delete_vhost(vhost)
    assert faults(lines) == []
