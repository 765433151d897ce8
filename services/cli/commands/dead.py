"""The commands `feedmill dead …`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from local.addresses import find_broker
from services.admin import dead_letters as dead
from services.admin.feeds import find_feed
from services.cli.options import AsJson, Grep, OfFeed, Utc, Wide, Yes, connect_here
from services.cli.output import Column, Times, confirm, console, print_table
from services.cli.settings import CliSettings
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import Stage, Topology
from shared.errors import ConfigurationError
from shared.observability.display import ascii_json, safe_to_show
from shared.settings import BrokerSettings, read_settings

app = typer.Typer(help="Messages that could not be handled: look, requeue, purge.", no_args_is_help=True)

Service = Annotated[str | None, typer.Option(help="Only this service's dead queue: fetcher or writer.")]
Limit = Annotated[
    int, typer.Option("--limit", "--most", min=1, help="Look at so many letters of each queue, the oldest first.")
]
Ids = Annotated[
    list[str] | None, typer.Argument(help="Message ids, as `feedmill dead list` shows them, or their beginnings.")
]
All = Annotated[bool, typer.Option("--all", help="All of them.")]


def _broker() -> tuple[RabbitMQ, Topology]:
    settings = read_settings(BrokerSettings)
    amqp_url = find_broker(read_settings(CliSettings))
    return RabbitMQ(amqp_url, name="feedmill dead", max_message_bytes=settings.max_message_bytes), settings.topology()


@app.command("list")
def list_letters(
    service: Service = None,
    feed: OfFeed = None,
    grep: Grep = None,
    limit: Limit = 100,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List dead letters with the reason why they died."""
    broker, topology = _broker()
    letters = asyncio.run(dead.read_letters(broker, topology, dead.select_stages(topology, service), limit))
    rows = [letter.summary() for letter in letters]
    is_cut = max(Counter(row["queue"] for row in rows).values(), default=0) >= limit
    if feed is not None:
        id_ = _feed_id(feed)
        rows = [row for row in rows if row["feed_id"] == id_]
    if grep is not None:
        rows = [row for row in rows if grep.lower() in " ".join(map(str, row.values())).lower()]
    if as_json:
        print(ascii_json(rows))
        return
    times = Times(utc=utc, wide=wide)
    among = f" among the oldest {limit} of a queue: --limit looks at more" * is_cut
    show_letters(rows, times, wide=wide, note=f"{len(rows)} dead letters{among}; {times.note}")


def _feed_id(feed: str) -> int:
    """Return a feed's id; a number is one, also if the feed was removed."""
    if feed.isdecimal():
        return int(feed)
    with connect_here() as connection:
        return find_feed(connection, feed)


def show_letters(rows: Sequence[dict[str, Any]], times: Times, *, wide: bool, note: str) -> None:
    """Print letters (`DeadLetter.summary`) as a table."""
    columns = (
        Column("died", lambda row: _moment(row["died_at"], times)),
        Column("reason"),
        Column("error", flexible=True),
        Column("feed", "feed_id", right=True),
        Column("queue", flexible=True),
        Column("message", "message_id", cut=8),
    )
    print_table(columns, rows, wide=wide, note=note)


def _moment(text: str, times: Times) -> str:
    """Return when a letter died; the header may hold anything."""
    try:
        return times(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return text[:20]


@app.command()
def show(
    message_id: Annotated[str, typer.Argument(help="As `feedmill dead list` shows it, or its beginning.")],
    service: Service = None,
    limit: Limit = 1000,
) -> None:
    """Show one dead letter: its headers and its body."""
    broker, topology = _broker()
    stages = dead.select_stages(topology, service)
    letters = asyncio.run(
        dead.read_letters(broker, topology, stages, limit, lambda delivery: delivery.message_id.startswith(message_id))
    )
    (found,) = dead.match_ids([message_id], [letter.delivery.message_id for letter in letters])
    for letter in letters:
        if letter.delivery.message_id == found:
            for name, value in sorted(letter.delivery.headers.items()):
                console.print(f"{safe_to_show(name)}: {safe_to_show(value)}", soft_wrap=True, highlight=False)
            print(letter.body())
            return


@app.command()
def requeue(ids: Ids = None, everything: All = False, service: Service = None, limit: Limit = 1000) -> None:
    """Send dead letters back to the queue where they failed, to be handled as if for the first time."""
    _say_which(ids, everything=everything)
    broker, topology = _broker()
    stages = dead.select_stages(topology, service)
    chosen = set(dead.match_ids(ids, _read_ids(broker, topology, stages, limit))) if ids else None
    count = asyncio.run(dead.requeue_letters(broker, topology, stages, chosen, limit))
    console.print(f"{count} requeued")


@app.command()
def purge(
    ids: Ids = None, everything: All = False, service: Service = None, limit: Limit = 1000, yes: Yes = False
) -> None:
    """Throw dead letters away for good, after a question."""
    _say_which(ids, everything=everything)
    broker, topology = _broker()
    stages = dead.select_stages(topology, service)
    found = _read_ids(broker, topology, stages, limit)
    chosen = set(dead.match_ids(ids, found) if ids else found)
    if chosen and not yes:
        number = sum(id_ in chosen for id_ in found)
        confirm(f"throw {number} dead letters away for good?")
    count = asyncio.run(dead.purge_letters(broker, topology, stages, chosen, limit))
    console.print(f"{count} purged")


def _say_which(ids: list[str] | None, *, everything: bool) -> None:
    if bool(ids) == everything:
        raise ConfigurationError("say which: message ids, or --all")


def _read_ids(broker: RabbitMQ, topology: Topology, stages: list[Stage], limit: int) -> list[str]:
    letters = asyncio.run(dead.read_letters(broker, topology, stages, limit))
    return [letter.delivery.message_id for letter in letters]
