"""The `feedmill` command."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from services.cli import addresses, dead_commands, feed_commands, pending_commands, registry
from services.cli.feed_commands import LONGEST_INTERVAL
from services.cli.settings import CliSettings
from services.cli.terminal import Interrupted, interrupt_on_sigterm, run_interruptible
from services.fetcher.options import read_options
from shared.errors import ConfigurationError, FeedmillError
from shared.logs import quieten_libraries
from shared.secrets import mask_credentials
from shared.service import EXIT_MISCONFIGURED
from shared.settings import TelemetrySettings, read_settings

EXIT_INTERRUPTED = 130
app = typer.Typer(
    help="Feedmill polls feeds politely and turns them into one deduplicated PostgreSQL table.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
feeds = feed_commands.app
app.add_typer(feeds, name="feeds")
app.add_typer(dead_commands.app, name="dead")
app.add_typer(pending_commands.app, name="pending")

# What comes from feeds is shown as it is: a title like "[/b]" is no markup of ours.
console = Console(markup=False)
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
    from services.cli.up import up as run

    interrupt_on_sigterm()
    with contextlib.suppress(Interrupted, KeyboardInterrupt):  # which is how it is meant to end
        run(read_settings(CliSettings), console, fetchers=fetchers, writers=writers)


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Show the main job on a farm of good and bad feeds on loopback, and count every article.

    Exit code 0 only if every expected article is in the table exactly once.
    """
    from services.cli import demo_view
    from services.cli.demo import Demo
    from services.cli.demo_venue import open_venue

    interrupt_on_sigterm()
    shown = Console(stderr=True, markup=False) if as_json else console
    shown.print("starting the servers and the feed farm ...")
    with open_venue(read_settings(CliSettings)) as venue:
        result = run_interruptible(demo_view.watch(Demo(venue), shown))
    demo_view.show_summary(result, shown, venue.logs)
    if as_json:
        print(json.dumps(dataclasses.asdict(result), ensure_ascii=False))
    elif result.perfect:
        console.print(demo_view.WAY_ON, soft_wrap=True)
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
    from services.cli.batch.command import batch as run

    interrupt_on_sigterm()
    run(read_settings(CliSettings), most_seconds=most_seconds, writer=writer, as_json=as_json)


@app.command()
def migrate() -> None:
    """Bring the database's tables up to date, and the broker's queues and users. Safe to run at any time.

    The broker is left alone unless FEEDMILL_BROKER_USERS names its users' passwords.
    """
    from services.cli.broker_users import prepare_broker
    from services.writer.migrate import migrate as run

    try:
        settings = read_settings(CliSettings)
        there = addresses.find(settings)
        applied = run(there.database_url)
        users = prepare_broker(there.amqp_url, settings)
    except ConfigurationError as error:  # a Job should not try again what another try can't mend
        print(f"feedmill: {mask_credentials(str(error))}", file=sys.stderr)
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
    from services.cli.farm_service import FarmService, Plan
    from services.cli.settings import FarmSettings
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


