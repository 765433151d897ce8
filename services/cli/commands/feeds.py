"""The commands `feedmill feeds …`: the registry, and one feed by its id or URL."""

from __future__ import annotations

import asyncio
from calendar import day_name
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from local.addresses import find_broker
from services.admin import feeds as registered
from services.admin import retries
from services.admin.diagnosis import in_words
from services.admin.registry import Connection
from services.cli.commands.add import add
from services.cli.options import AsJson, Grep, Utc, Wide, Yes, connect_here, span
from services.cli.output import Column, Times, confirm, console, print_facts, print_table
from services.cli.settings import CliSettings
from services.fetcher.outcomes import RetryRules
from shared.broker.rabbitmq import RabbitMQ
from shared.errors import BrokerUnavailable, ConfigurationError
from shared.observability.display import ascii_json
from shared.settings import read_settings
from shared.wire.outcomes import words_of

if TYPE_CHECKING:
    from services.fetcher.settings import FetcherSettings

app = typer.Typer(help="The registry: which feeds are polled.", no_args_is_help=True)
app.command("add")(add)

Feed = Annotated[str, typer.Argument(help="A feed's id, or its URL.")]
Feeds = Annotated[list[str], typer.Argument(help="Ids or URLs of feeds.")]


@app.command("list")
def list_(
    grep: Grep = None,
    limit: Annotated[int | None, typer.Option(min=1, help="So many at most.")] = None,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List all feeds with how they fare."""
    with connect_here() as connection:
        rows = registered.list_feeds(connection, _retry_rules(), text=grep, limit=limit)
    if as_json:
        print(ascii_json(rows))
        return
    times = Times(utc=utc, wide=wide)
    columns = (
        Column("id", right=True),
        Column("feed", lambda row: row["name"] or "(no name yet)", flexible=True),
        Column("next fetch", lambda row: _next(row, times)),
        Column("last outcome", lambda row: _last(row) if row["enabled"] else row["disabled_reason"], flexible=True),
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
        return _retry(row, times(row["retry_at"]))
    return "in flight" if row["in_flight"] else times(row["next_fetch_at"])


def _retry(row: dict[str, Any], at: str) -> str:
    """Return which retry a feed waits for, and when it is made."""
    what = f"retry {row['retry']} of {row['retries']}" if row["retry"] else "deferred"
    if row["retry_at"] < datetime.now(UTC):
        return f"{what}, due since {at}"
    return f"{what} at {at}" if row["retry"] else f"{what} until {at}"


def _last(row: dict[str, Any], *, with_words: bool = False) -> str:
    if not row["last_outcome"]:
        return "never polled"
    count = f" ({row['failures']} in a row)" if row["failures"] else ""
    details = (words_of(row["last_outcome"]) if with_words else "", row["last_error"])
    return ": ".join([f"{row['last_outcome']}{count}", *filter(None, details)])


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
    print_facts(_facts(row, times))
    if log:
        console.print()
        _show_attempts(log, times, wide=wide)


def _facts(row: dict[str, Any], times: Times) -> list[tuple[str, str]]:
    """Return what a person wants to know of a feed, in words; what has no value is left out."""
    facts = [
        ("feed", row["url"]),
        ("id", str(row["id"])),
        ("name", row["name"]),
        ("polled", "yes" if row["enabled"] else f"no: {row['disabled_reason'] or 'disabled'}"),
        ("next poll", times.with_zone(row["next_fetch_at"]) if row["enabled"] and not _is_claimed(row) else None),
        ("failing", _retry(row, times.with_zone(row["retry_at"])) if row["retry_at"] else "yes" * row["failing"]),
        ("pace", _pace(row)),
        ("in flight", _in_flight(row, times)),
        ("host throttled until", times.with_zone(row["throttled_until"])),
        ("last outcome", _last(row, with_words=True)),
        ("last success", _ago(row["seconds_since_success"])),
        ("last new items", _ago(row["seconds_since_news"])),
        ("stale", "yes: it answers, and nothing new comes" if row["stale"] else None),
        ("this week", _week(row)),
        ("moving to", f"{row['moved_to']} (seen {row['moved_sightings']} times)" if row["moved_to"] else None),
        ("304 untrue since", times.with_zone(row["lying_since"])),
        ("host", row["politeness_group"]),
    ]
    return [(name, value) for name, value in facts if value]


def _pace(row: dict[str, Any]) -> str:
    said = []
    if row["interval_seconds"]:
        said.append(f"every {in_words(row['interval_seconds'])}, as set")
    elif row["poll_seconds"]:
        said.append(f"adaptive, now about every {in_words(row['poll_seconds'])}")
    if row["items_per_day"] is not None:
        said.append(f"{row['items_per_day']:.3g} articles a day")
    bounds = [f"{name} {in_words(row[key])}" for name, key in _BOUNDS.items() if row[key]]
    if row["skip_hours"]:
        bounds.append(f"not in the hours {', '.join(map(str, row['skip_hours']))} (UTC)")
    if row["skip_days"]:
        bounds.append(f"not on {', '.join(day_name[day] for day in row['skip_days'])}")
    return "; ".join([*said, *bounds])


_BOUNDS = {"at least": "shortest_seconds", "at most": "longest_seconds", "the feed asks for": "ttl_seconds"}


def _is_claimed(row: dict[str, Any]) -> bool:
    return row["claim_expires_at"] is not None and row["claim_expires_at"] > datetime.now(UTC)


def _in_flight(row: dict[str, Any], times: Times) -> str | None:
    if not _is_claimed(row) or row["retry_at"]:
        return None
    since = f"issued {times.with_zone(row['issued_at'])}, " if row["issued_at"] else ""
    return f"{since}claimed until {times.with_zone(row['claim_expires_at'])}"


def _week(row: dict[str, Any]) -> str | None:
    if not row["attempts"]:
        return None
    seconds = "" if row["mean_seconds"] is None else f", {row['mean_seconds']:.2f} s each"
    return f"{row['attempts']} attempts, {100 * row['success_rate']:.0f} % good{seconds}"


def _ago(seconds: float | None) -> str | None:
    return None if seconds is None else f"{in_words(max(seconds, 0.0))} ago"


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
) -> None:
    """Change how feeds are polled. One that is enabled again starts anew, with its failures forgotten."""
    spans = {"interval_seconds": interval, "shortest_seconds": shortest, "longest_seconds": longest}
    changes: dict[str, Any] = {column: seconds or None for column, seconds in spans.items() if seconds is not None}
    changes |= {} if priority is None else {"priority": priority}
    changes |= {} if name is None else {"name": name or None}
    if not changes and enable is None:
        raise ConfigurationError(
            "nothing to change: give --interval, --shortest, --longest, --priority, --name, --enable or --disable"
        )
    if shortest and longest and shortest > longest:
        raise ConfigurationError("--shortest is more than --longest: give a span from the shorter to the longer one")
    for feed in feeds:
        with connect_here() as connection:
            id_ = registered.find_feed(connection, feed)
            registered.change_feed(connection, id_, changes, enable=enable)
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
        return f"is {_in_flight(row, times)}: it is being fetched" if _is_claimed(row) else "is due now"
    retry = _retry(row, times.with_zone(row["retry_at"]))
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
