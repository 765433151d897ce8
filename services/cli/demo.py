"""`feedmill demo`: the main job on a farm of feeds on loopback, watched while it runs, and counted at the end."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TextIO
from urllib.parse import quote
from uuid import uuid4

import psycopg
from psycopg import sql

from services.cli.addresses import Addresses, given
from services.cli.demo_count import Count, Snapshot, count, take_snapshot
from services.cli.farm import Farm, demo_specs
from services.cli.registry import NewFeed, add_feed, connect
from services.cli.servers import delete_servers, private_servers
from services.cli.settings import CliSettings, child_environment
from services.cli.supervisor import Supervisor
from services.cli.up import all_processes
from services.writer.migrate import migrate
from shared.broker import Session
from shared.errors import ConfigurationError
from shared.rabbitmq import RabbitMQ
from shared.topology import Topology, build_topology

WAVES = 2
"""How often new articles appear while the demo runs."""

WAVE_SECONDS = 3.0
QUIET_SECONDS = 3.0
"""After the last expected article: time for a duplicate to show itself."""

LONGEST_SECONDS = 90.0
LOOK_SECONDS = 0.25

DELAYS = {"fast_delay_seconds": 1.0, "retry_delay_seconds": 2.0, "message_retry_seconds": 1.0}

SETTINGS = {
    # A day's behaviour within half a minute: every span is shortened, no rule is switched off ...
    "FEEDMILL_FAST_DELAY_SECONDS": str(DELAYS["fast_delay_seconds"]),
    "FEEDMILL_RETRY_DELAY_SECONDS": str(DELAYS["retry_delay_seconds"]),
    "FEEDMILL_MESSAGE_RETRY_SECONDS": str(DELAYS["message_retry_seconds"]),
    "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": "0.05",
    "FEEDMILL_CONNECT_FAILURE_SECONDS": "1",
    "FEEDMILL_THROTTLE_SECONDS": "1",
    "FEEDMILL_FETCH_DEADLINE_SECONDS": "10",
    "FEEDMILL_CLAIM_SECONDS": "15",
    "FEEDMILL_TICK_SECONDS": "0.2",
    "FEEDMILL_MIN_POLL_SECONDS": "1",
    "FEEDMILL_MAX_POLL_SECONDS": "3",
    "FEEDMILL_GONE_SPAN_SECONDS": "1",
    "FEEDMILL_MOVED_SPAN_SECONDS": "2",
    # ... and the farm's own network is the only exemption from the address guard.
    "FEEDMILL_ALLOW_NETWORKS": "127.0.0.0/8",
    "FEEDMILL_FETCH_THREADS": "16",
    "FEEDMILL_METRICS_PORT": "0",
}


@contextmanager
def demo_servers(settings: CliSettings) -> Iterator[tuple[Addresses, Path]]:
    """Yield servers to play on and a directory for the services' logs.

    Given servers are used if there are any; else private ones, thrown away with all they held.
    """
    home = settings.home / "demo"
    home.mkdir(parents=True, exist_ok=True)
    logs = home / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    there = given(settings)
    if there is not None:
        yield there, logs
        return
    directory = home / f"servers-{uuid4().hex[:8]}"
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(delete_servers, directory)
        servers = cleanup.enter_context(private_servers(directory, durable=False))
        yield Addresses(servers.amqp_url, servers.database_url, servers.management_url), logs


@contextmanager
def own_schema(database_url: str) -> Iterator[str]:
    """Yield a URL of the same database with a schema of our own, dropped at the end: no table of anyone is touched."""
    schema = f"feedmill_demo_{uuid4().hex[:8]}"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        try:
            mark = "&" if "?" in database_url else "?"
            yield f"{database_url}{mark}options={quote(f'-csearch_path={schema}')}"
        finally:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


@asynccontextmanager
async def own_queues(amqp_url: str, topology: Topology) -> AsyncIterator[Session]:
    """Yield a session on a broker that has none of our queues; delete those of the demo at the end.

    Raises:
        ConfigurationError: Feedmill's queues are there already; the demo would mix with what they hold.
    """
    broker = RabbitMQ(amqp_url, name="feedmill demo", max_message_bytes=1024)
    async with broker.connect(None) as session:
        for stage in topology.stages:
            if await session.count_ready(stage.queue) is not None:
                raise ConfigurationError(
                    f"the queue {stage.queue!r} exists on the given RabbitMQ, and the demo would mix with it: name"
                    " another vhost in FEEDMILL_AMQP_URL, or unset it to let the demo start servers of its own"
                )
        try:
            yield session
        finally:
            await broker.delete(topology)


class Demo:
    """One run. `snapshot` is what there is to see while it lasts."""

    def __init__(self, addresses: Addresses, logs: Path) -> None:
        self._addresses = addresses
        self._logs = logs
        self._farm = Farm(demo_specs())
        self._ids: dict[str, int] = {}
        self._started = time.monotonic()
        self.snapshot = Snapshot()

    async def run(self) -> Count:
        """Run it to its end and return the count."""
        topology = build_topology(**DELAYS)
        with own_schema(self._addresses.database_url) as database_url, self._farm:
            migrate(database_url)
            self._register(database_url)
            environment = Addresses(self._addresses.amqp_url, database_url).environment() | SETTINGS
            async with own_queues(self._addresses.amqp_url, topology) as session:
                with contextlib.ExitStack() as files:
                    supervisor = Supervisor(
                        all_processes(), child_environment(environment), _LogFiles(self._logs, files).write
                    )
                    async with supervisor.run():
                        await self._play(supervisor, session, topology, database_url)
            return count(self._farm, self._ids, database_url, elapsed=time.monotonic() - self._started)

    def _register(self, database_url: str) -> None:
        with connect(database_url) as connection:
            for spec in self._farm.specs:
                self._ids[spec.name], _ = add_feed(connection, NewFeed(self._farm.url(spec), name=spec.name))

    async def _play(self, supervisor: Supervisor, session: Session, topology: Topology, database_url: str) -> None:
        """Publish the waves, watch until everything expected is there, and a little longer."""
        self._started = time.monotonic()
        complete_since: float | None = None
        while (elapsed := time.monotonic() - self._started) < LONGEST_SECONDS:
            if supervisor.failed.is_set():
                raise ConfigurationError(f"a service refused its configuration: see {self._logs}")
            if self._farm.wave < WAVES and elapsed > WAVE_SECONDS * (self._farm.wave + 1):
                self._farm.publish()
            self.snapshot = await take_snapshot(session, topology, database_url, self._farm, elapsed)
            if not (self._farm.wave == WAVES and self.snapshot.complete):
                complete_since = None
            elif complete_since is None:
                complete_since = elapsed
            elif elapsed - complete_since > QUIET_SECONDS:
                return
            await asyncio.sleep(LOOK_SECONDS)


class _LogFiles:
    """One log file per process."""

    def __init__(self, directory: Path, files: contextlib.ExitStack) -> None:
        self._directory = directory
        self._exit = files
        self._files: dict[str, TextIO] = {}

    def write(self, name: str, line: str) -> None:
        if name not in self._files:
            path = self._directory / f"{name}.log"
            self._files[name] = self._exit.enter_context(path.open("a", encoding="utf-8"))
        self._files[name].write(line + "\n")
        self._files[name].flush()