@feeds.command("add")
def feeds_add(
    url: Annotated[str, typer.Argument(help="The feed's http(s) URL, or that of a page that links to it.")],
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    interval: Annotated[
        float | None,
        typer.Option(min=1, max=LONGEST_INTERVAL, help="Poll exactly every so many seconds, without adapting."),
    ] = None,
    priority: Annotated[int, typer.Option(min=-1000, max=1000, help="Higher goes first when many feeds are due.")] = 0,
    header: Annotated[list[str] | None, typer.Option(help="'Name: value', sent with its requests; repeatable.")] = None,
    user: Annotated[
        str | None, typer.Option(help="Log in as NAME (HTTP Basic); asks for the password, or takes NAME:PASSWORD.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds that a fetch of it may take, redirects included.")
    ] = None,
    check: Annotated[
        bool | None,
        typer.Option(help="Look whether a feed is there. By default only if the URL doesn't say that it is one."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Of a page's feeds take the first, without asking.")] = False,
) -> None:
    """Register a feed; it is due at once. Its own headers and password go to its own origin only.

    Given a page, its feeds are looked for: asks which at a terminal, otherwise takes the first.
    """
    config = registry.make_config(header or [], _with_password(user), timeout)
    url = _settle_url(url, config, check=check, yes=yes)
    feed = registry.NewFeed(url, name=name, interval_seconds=interval, priority=priority, config=config)
    settings = read_settings(CliSettings)
    with registry.connect_here(create=True) as connection:
        id_, is_new = registry.add_feed(connection, feed, settings.proxy_host_set())
    said = "added as" if is_new else "is there already, unchanged, as"
    console.print(f"{mask_credentials(url)} {said} feed {id_}", soft_wrap=True)


def _settle_url(url: str, config: dict[str, Any], *, check: bool | None, yes: bool) -> str:
    """Return the URL to register: that of the page's feed, if `url` is a page."""
    from services.cli import discovery
    from services.fetcher.__main__ import make_client
    from services.fetcher.settings import FetcherSettings

    registry.check_feed(registry.NewFeed(url, config=config))
    if check is False or (check is None and discovery.looks_meant(url)):
        return url

    def choose(found: list[discovery.Found]) -> discovery.Found:
        if yes or not (sys.stdin.isatty() and sys.stdout.isatty()):
            return found[0]
        for number, one in enumerate(found, 1):
            console.print(f"{number}  {one.title or '(no title)'}  {mask_credentials(one.url)}", soft_wrap=True)
        return found[_ask_number("Which feed", len(found)) - 1]

    settings = read_settings(FetcherSettings)
    client = make_client(settings)
    try:
        search = discovery.Discovery(client, read_options(config), settings.parse_seconds)
        return discovery.settle_url(url, search, choose, lambda text: console.print(text, soft_wrap=True))
    finally:
        client.close()


def _ask_number(question: str, most: int) -> int:
    """Ask until the answer is a number from 1 to `most`. Not by click's IntRange: newer typers refuse its types."""
    while True:
        try:
            typed = typer.prompt(question, default="1").strip()
        except typer.Abort:  # Ctrl-C or Ctrl-D
            raise Interrupted from None
        if typed.isascii() and typed.isdecimal() and len(typed) < 5 and 1 <= int(typed) <= most:
            return int(typed)
        console.print(f"a number from 1 to {most}, please")


def _with_password(user: str | None) -> tuple[str, str] | None:
    if user is None:
        return None
    name, colon, password = user.partition(":")
    return name, password if colon else typer.prompt("password", hide_input=True, default="", show_default=False)


@feeds.command("list")
def feeds_list(as_json: AsJson = False) -> None:
    """List all feeds with how they fare."""
    with registry.connect_here() as connection:
        rows = registry.list_feeds(connection)
    if as_json:
        print(json.dumps(rows, default=str, ensure_ascii=False))
        return
    table = Table("id", "feed", "next fetch", "last outcome", "failures")
    for row in rows:
        due = f"{row['next_fetch_at']:%Y-%m-%d %H:%M:%S}" if row["enabled"] else f"disabled ({row['disabled_reason']})"
        outcome = " - ".join(str(part) for part in (row["last_outcome"], row["last_error"]) if part)
        label = f"{row['name']}\n{row['url']}" if row["name"] else row["url"]
        table.add_row(str(row["id"]), label, due, outcome, str(row["failures"]))
    console.print(table)


@app.command()
def parse(
    source: Annotated[str, typer.Argument(help="A file, a URL, or - for standard input.")],
    as_json: AsJson = False,
    base_url: Annotated[str | None, typer.Option(help="Where relative links start from.")] = None,
    content_type: Annotated[str | None, typer.Option(help="What HTTP would have said.")] = None,
) -> None:
    """Read one feed as the pipeline would and print its entries. Exit code 1 if it can't be read."""
    from services.cli import reading

    try:
        parsed = reading.read_source(source, base_url=base_url, content_type=content_type)
    except reading.ReadingFailed as error:
        if as_json:
            print(json.dumps({"error": {"outcome": error.outcome.value, "reason": str(error)}}, ensure_ascii=False))
        else:
            Console(stderr=True, markup=False).print(
                f"{mask_credentials(source)}: {error.outcome.value}: {error}", soft_wrap=True
            )
        raise typer.Exit(1) from None
    if as_json:
        print(json.dumps(reading.as_json(parsed), ensure_ascii=False))
    else:
        reading.show(parsed, console)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show the queues, the feeds that are due, overdue or in flight, pending articles, and why nothing moves."""
    from services.cli import status as view

    found = view.look(addresses.find(read_settings(CliSettings)))
    if as_json:
        print(json.dumps(found.as_json(), ensure_ascii=False))
    else:
        view.show(found, console)


def main() -> None:
    """Run the command; an error that a person can act on is one sentence, not a traceback."""
    quieten_libraries()
    try:
        app()
    except (FeedmillError, OSError) as error:
        print(f"feedmill: {mask_credentials(str(error))}", file=sys.stderr)
        sys.exit(1)
    except (Interrupted, KeyboardInterrupt):
        print("feedmill: stopped", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
