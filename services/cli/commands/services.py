"""The commands that run in production: the services, one run of `batch`, migrations, health."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from local.terminal import interrupt_on_sigterm, print_error
from services.cli.options import AsJson, span
from services.cli.output import console
from shared.errors import ConfigurationError


def scheduler() -> None:
    """Run a scheduler: claims feeds that are due and publishes their jobs."""
    _become("scheduler")


def fetcher() -> None:
    """Run a fetcher: takes jobs, polls feeds, publishes what it found."""
    _become("fetcher")


def enricher() -> None:
    """Run an enricher: takes results on their way to the writer, and labels their articles."""
    _become("enricher")


def writer() -> None:
    """Run a writer: takes results and writes articles and feed state."""
    _become("writer")


def api() -> None:
    """Run the HTTP API, by which people and programs add feeds, look, and take articles."""
    _become("api")


def _become(name: str) -> None:
    """Run the service in this process, so that signals and exit codes are its own."""
    os.execv(sys.executable, [sys.executable, "-m", f"services.{name}"])  # noqa: S606 - our own module


def batch(
    as_json: AsJson = False,
    most_seconds: Annotated[
        float | None,
        typer.Option(
            parser=span(),
            metavar="SPAN",
            help="End after this time (90, 90s, 5m, 2h): jobs that have not begun by then are released.",
        ),
    ] = None,
    writer: Annotated[
        bool | None,
        typer.Option(help="Run a writer meanwhile. By default only with private servers that have none yet."),
    ] = None,
) -> None:
    """Fetch all feeds that are due, once, and end: for cron. Failed ones are tried again at the end of the run.

    Exit code 0 also if feeds failed. Without given servers: those of the `feedmill up` that runs here, else private
    ones, whose data is kept.
    """
    from services.cli.commands.batch import batch as run
    from services.cli.settings import CliSettings
    from shared.settings import read_settings

    interrupt_on_sigterm()
    run(read_settings(CliSettings), most_seconds=most_seconds, writer=writer, as_json=as_json)


def migrate() -> None:
    """Bring the database's tables up to date, and the broker's queues and users. Safe to run at any time.

    The broker is left alone unless FEEDMILL_BROKER_USERS names its users' passwords.
    """
    from local.addresses import find_broker, find_database
    from services.cli.broker_users import prepare_broker
    from services.cli.seeding import load_seed_file
    from services.cli.settings import CliSettings
    from shared.database.migrate import migrate as run
    from shared.service import EXIT_MISCONFIGURED
    from shared.settings import read_settings

    try:
        settings = read_settings(CliSettings)
        applied = run(find_database(settings))
        users = prepare_broker(find_broker(settings), settings) if settings.broker_users else []
    except ConfigurationError as error:  # a Job should not try again what another try can't mend
        print_error(str(error))
        raise typer.Exit(EXIT_MISCONFIGURED) from None
    for migration in applied:
        console.print(f"applied {migration.version:04d}_{migration.name}")
    if not applied:
        console.print("nothing to do, the tables are up to date")
    if users:
        console.print(f"the broker has its queues, and these users: {', '.join(users)}")
    try:  # last: a bad seed file must not leave old tables or a broker without users
        load_seed_file(find_database(settings), settings, console.print)
    except ConfigurationError as error:
        print_error(str(error))
        raise typer.Exit(EXIT_MISCONFIGURED) from None


def health() -> None:
    """Ask the service on FEEDMILL_METRICS_PORT of this machine whether it is ready. Exit code 1 if not."""
    from services.cli import health as check
    from shared.settings import TelemetrySettings, read_settings

    settings = read_settings(TelemetrySettings)
    if not settings.metrics_port:
        raise ConfigurationError("FEEDMILL_METRICS_PORT is not set: the port on which the service is to be asked")
    is_any = settings.metrics_host in {"0.0.0.0", "::", ""}  # noqa: S104 - a service's; we only ask
    host = "127.0.0.1" if is_any else settings.metrics_host
    raise typer.Exit(check.report(check.look(settings.metrics_port, host)))
