"""The demo's own servers, database schema and queues: it touches no data of others."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO
from urllib.parse import quote
from uuid import uuid4

from psycopg import sql

from local.addresses import Addresses, configured
from local.servers import Servers, throw_away_servers
from local.settings import LocalSettings
from services.admin.registry import connect
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import Topology
from shared.errors import ConfigurationError


@dataclass(frozen=True)
class Sandbox:
    """The servers, and a directory for the services' logs. `servers` is None if the environment names the servers."""

    addresses: Addresses
    servers: Servers | None
    logs: Path


@contextmanager
def open_sandbox(settings: LocalSettings) -> Iterator[Sandbox]:
    """Yield a sandbox on the servers of the environment, else on private ones that are deleted at the end."""
    home = settings.home / "demo"
    logs = home / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    there = configured(settings)
    if there is not None:
        yield Sandbox(there, None, logs)
        return
    with throw_away_servers(home, durable=False) as servers:
        yield Sandbox(Addresses.of(servers), servers, logs)


@contextmanager
def own_schema(sandbox: Sandbox) -> Iterator[str]:
    """Yield the URL of a new schema in the sandbox's database; at the end drop it, unless the servers are private."""
    database_url = sandbox.addresses.database_url
    schema = f"feedmill_demo_{uuid4().hex[:8]}"
    with connect(database_url) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    try:
        mark = "&" if "?" in database_url else "?"
        yield f"{database_url}{mark}options={quote(f'-csearch_path={schema}')}"
    finally:
        if sandbox.servers is None:
            with connect(database_url) as connection:
                connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


@asynccontextmanager
async def own_queues(sandbox: Sandbox, topology: Topology) -> AsyncIterator[RabbitMQ]:
    """Yield a broker without queues of Feedmill; at the end delete the demo's, unless the servers are private.

    Raises:
        ConfigurationError: the broker already has queues of Feedmill, and the demo would use their messages.
    """
    broker = RabbitMQ(sandbox.addresses.amqp_url, name="feedmill demo", max_message_bytes=1024)
    async with broker.connect(None) as session:
        for queue in (queue for stage in topology.stages for queue in stage.queues):
            if await session.count_ready(queue) is not None:
                raise ConfigurationError(
                    f"the queue {queue!r} exists on the given RabbitMQ, and the demo would mix with it: name"
                    " another vhost in FEEDMILL_AMQP_URL, or unset it to let the demo start servers of its own"
                )
    try:
        yield broker
    finally:
        if sandbox.servers is None:
            await broker.delete(topology)


class LogFiles:
    """One log file per process, in `directory`; closed by `files`."""

    def __init__(self, directory: Path, files: contextlib.ExitStack) -> None:
        self._directory = directory
        self._exit = files
        self._files: dict[str, TextIO] = {}

    def write(self, name: str, line: str) -> None:
        """Append a line of the process `name` (a `local.supervisor.OnLine`)."""
        if name not in self._files:
            path = self._directory / f"{name}.log"
            self._files[name] = self._exit.enter_context(path.open("a", encoding="utf-8"))
        self._files[name].write(line + "\n")
        self._files[name].flush()
