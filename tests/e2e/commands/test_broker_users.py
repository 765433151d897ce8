"""Each service has a broker user. Its rights suffice for the whole pipeline, and everything else is refused."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import aio_pika
import httpx
import psycopg
import pytest
from aio_pika.abc import AbstractChannel
from aiormq.exceptions import ChannelAccessRefused

from local.demo.demo import DELAYS, SETTINGS, SHARDS
from local.farm import Farm, FeedKind, FeedSpec, demo_specs
from local.servers import Servers
from local.settings import child_environment
from local.supervisor import Process, Supervisor
from services.admin.registry import NewFeed, add_feed, connect
from shared.broker.port import Outgoing, Publication, Session
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import EXCHANGE, FETCHERS, build_topology, fetch_routing_key
from tests.conftest import ROOT
from tests.e2e.pipeline import Pipeline
from tests.factories import make_job

pytestmark = pytest.mark.e2e

USERS = ("scheduler", "fetcher", "writer", "api", "batch", "command", "scaling")
PASSWORDS = {name: f"secret-of-{name}" for name in USERS}
TOPOLOGY = build_topology(**DELAYS, fetcher_shards=SHARDS)
STAGE, FAST_DELAY = TOPOLOGY.fetcher, TOPOLOGY.fetcher.fast_delay or ""
JOB = fetch_routing_key("a.example", SHARDS)


def feedmill(*arguments: str, **settings: str) -> str:
    return run(0, *arguments, **settings)


def status(**settings: str) -> Any:
    return json.loads(run(1, "status", "--json", **settings))  # 1: no service runs any more


def run(code: int, *arguments: str, **settings: str) -> str:
    command = [sys.executable, "-m", "services.cli", *arguments]
    done = subprocess.run(
        command, env=child_environment(SETTINGS | settings), capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture
def urls(servers: Servers, amqp_url: str, database_url: str, tmp_path: Path) -> dict[str, str]:
    """The broker's URL for each user, once `feedmill migrate` has made them."""
    for name, password in PASSWORDS.items():
        (tmp_path / name).write_text(f"{password}\n", encoding="utf-8")
    given = {
        "FEEDMILL_AMQP_URL": amqp_url,
        "FEEDMILL_DATABASE_URL": database_url,
        "FEEDMILL_MANAGEMENT_URL": servers.management_url,
        "FEEDMILL_BROKER_USERS": str(tmp_path),
        "FEEDMILL_DECLARE_TOPOLOGY": "false",  # as in the environment that it shares with the services
    }
    assert "and these users: api, batch, command, fetcher" in feedmill("migrate", **given)
    parts = urlsplit(amqp_url)
    return {
        name: f"amqp://{name}:{password}@127.0.0.1:{parts.port}{parts.path}" for name, password in PASSWORDS.items()
    }


@asynccontextmanager
async def pipeline_of(
    urls: dict[str, str], database_url: str, scheduler_database_url: str, farm: Farm
) -> AsyncIterator[Pipeline]:
    lines: list[tuple[str, str]] = []
    processes = {
        "scheduler": [Process("scheduler", "scheduler")],
        "fetcher": [Process("fetcher", "fetcher"), Process("fetcher-2", "fetcher")],
        "writer": [Process("writer", "writer")],
    }
    async with AsyncExitStack() as stack:
        for service, some in processes.items():
            database = scheduler_database_url if service == "scheduler" else database_url
            given = {"FEEDMILL_AMQP_URL": urls[service], "FEEDMILL_DATABASE_URL": database}
            environment = child_environment(SETTINGS | given | {"FEEDMILL_DECLARE_TOPOLOGY": "false"})
            supervisor = Supervisor(some, environment, lambda name, line: lines.append((name, line)))
            await stack.enter_async_context(supervisor.run())
        yield Pipeline(farm, supervisor, database_url, lines)


@pytest.fixture
def scheduler_database_url(database_url: str) -> Iterator[str]:
    """The database for the role that docs/how-to/operate.md describes."""
    (granted,) = re.findall(
        r"```sql\n(CREATE ROLE feedmill_scheduler.*?)```", (ROOT / "docs/how-to/operate.md").read_text(), re.DOTALL
    )
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(granted.encode())
        connection.execute("ALTER ROLE feedmill_scheduler PASSWORD 'secret'")
        try:
            yield re.sub("//[^@]+@", "//feedmill_scheduler:secret@", database_url)
        finally:
            connection.execute("DROP OWNED BY feedmill_scheduler; DROP ROLE feedmill_scheduler")


