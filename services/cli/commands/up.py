"""`feedmill up`: servers, migrations and all services in the foreground of one terminal."""

from __future__ import annotations

import sys
from pathlib import Path

from local.addresses import Addresses, open_servers
from local.servers import Servers, keep_running
from local.settings import child_environment
from local.supervisor import FREE_PORTS, Process, Supervisor, all_processes
from local.terminal import LogPrinter, Terminal, run_interruptible
from services.cli.settings import CliSettings
from shared.database.migrate import migrate
from shared.errors import ConfigurationError
from shared.observability.secrets import mask_credentials
from shared.waiting import until_any


def up(settings: CliSettings, console: Terminal, *, fetchers: int, writers: int) -> None:
    """Run everything until Ctrl-C or SIGTERM.

    Raises:
        ConfigurationError: a service can't run with its settings; its own words are in the log above.
    """
    console.print("starting RabbitMQ and PostgreSQL ...")
    with open_servers(settings) as (addresses, servers):
        _say_where(console, addresses, settings.home)
        for migration in migrate(addresses.database_url):
            console.print(f"applied migration {migration.version:04d}_{migration.name}")
        try:
            processes = all_processes(fetchers=fetchers, writers=writers)
            run_interruptible(_supervise(addresses, servers, console, processes))
        finally:
            console.print("stopping")


async def _supervise(
    addresses: Addresses, servers: Servers | None, console: Terminal, processes: list[Process]
) -> None:
    view = LogPrinter(console)
    supervisor = Supervisor(processes, child_environment(addresses.environment() | FREE_PORTS), view.show)
    async with supervisor.run(), keep_running(servers, console.print):
        await until_any(supervisor.failed)
    raise ConfigurationError("a service refused its configuration; see its line above")


def _say_where(console: Terminal, addresses: Addresses, home: Path) -> None:
    lines = [f"RabbitMQ       {mask_credentials(addresses.amqp_url)}"]
    if addresses.management_url:
        lines.append(
            f"management UI  {addresses.management_url} (user and password: as in {home / 'up' / 'addresses.json'})"
        )
    lines.append(f"PostgreSQL     {mask_credentials(addresses.database_url)}")
    lines.append(f"Add a feed from another terminal: {sys.argv[0]} feeds add URL. Ctrl-C stops everything.")
    for line in lines:
        console.print(line, soft_wrap=True)
