"""The commands `feedmill feeds …`: the registry, and one feed by its id or URL."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from local.addresses import find_broker
from services.admin import feeds as registered
from services.admin import retries
from services.admin.registry import Connection
from services.admin.tags import change_tags
from services.cli import feed_words
from services.cli.calls.api import open_api
from services.cli.commands.add import add
from services.cli.commands.feed_checks import check
from services.cli.commands.feed_lists import export, import_
from services.cli.options import AsJson, Grep, OfTag, Utc, Wide, Yes, connect_here, span
from services.cli.output import Column, Times, confirm, console, print_facts, print_table
from services.cli.settings import CliSettings
from services.fetcher.outcomes import RetryRules
from shared.broker.rabbitmq import RabbitMQ
from shared.errors import BrokerUnavailable, ConfigurationError
from shared.observability.display import ascii_json
from shared.settings import read_settings

if TYPE_CHECKING:
    from services.fetcher.settings import FetcherSettings

app = typer.Typer(help="The registry: which feeds are polled.", no_args_is_help=True)
app.command("add")(add)
app.command("import")(import_)
app.command("export")(export)
app.command("check")(check)

Feed = Annotated[str, typer.Argument(help="A feed's id, or its URL.")]
Feeds = Annotated[list[str], typer.Argument(help="Ids or URLs of feeds.")]


@app.command("list")
def list_(
    grep: Grep = None,
    tag: OfTag = None,
    limit: Annotated[int | None, typer.Option(min=1, help="So many at most.")] = None,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List all feeds with how they fare."""
    from services.api.models.feeds import FeedRow

    with open_api() as api:
        rows = [row.model_dump() for row in api.rows("/api/feeds", FeedRow, limit=limit, q=grep, tag=tag)]
    if as_json:
        print(ascii_json(rows))
        return
    times = Times(utc=utc, wide=wide)
    columns = (
        Column("id", right=True),
        Column("feed", lambda row: row["name"] or "(no name yet)", flexible=True),
        Column("next fetch", lambda row: _next(row, times)),
        Column(
            "last outcome",
            lambda row: feed_words.last(row) if row["enabled"] else row["disabled_reason"],
            flexible=True,
        ),
        Column("tags", lambda row: ", ".join(row["tags"]), flexible=True),
        Column("url", below=True),
    )
    failing = sum(row["failing"] for row in rows)
    print_table(columns, rows, wide=wide, note=f"{len(rows)} feeds, {failing} failing; {times.note}")


def _retry_rules() -> RetryRules:
    settings = _fetcher_settings()
    return RetryRules(settings.max_retries, settings.retry_delay_seconds, settings.claim_seconds)


def _fetcher_settings() -> FetcherSettings:
    from services.fetcher.settings import FetcherSettings  # its imports take as long as all others of the command

    return read_settings(FetcherSettings)


def _next(row: dict[str, Any], times: Times) -> str:
    if not row["enabled"]:
        return "disabled"
    if row["retry_at"]:
        return feed_words.retry(row, times(row["retry_at"]))
    return "in flight" if row["in_flight"] else times(row["next_fetch_at"])