async def test_the_whole_pipeline_works_with_a_user_for_each_service(
    urls: dict[str, str], database_url: str, scheduler_database_url: str, servers: Servers
) -> None:
    crowd = [  # more than one host can take within the hold: some go through fast-delay
        FeedSpec(name=f"crowd-{n}", host="127.0.0.99", path=f"/{n}", kind=FeedKind.GROWING, items=2) for n in range(60)
    ]
    with Farm([*demo_specs(), *crowd]) as farm:
        with connect(database_url) as connection:
            for spec in farm.specs:
                add_feed(connection, NewFeed(farm.url(spec), name=spec.name))
        async with pipeline_of(urls, database_url, scheduler_database_url, farm) as pipeline:
            await pipeline.until_complete()
            farm.publish()
            await pipeline.until_complete()
            given = {"FEEDMILL_AMQP_URL": urls["command"], "FEEDMILL_DATABASE_URL": database_url}
            fire = ("fire", "1", "--dry-run", "--wait")
            assert "0 new" in await asyncio.to_thread(feedmill, *fire, **given, FEEDMILL_DECLARE_TOPOLOGY="false")
            async with RabbitMQ(urls["command"], name="test", max_message_bytes=1000).connect(None) as session:
                nonsense = {
                    queue: Publication(queue, b"no message", EXCHANGE, "") for queue in ("fetcher.01", "writer")
                }
                for publication in nonsense.values():
                    await session.publish(publication)
                async with asyncio.timeout(30):
                    for dead in (STAGE.dead, TOPOLOGY.writer.dead):
                        while not await session.count_ready(dead):
                            await asyncio.sleep(0.1)
    records = [json.loads(line) for _, line in pipeline.lines]
    assert {name for name, line in pipeline.lines if '"owning shards"' in line} == {"fetcher", "fetcher-2"}
    failed = [record["message"] for record in records if record["level"] == "error"]
    assert sorted(message[:40] for message in failed) == [
        "a message failed: not a feed.fetch.v1 me",
        "a message failed: not a feed.fetched.v1 ",
    ]
    assert not [record for record in records if "REFUSED" in json.dumps(record)]
    vhost = urlsplit(urls["fetcher"]).path.removeprefix("/")
    log = servers.rabbitmq.log.read_text(encoding="utf-8", errors="replace")
    assert not [line for line in log.splitlines() if "access_refused" in line and vhost in line]
    # A command is what the API does; so the API's user has to do for it, too.
    given = {"FEEDMILL_AMQP_URL": urls["api"], "FEEDMILL_DATABASE_URL": database_url}
    given["FEEDMILL_DECLARE_TOPOLOGY"] = "false"
    assert status(**given)["queues"][STAGE.dead] == 1
    assert len(json.loads(feedmill("dead", "list", "--json", **given))) == 2
    assert "2" in feedmill("dead", "requeue", "--all", **given)
    given["FEEDMILL_AMQP_URL"] = urls["command"]
    assert status(**given)["queues"][STAGE.dead] is not None
    assert json.loads(feedmill("dead", "list", "--json", **given)) is not None


async def test_each_way_of_a_message_is_open_to_the_service_that_takes_it(urls: dict[str, str]) -> None:
    ways: dict[str, list[Outgoing]] = {
        "scheduler": [Outgoing(make_job(), JOB)],
        "fetcher": [
            Outgoing.after(FAST_DELAY, make_job(), then="fetcher.00"),
            Outgoing.after(STAGE.retry, make_job(), then="fetcher.00"),
            Outgoing.into("fetcher.03", make_job()),
            Outgoing.into(STAGE.dead, make_job()),
        ],
        "writer": [
            Outgoing.after(TOPOLOGY.writer.retry, make_job(), then="writer"),
            Outgoing.into(TOPOLOGY.writer.dead, make_job()),
        ],
        "batch": [Outgoing.into(STAGE.dead, make_job())],
    }
    for user, many in ways.items():
        async with session_of(urls[user]) as session:
            for outgoing in many:
                await session.publish(outgoing.to_publication())
    async with session_of(urls["fetcher"]) as fetcher, session_of(urls["scheduler"]) as scheduler:
        heard: list[bytes] = []
        assert await fetcher.listen(FETCHERS, heard.append, name="fetcher.alive.0b5ba2c4e3a74c65a8b0d6c1c9f7f0aa")
        await scheduler.publish(Publication("", b"the time", FETCHERS, "clock"))
        assert await fetcher.lock("fetcher.00.owner")
        await fetcher.unlock("fetcher.00.owner")
        assert await scheduler.count_ready("fetcher.03") == 1
        assert await fetcher.count_ready("writer") is not None
        for user in ("batch", "command"):  # they empty a shard that nobody owns
            async with session_of(urls[user]) as batch:
                assert await batch.lock("fetcher.03.owner")
                arrived = asyncio.Event()
                await batch.consume("fetcher.03", prefetch=1, deliver=lambda _, arrived=arrived: arrived.set())  # type: ignore[misc]
                await asyncio.wait_for(arrived.wait(), 30)
                await batch.unlock("fetcher.03.owner")
        async with asyncio.timeout(30):
            while not heard:
                await asyncio.sleep(0.02)


@asynccontextmanager
async def session_of(url: str) -> AsyncIterator[Session]:
    async with RabbitMQ(url, name="test", max_message_bytes=10**6).connect(None) as session:
        yield session


