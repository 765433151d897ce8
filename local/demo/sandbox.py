"""Where a demo plays: servers, a schema and queues of its own, so that nothing of anyone's is touched."""

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
from local.servers import Servers, delete_servers, private_servers
from local.settings import LocalSettings
from services.admin.registry import connect
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import Topology
from shared.errors import ConfigurationError


@dataclass(frozen=True)
class Sandbox:
    """The servers, and a directory for the services' logs. `servers` is None if they were given."""

    addresses: Addresses
    servers: Servers | None
    logs: Path


@contextmanager
def open_sandbox(settings: LocalSettings) -> Iterator[Sandbox]:
    """Yield a sandbox on the given servers, else on private ones that are thrown away with all they held."""
    home = settings.home / "demo"
    logs = home / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    there = configured(settings)
    if there is not None:
        yield Sandbox(there, None, logs)
        return
    for left in home.glob("servers-*"):  # by a demo that was killed; its servers ended with it
        with contextlib.suppress(ConfigurationError):  # or of one that runs beside us
            delete_servers(left)
    directory = home / f"servers-{uuid4().hex[:8]}"
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(delete_servers, directory)
        servers = cleanup.enter_context(private_servers(directory, durable=False))
        yield Sandbox(Addresses.of(servers), servers, logs)


@contextmanager
def own_schema(sandbox: Sandbox) -> Iterator[str]:
    """Yield a URL of the sandbox's database with a schema of our own, dropped at the end if the database was given."""
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
    """Yield a broker that has none of our queues yet; delete those of the demo at the end if it was given.

    Raises:
        ConfigurationError: Feedmill's queues are there already; the demo would mix with what they hold.
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