@app.command()
def show(
    feed: Feed,
    attempts: Annotated[int, typer.Option(min=0, max=1000, help="So many of the last attempts.")] = 10,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """Show one feed: its state, its health over a week, when it is polled and why, its last attempts."""
    with connect_here() as connection:
        id_ = registered.find_feed(connection, feed)
        row = registered.read_feed(connection, _retry_rules(), id_)
        log = registered.read_attempts(connection, id_, attempts)
    if as_json:
        print(ascii_json({**row, "last_attempts": log}))
        return
    times = Times(utc=utc, wide=wide)
    print_facts(feed_words.facts(row, times))
    if log:
        console.print()
        _show_attempts(log, times, wide=wide)


def _show_attempts(log: list[dict[str, Any]], times: Times, *, wide: bool) -> None:
    columns = (
        Column("started", lambda row: times(row["started_at"])),
        Column("outcome"),
        Column("status"),
        Column("entries", "items_seen", right=True),
        Column("new", "items_new", right=True),
        Column("seconds", lambda row: f"{row['elapsed_seconds']:.2f}", right=True),
        Column("error", flexible=True),
    )
    print_table(columns, log, wide=wide, note=f"last attempts; {times.note}")


Interval = Annotated[
    float | None, typer.Option(parser=span(), metavar="SPAN", help="Fixed: 90, 90s, 5m, 2h, 1d; 0: adapt.")
]
Bound = Annotated[float | None, typer.Option(parser=span(), metavar="SPAN", help="As 5m; 0: as for all.")]


@app.command("set")
def set_(
    feeds: Feeds,
    interval: Interval = None,
    shortest: Bound = None,
    longest: Bound = None,
    priority: Annotated[int | None, typer.Option(min=-1000, max=1000)] = None,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    enable: Annotated[bool | None, typer.Option("--enable/--disable", help="Whether they are polled.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Give them this tag, such as news or a/b; repeatable.")] = None,
    untag: Annotated[list[str] | None, typer.Option(help="Take this tag from them; repeatable.")] = None,
) -> None:
    """Change feeds: polling, name, tags. One that is enabled again starts anew, with its failures forgotten."""
    spans = {"interval_seconds": interval, "shortest_seconds": shortest, "longest_seconds": longest}
    changes: dict[str, Any] = {column: seconds or None for column, seconds in spans.items() if seconds is not None}
    changes |= {} if priority is None else {"priority": priority}
    changes |= {} if name is None else {"name": name or None}
    if not (changes or tag or untag) and enable is None:
        raise ConfigurationError(
            "nothing to change: give --interval, --shortest, --longest, --priority, --name, --tag, --untag, --enable or"
            " --disable"
        )
    if shortest and longest and shortest > longest:
        raise ConfigurationError("--shortest is more than --longest: give a span from the shorter to the longer one")
    for feed in feeds:
        with connect_here() as connection:
            id_ = registered.find_feed(connection, feed)
            registered.change_feed(connection, id_, changes, enable=enable)
            change_tags(connection, id_, tag or (), untag or ())
        console.print(f"feed {id_} was changed")


@app.command()
def fetch(feeds: Feeds, utc: Utc = False) -> None:
    """Poll feeds now, ahead of their time or of their retry. A host that asked to be left alone is left alone."""
    for feed in feeds:
        with connect_here() as connection:
            id_ = registered.find_feed(connection, feed)
            if not registered.make_due(connection, id_):
                raise ConfigurationError(f"feed {id_} is disabled: `feedmill feeds set {id_} --enable`")
            connection.commit()
            console.print(f"feed {id_} {_fetch_now(connection, id_, Times(utc=utc))}", soft_wrap=True)


def _fetch_now(connection: Connection, id_: int, times: Times) -> str:
    """End the wait of a feed that waits for its retry; return what becomes of the feed now."""
    settings = _fetcher_settings()
    row = registered.read_feed(connection, _retry_rules(), id_)
    group = row["politeness_group"]
    if row["throttled_until"]:
        return f"waits: {group} asked to be left alone until {times.with_zone(row['throttled_until'])}"
    if not row["retry_at"]:
        return (
            f"is {feed_words.in_flight(row, times)}: it is being fetched"
            if feed_words.is_claimed(row)
            else "is due now"
        )
    retry = feed_words.retry(row, times.with_zone(row["retry_at"]))
    if until := retries.unreachable_until(connection, id_, settings.connect_failure_seconds):
        at = times.with_zone(until)
        return f"waits, {retry}: {group} could not be connected to, and fetchers leave it alone until {at} at least"
    connection.commit()
    if asyncio.run(_retry_now(connection, id_, settings, retry)):
        return f"is fetched now; planned was {retry}"
    end = times.with_zone(row["claim_expires_at"])
    return (
        f"waits, {retry}: its job is not in the retry queue, so a fetcher has it; else the feed is due again at {end}"
    )


async def _retry_now(connection: Connection, id_: int, settings: FetcherSettings, retry: str) -> bool:
    try:
        url = find_broker(read_settings(CliSettings))
        broker = RabbitMQ(url, name="feedmill feeds fetch", max_message_bytes=settings.max_message_bytes)
        return await retries.retry_now(broker, settings.topology(), connection, id_)
    except (BrokerUnavailable, ConfigurationError) as error:
        raise ConfigurationError(
            f"feed {id_} waits, {retry}, and that can't be changed without RabbitMQ: {error}"
        ) from error


@app.command()
def remove(feeds: Feeds, yes: Yes = False) -> None:
    """Remove feeds, with their log and their pending articles. Articles seen are remembered: they don't come again."""
    for feed in feeds:
        with connect_here() as connection:
            id_ = registered.find_feed(connection, feed)
            pending = registered.count_pending(connection, id_)
            connection.commit()  # a person may take their time
            if not yes:
                confirm(f"remove feed {id_} and its {pending} pending articles?")
            registered.remove_feed(connection, id_)
        console.print(f"feed {id_} was removed, and {pending} pending articles with it")
