"""The `feedmill` command."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from typing import Annotated

import typer
from rich.table import Table

from local import addresses
from local.terminal import Interrupted, Terminal, interrupt_on_sigterm, print_error, run_interruptible
from services.admin import registry
from services.cli.commands import add as add_command
from services.cli.commands import dead as dead_commands
from services.cli.commands import feeds as feed_commands
from services.cli.commands import pending as pending_commands
from services.cli.commands.feeds import LONGEST_INTERVAL
from services.cli.database import connect_here
from services.cli.settings import CliSettings
from shared.errors import ConfigurationError, FeedmillError
from shared.observability.display import ascii_json, safe_to_show
from shared.observability.logs import quieten_libraries
from shared.service import EXIT_MISCONFIGURED
from shared.settings import TelemetrySettings, read_settings

EXIT_INTERRUPTED = 130
EXIT_USAGE = 2
app = typer.Typer(
    help="Feedmill polls feeds politely and turns them into one deduplicated PostgreSQL table.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
feeds = feed_commands.app
feeds.command("add")(add_command.add)
app.add_typer(feeds, name="feeds")
app.add_typer(dead_commands.app, name="dead")
app.add_typer(pending_commands.app, name="pending")

console = Terminal()
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@app.command()
def up(
    fetchers: Annotated[int, typer.Option(min=1, help="Fetcher processes.")] = 1,
    writers: Annotated[int, typer.Option(min=1, help="Writer processes.")] = 1,
) -> None:
    """Run everything in this terminal: servers (private ones unless given), migrations, all services.

    Servers are given by FEEDMILL_AMQP_URL and FEEDMILL_DATABASE_URL. Private ones keep their data in
    .feedmill/up. Ctrl-C stops everything.
    """
    from services.cli.commands.up import up as run

    interrupt_on_sigterm()
    with contextlib.suppress(Interrupted, KeyboardInterrupt):  # which is how it is meant to end
        run(read_settings(CliSettings), console, fetchers=fetchers, writers=writers)


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Show the main job on a farm of good and bad feeds on loopback, and count every article.

    Exit code 0 only if every expected article is in the table exactly once.
    """
    from local.demo import report as demo_report
    from local.demo.demo import Demo
    from local.demo.sandbox import open_sandbox

    interrupt_on_sigterm()
    shown = Terminal(stderr=True) if as_json else console
    shown.print("starting the servers and the feed farm ...")
    with open_sandbox(read_settings(CliSettings)) as sandbox:
        result = run_interruptible(demo_report.run_with_progress(Demo(sandbox), shown))
    demo_report.print_summary(result, shown, sandbox.logs)
    if as_json:
        print(ascii_json(dataclasses.asdict(result)))
    elif result.perfect:
        console.print(demo_report.NEXT_STEPS, soft_wrap=True)
    raise typer.Exit(0 if result.perfect else 1)


