"""`feedmill up`: servers, migrations and all services in the foreground of one terminal."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from local.addresses import Addresses, open_servers, psql_command
from local.servers import Servers, keep_running
from local.settings import child_environment
from local.supervisor import FREE_PORTS, Process, Supervisor, all_processes
from local.terminal import LogPrinter, Terminal, run_interruptible
from services.api.settings import ApiSettings
from services.cli.output import console
from services.cli.seeding import load_seed_file
from services.cli.settings import CliSettings
from shared.database.migrate import migrate
from shared.errors import ConfigurationError
from shared.observability.display import ascii_json
from shared.observability.secrets import mask_credentials
from shared.settings import BrokerSettings, TelemetrySettings, read_settings
from shared.waiting import until_any

API_PORT = "FEEDMILL_API_PORT"
METRICS_PORT = "FEEDMILL_METRICS_PORT"
ENRICHER = "FEEDMILL_ENRICHER"
RABBITMQ_PAGE = "FEEDMILL_API_RABBITMQ_PAGE"


def up(
    settings: CliSettings,
    *,
    fetchers: int,
    writers: int,
    enrichers: int | None = None,
    api: bool = True,
    api_port: int | None = None,
) -> None:
    """Run everything until Ctrl-C or SIGTERM.

    Args:
        settings: the servers.
        fetchers: processes.
        writers: processes.
        enrichers: processes; None: one, unless it is switched off.
        api: run the API, too.
        api_port: its port; 0: any. None: that of its settings, by default 8080 or a free one.

    Raises:
        ConfigurationError: a port is taken, or a service can't run with its settings; its own words are in the log
            above.
    """
    telemetry = read_settings(TelemetrySettings)
    as_json = "log_format" in telemetry.model_fields_set and telemetry.log_format == "json"
    terminal = Terminal(stderr=True) if as_json else console  # then standard output is for the services' lines
    http_api = [_api_process(read_settings(ApiSettings), api_port)] if api else []
    if enrichers is None:
        broker = read_settings(BrokerSettings)
        enrichers = int(broker.enricher or "enricher" not in broker.model_fields_set)
    pipeline = all_processes(fetchers=fetchers, writers=writers, enrichers=enrichers)
    processes = _with_ports([*pipeline, *http_api], telemetry)
    switches = {ENRICHER: str(bool(enrichers)).lower()}
    terminal.print("starting RabbitMQ and PostgreSQL ...")
    with open_servers(settings) as (addresses, servers):
        for line in _where(addresses, settings, processes):
            terminal.print(line, soft_wrap=True)
        for migration in migrate(addresses.database_url):
            terminal.print(f"applied migration {migration.version:04d}_{migration.name}")
        load_seed_file(addresses.database_url, settings, terminal.print)
        try:
            show = print_json if as_json else LogPrinter(console).show
            if addresses.management_url:
                switches |= {RABBITMQ_PAGE: os.environ.get(RABBITMQ_PAGE) or addresses.management_url}
            environment = child_environment(addresses.environment() | FREE_PORTS | switches)
            run_interruptible(_supervise(servers, terminal, processes, environment, show))
        finally:
            terminal.print("stopping")


async def _supervise(
    servers: Servers | None,
    terminal: Terminal,
    processes: list[Process],
    environment: Mapping[str, str],
    show: Callable[[str, str], None],
) -> None:
    supervisor = Supervisor(processes, environment, show)
    async with supervisor.run(), keep_running(servers, terminal.print):
        await until_any(supervisor.failed)
    raise ConfigurationError("a service refused its configuration; see its line above")


def _with_ports(processes: Sequence[Process], telemetry: TelemetrySettings) -> list[Process]:
    """Return the processes with metrics ports: FEEDMILL_METRICS_PORT and the next ones; if it is 0 or unset, any.

    Raises:
        ConfigurationError: somebody else has one of the ports.
    """
    first = telemetry.metrics_port
    if not first:
        return list(processes)
    placed = []
    for port, process in enumerate(processes, first):
        _require_free(process, telemetry.metrics_host, port)
        placed.append(replace(process, environment={**process.environment, METRICS_PORT: str(port)}))
    return placed


def _require_free(process: Process, host: str, port: int) -> None:
    if trouble := _why_not_free(host, port):
        raise ConfigurationError(
            f"port {port} of {process.name} can't be used: {trouble}. FEEDMILL_METRICS_PORT is the first process's"
            " port, the others take the next ones"
        )


def _why_not_free(host: str, port: int) -> str | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family):
            return None
    except (OSError, OverflowError) as error:
        return str(error)


def _api_process(settings: ApiSettings, asked: int | None) -> Process:
    """Return the API. A port that nobody asked for may be another one; on loopback it is open without a token.

    Raises:
        ConfigurationError: the port that was asked for is taken.
    """
    host, is_asked = settings.api_host, asked is not None or "api_port" in settings.model_fields_set
    port = settings.api_port if asked is None else asked
    trouble = _why_not_free(host, port)
    if trouble and is_asked:
        raise ConfigurationError(f"port {port} of the API can't be used: {trouble}. Take another with --api-port")
    environment = {API_PORT: "0" if trouble else str(port)}
    if _is_loopback(host):
        environment["FEEDMILL_API_OPEN"] = os.environ.get("FEEDMILL_API_OPEN") or "true"
    return Process("api", "api", environment)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _where(addresses: Addresses, settings: CliSettings, processes: Sequence[Process]) -> list[str]:
    """Return what a person needs to know to use what runs here."""
    lines = [f"RabbitMQ       {mask_credentials(addresses.amqp_url)}"]
    if addresses.management_url:
        file = settings.home / "up" / "addresses.json"
        lines.append(f"management UI  {addresses.management_url} (user and password: as in {file})")
    lines.append(f"PostgreSQL     {psql_command(settings)}")
    for process in processes:
        if process.service == "api":
            lines += [f"dashboard      {_api_address(process, '/')}", f"HTTP API       {_api_address(process, '/api')}"]
    ports = [f"{p.name} {p.environment[METRICS_PORT]}" for p in processes if METRICS_PORT in p.environment]
    if ports:
        lines.append(f"metrics ports  {', '.join(ports)}")
    lines.append(f"Add a feed from another terminal: {sys.argv[0]} feeds add URL. Ctrl-C stops everything.")
    lines.append("Times in the log are UTC.")
    return lines


def _api_address(process: Process, path: str) -> str:
    port, host = process.environment[API_PORT], read_settings(ApiSettings).api_host
    if port == "0":
        return "on a free port: its line `listening` below says which"
    who = " (open to this machine, without a token)" if process.environment.get("FEEDMILL_API_OPEN") == "true" else ""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{path}{who}"


def print_json(name: str, line: str) -> None:
    """Print a line of the process `name` as JSON with its `instance`; other text becomes a message."""
    try:
        record = json.loads(line)
        if not isinstance(record, dict):
            raise TypeError
    except (ValueError, TypeError, RecursionError):
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        record = {"at": now, "level": "warning", "service": name.partition("-")[0], "logger": "up", "message": line}
    print(ascii_json(record | {"instance": name}), flush=True)
