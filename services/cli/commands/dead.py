"""The commands `feedmill dead …`."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Annotated, Any

import typer
from rich.table import Table

from local import addresses
from local.terminal import Terminal
from services.admin import dead_letters as dead
from services.cli.settings import CliSettings
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import Topology
from shared.errors import ConfigurationError
from shared.observability.display import ascii_json, safe_to_show
from shared.settings import BrokerSettings, read_settings

app = typer.Typer(help="Messages that could not be handled: look, requeue, purge.", no_args_is_help=True)
console = Terminal()
MOST_ID_COLUMNS = 36
"""Of ours 32, of a UUID 36. A longer one is cut in the table; `--json` has it whole."""

Service = Annotated[str | None, typer.Option(help="Only this service's dead queue: fetcher or writer.")]
Most = Annotated[int, typer.Option(min=1, help="Look at so many letters of each queue, the oldest first.")]
Ids = Annotated[list[str] | None, typer.Argument(help="Message ids, as `feedmill dead list` shows them.")]
All = Annotated[bool, typer.Option("--all", help="All of them.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def _broker() -> tuple[RabbitMQ, Topology]:
    settings = read_settings(BrokerSettings)
    where = addresses.find(read_settings(CliSettings))
    broker = RabbitMQ(where.amqp_url, name="feedmill dead", max_message_bytes=settings.max_message_bytes)
    return broker, settings.topology()


@app.command("list")
def list_letters(service: Service = None, most: Most = 100, as_json: AsJson = False) -> None:
    """List dead letters with the reason why they died."""
    broker, topology = _broker()
    letters = asyncio.run(dead.read_letters(broker, topology, dead.select_stages(topology, service), most))
    rows = [letter.summary() for letter in letters]
    if as_json:
        print(ascii_json(rows))
        return
    console.print(make_table(rows, most))


def make_table(rows: list[dict[str, Any]], most: int) -> Table:
    """Return the letters as a table. An id stays on one line, to be copied; a stranger's long one is cut."""
    is_cut = max(Counter(row["queue"] for row in rows).values(), default=0) >= most
    table = Table(caption=f"{len(rows)} dead letters" + f", the oldest {most} of a queue: --most shows more" * is_cut)
    table.add_column("message", no_wrap=True, min_width=32, max_width=MOST_ID_COLUMNS)
    for column in ("queue", "reason", "error", "died"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(safe_to_show(row[name]) for name in ("message_id", "queue", "reason", "error", "died_at")))
    return table


@app.command()
def show(
    message_id: Annotated[str, typer.Argument(help="As `feedmill dead list` shows it.")],
    service: Service = None,
    most: Most = 1000,
) -> None:
    """Show one dead letter: its headers and its body."""
    broker, topology = _broker()
    stages = dead.select_stages(topology, service)
    letters = asyncio.run(
        dead.read_letters(broker, topology, stages, most, keep=lambda delivery: delivery.message_id == message_id)
    )
    for letter in letters:
        if letter.delivery.message_id == message_id:
            for name, value in sorted(letter.delivery.headers.items()):
                console.print(f"{safe_to_show(name)}: {safe_to_show(value)}", soft_wrap=True, highlight=False)
            print(letter.body())
            return
    raise ConfigurationError(f"there is no dead letter {message_id}: see `feedmill dead list`")


@app.command()
def requeue(ids: Ids = None, everything: All = False, service: Service = None, most: Most = 1000) -> None:
    """Send dead letters back to the queue where they failed, to be handled as if for the first time."""
    count = _settle(ids, everything, service, most, back=True)
    console.print(f"{count} requeued")


@app.command()
def purge(ids: Ids = None, everything: All = False, service: Service = None, most: Most = 1000) -> None:
    """Throw dead letters away for good."""
    count = _settle(ids, everything, service, most, back=False)
    console.print(f"{count} purged")


def _settle(ids: list[str] | None, everything: bool, service: str | None, most: int, *, back: bool) -> int:
    if bool(ids) == everything:
        raise ConfigurationError("say which: message ids, or --all")
    broker, topology = _broker()
    stages = dead.select_stages(topology, service)
    chosen = set(ids) if ids else None
    act = dead.requeue_letters if back else dead.purge_letters
    count = asyncio.run(act(broker, topology, stages, chosen, most))
    if chosen and count < len(chosen):
        raise ConfigurationError(
            f"{count} of {len(chosen)} were found among the oldest {most}: see `feedmill dead list`"
        )
    return count