Deed = Callable[[AbstractChannel], Awaitable[object]]


def consume(queue: str) -> Deed:
    async def deed(channel: AbstractChannel) -> object:
        return await (await channel.get_queue(queue, ensure=False)).get(fail=False)

    return deed


def publish(exchange: str, key: str) -> Deed:
    async def deed(channel: AbstractChannel) -> object:
        message = aio_pika.Message(b"forged")
        if not exchange:
            return await channel.default_exchange.publish(message, key)
        return await (await channel.get_exchange(exchange, ensure=False)).publish(message, key)

    return deed


def bind(queue: str, key: str) -> Deed:
    async def deed(channel: AbstractChannel) -> object:
        if not queue:
            return await (await channel.declare_queue(exclusive=True)).bind(EXCHANGE, key)
        return await (await channel.get_queue(queue, ensure=False)).bind(EXCHANGE, key)

    return deed


def delete(queue: str) -> Deed:
    return lambda channel: channel.queue_delete(queue)


def purge(queue: str) -> Deed:
    async def deed(channel: AbstractChannel) -> object:
        return await (await channel.get_queue(queue, ensure=False)).purge()

    return deed


def declare(queue: str) -> Deed:
    return lambda channel: channel.declare_queue(queue, durable=True, arguments={"x-queue-type": "quorum"})


FORBIDDEN: dict[str, tuple[str, Deed]] = {
    # What a fetcher that was taken over would like: others' results and dead letters, to hear all, to break things.
    "a fetcher reads results": ("fetcher", consume("writer")),
    "a fetcher reads dead results": ("fetcher", consume(TOPOLOGY.writer.dead)),
    "a fetcher reads dead jobs": ("fetcher", consume(STAGE.dead)),
    "a fetcher hears what all publish": ("fetcher", bind("", "#")),
    "a fetcher hears results": ("fetcher", bind("", "feed.fetched.v1")),
    "a fetcher leads results to a shard": ("fetcher", bind("fetcher.00", "feed.fetched.v1")),
    "a fetcher writes to any queue": ("fetcher", publish("", "writer.dead")),
    "a fetcher writes straight to results": ("fetcher", publish("", "writer")),
    "a fetcher issues feeds": ("fetcher", publish(EXCHANGE, JOB)),
    "a fetcher buries results": ("fetcher", publish(EXCHANGE, TOPOLOGY.writer.dead)),
    "a fetcher uses the writer's retry": ("fetcher", publish(TOPOLOGY.writer.retry, "writer")),
    "a fetcher deletes results": ("fetcher", delete("writer")),
    "a fetcher deletes a shard": ("fetcher", delete("fetcher.00")),
    "a fetcher empties results": ("fetcher", purge("writer")),
    "a fetcher declares a queue for good": ("fetcher", declare("fetcher.99")),
    "a scheduler reads jobs": ("scheduler", consume("fetcher.00")),
    "a scheduler reads results": ("scheduler", consume("writer")),
    "a scheduler forges results": ("scheduler", publish(EXCHANGE, "feed.fetched.v1")),
    "a scheduler hears what all publish": ("scheduler", bind("fetcher.00", "#")),
    "a writer reads jobs": ("writer", consume("fetcher.00")),
    "a writer issues feeds": ("writer", publish(EXCHANGE, JOB)),
    "a writer forges results": ("writer", publish(EXCHANGE, "feed.fetched.v1")),
    "a batch empties a queue": ("batch", purge("writer")),
    "a batch reads results": ("batch", consume("writer")),
    "a batch issues feeds": ("batch", publish(EXCHANGE, JOB)),
    "the API reads jobs": ("api", consume("fetcher.00")),
    "the API reads results": ("api", consume("writer")),
    "the API hears what all publish": ("api", bind("fetcher.00", "#")),
    "the API issues feeds": ("api", publish(EXCHANGE, JOB)),
    "the API empties a queue": ("api", purge("fetcher.00")),
    "whoever counts reads": ("scaling", consume("writer")),
    "a command deletes": ("command", delete("writer")),
}


async def test_what_is_not_of_its_room_is_refused(urls: dict[str, str]) -> None:
    permitted = []
    for what, (user, deed) in FORBIDDEN.items():
        connection = await aio_pika.connect(urls[user])
        async with connection:
            channel = await connection.channel(publisher_confirms=True)
            try:
                await asyncio.wait_for(deed(channel), 10)
            except ChannelAccessRefused:
                continue
        permitted.append(what)
    assert permitted == []


async def test_users_can_not_enter_the_management_api_but_to_count(urls: dict[str, str], servers: Servers) -> None:
    vhost = quote(urlsplit(urls["fetcher"]).path.removeprefix("/"), safe="")
    async with httpx.AsyncClient(trust_env=False, base_url=servers.management_url) as client:
        for name, password in PASSWORDS.items():
            answer = await client.get(f"/api/queues/{vhost}", auth=(name, password))
            assert (answer.status_code == 200) == (name == "scaling"), name