@app.command()
def batch(
    as_json: AsJson = False,
    most_seconds: Annotated[
        float | None, typer.Option(min=0, help="End after so many seconds: what is not begun by then is given back.")
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

    interrupt_on_sigterm()
    run(read_settings(CliSettings), most_seconds=most_seconds, writer=writer, as_json=as_json)


@app.command()
def migrate() -> None:
    """Bring the database's tables up to date, and the broker's queues and users. Safe to run at any time.

    The broker is left alone unless FEEDMILL_BROKER_USERS names its users' passwords.
    """
    from services.cli.broker_users import prepare_broker
    from shared.database.migrate import migrate as run

    try:
        settings = read_settings(CliSettings)
        if settings.database_url and not settings.amqp_url and not settings.broker_users:
            applied, users = run(str(settings.database_url)), list[str]()
        else:
            there = addresses.find(settings)
            applied = run(there.database_url)
            users = prepare_broker(there.amqp_url, settings)
    except ConfigurationError as error:  # a Job should not try again what another try can't mend
        print_error(str(error))
        raise typer.Exit(EXIT_MISCONFIGURED) from None
    for migration in applied:
        console.print(f"applied {migration.version:04d}_{migration.name}")
    if not applied:
        console.print("nothing to do, the tables are up to date")
    if users:
        console.print(f"the broker has its queues, and these users: {', '.join(users)}")


def _run_service(name: str) -> None:
    """Become the service: same process id, so that signals and exit codes are its own."""
    os.execv(sys.executable, [sys.executable, "-m", f"services.{name}"])  # noqa: S606 - our own module


@app.command()
def scheduler() -> None:
    """Run a scheduler: claims feeds that are due and publishes their jobs."""
    _run_service("scheduler")


@app.command()
def fetcher() -> None:
    """Run a fetcher: takes jobs, polls feeds, publishes what it found."""
    _run_service("fetcher")


@app.command()
def writer() -> None:
    """Run a writer: takes results and writes articles and feed state."""
    _run_service("writer")


@app.command()
def farm(
    port: Annotated[int, typer.Option(min=1, max=65534, help="Where the sites are served.")] = 8080,
    address: Annotated[str, typer.Option(help="The address that the names site-2.farm, site-3.farm, … lead to.")] = (
        "127.0.0.1"
    ),
    waves: Annotated[int, typer.Option(min=0, help="How often new articles appear by themselves.")] = 2,
    wave_seconds: Annotated[float, typer.Option(min=0.1, help="Seconds between two waves.")] = 20.0,
    interval: Annotated[float, typer.Option(min=1, max=LONGEST_INTERVAL, help="Seconds between two polls.")] = 15.0,
) -> None:
    """Play the demo's sites for fetchers elsewhere: registers the feeds, publishes, counts what arrives.

    Ready (`feedmill health`) while every article is there exactly once. SIGUSR1 lets new articles appear.
    """
    from local.farm.service import FarmService, Plan
    from local.settings import FarmSettings
    from shared.service import run_service

    plan = Plan(address, port, waves, wave_seconds, interval)
    run_service("farm", FarmSettings, FarmService(plan).serve)


@app.command()
def health() -> None:
    """Ask the service on FEEDMILL_METRICS_PORT of this machine whether it is ready. Exit code 1 if not."""
    from services.cli import health as view

    settings = read_settings(TelemetrySettings)
    if not settings.metrics_port:
        raise ConfigurationError("FEEDMILL_METRICS_PORT is not set: the port on which the service is to be asked")
    wildcard = settings.metrics_host in {"0.0.0.0", "::", ""}  # noqa: S104 - a service's; we only ask
    host = "127.0.0.1" if wildcard else settings.metrics_host
    raise typer.Exit(view.report(view.look(settings.metrics_port, host)))


@feeds.command("list")
def feeds_list(as_json: AsJson = False) -> None:
    """List all feeds with how they fare."""
    with connect_here() as connection:
        rows = registry.list_feeds(connection)
    if as_json:
        print(ascii_json(rows))
        return
    table = Table("id", "feed", "next fetch", "last outcome", "failures")
    for row in rows:
        due = f"{row['next_fetch_at']:%Y-%m-%d %H:%M:%S}" if row["enabled"] else f"disabled ({row['disabled_reason']})"
        outcome = " - ".join(str(part) for part in (row["last_outcome"], row["last_error"]) if part)
        label = "\n".join(safe_to_show(row[part]) for part in ("name", "url") if row[part])
        table.add_row(str(row["id"]), label, safe_to_show(due), safe_to_show(outcome), str(row["failures"]))
    console.print(table)


@app.command()
def parse(
    source: Annotated[str, typer.Argument(help="A file, a URL, or - for standard input.")],
    as_json: AsJson = False,
    base_url: Annotated[str | None, typer.Option(help="Where relative links start from.")] = None,
    content_type: Annotated[str | None, typer.Option(help="What HTTP would have said.")] = None,
) -> None:
    """Read one feed as the pipeline would and print its entries. Exit code 1 if it can't be read."""
    from services.cli.commands import parse as reading

    try:
        parsed = reading.read_source(source, base_url=base_url, content_type=content_type)
    except reading.ReadingFailed as error:
        if as_json:
            print(ascii_json({"error": {"outcome": error.outcome.value, "reason": str(error)}}))
        else:
            Terminal(stderr=True).print(safe_to_show(f"{source}: {error.outcome.value}: {error}", None), soft_wrap=True)
        raise typer.Exit(1) from None
    except OSError as error:
        print_error(f"{source!r} can't be read: {error.strerror}; the URL of a feed begins with http:// or https://")
        raise typer.Exit(1) from None
    if as_json:
        print(ascii_json(reading.as_json(parsed)))
    else:
        reading.show(parsed, console)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show the queues, the feeds that are due, overdue or in flight, pending articles, and why nothing moves."""
    from services.admin.status import look
    from services.cli.commands import status as view

    there = addresses.find(read_settings(CliSettings))
    found = look(there.amqp_url, there.database_url)
    if as_json:
        print(ascii_json(found.as_json()))
    else:
        view.show(found, console)


def main() -> None:
    """Run the command; an error that a person can act on is one sentence, not a traceback."""
    quieten_libraries()
    try:
        app()
    except (FeedmillError, OSError) as error:
        print_error(str(error))
        sys.exit(1)
    except UnicodeEncodeError:
        odd = next((argument for argument in sys.argv if any("\udc80" <= part <= "\udcff" for part in argument)), None)
        if odd is None:
            raise
        print_error(f"an argument is no text in UTF-8: {odd!r}")
        sys.exit(EXIT_USAGE)
    except (Interrupted, KeyboardInterrupt):
        print_error("stopped")
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
