"""`feedmill up`: servers, migrations and all services in the foreground of one terminal."""

from __future__ import annotations

import sys
from pathlib import Path

from services.cli.addresses import Addresses, given_or_kept
from services.cli.log_view import LogView
from services.cli.screen import Screen
from services.cli.server_watch import looking_after
from services.cli.servers import Servers
from services.cli.settings import CliSettings, child_environment
from services.cli.supervisor import Process, Supervisor
from services.cli.terminal import run_interruptible
from services.writer.migrate import migrate
from shared.errors import ConfigurationError
from shared.secrets import mask_credentials
from shared.waiting import until_any

FREE_PORTS = {"FEEDMILL_METRICS_PORT": "0"}
"""Several services in one place can't share a fixed port; each says in its first line which one it took."""


def all_processes(*, fetchers: int = 1, writers: int = 1) -> list[Process]:
    """Return the processes of a whole pipeline."""
    return [
        Process("scheduler", "scheduler"),
        *_replicas("fetcher", fetchers),
        *_replicas("writer", writers),
    ]


def up(settings: CliSettings, console: Screen, *, fetchers: int, writers: int) -> None:
    """Run everything until Ctrl-C or SIGTERM.

    Raises:
        ConfigurationError: a service can't run with its settings; its own words are in the log above.
    """
    console.print("starting RabbitMQ and PostgreSQL ...")
    with given_or_kept(settings) as (addresses, servers):
        _say_where(console, addresses, settings.home)
        for migration in migrate(addresses.database_url):
            console.print(f"applied migration {migration.version:04d}_{migration.name}")
        try:
            processes = all_processes(fetchers=fetchers, writers=writers)
            run_interruptible(_supervise(addresses, servers, console, processes))
        finally:
            console.print("stopping")


async def _supervise(addresses: Addresses, servers: Servers | None, console: Screen, processes: list[Process]) -> None:
    view = LogView(console)
    supervisor = Supervisor(processes, child_environment(addresses.environment() | FREE_PORTS), view.show)
    async with supervisor.run(), looking_after(servers, console.print):
        await until_any(supervisor.failed)
    raise ConfigurationError("a service refused its configuration; see its line above")


def _say_where(console: Screen, addresses: Addresses, home: Path) -> None:
    lines = [f"RabbitMQ       {mask_credentials(addresses.amqp_url)}"]
    if addresses.management_url:
        lines.append(
            f"management UI  {addresses.management_url} (user and password: as in {home / 'up' / 'addresses.json'})"
        )
    lines.append(f"PostgreSQL     {mask_credentials(addresses.database_url)}")
    lines.append(f"Add a feed from another terminal: {sys.argv[0]} feeds add URL. Ctrl-C stops everything.")
    for line in lines:
        console.print(line, soft_wrap=True)


def _replicas(service: str, count: int) -> list[Process]:
    return [Process(service if n == 1 else f"{service}-{n}", service) for n in range(1, count + 1)]
