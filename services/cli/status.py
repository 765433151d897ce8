"""`feedmill status`: the backlog, the feeds, the articles, at one glance."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from services.cli.addresses import Addresses
from services.cli.registry import connect, count_all
from shared.rabbitmq import RabbitMQ
from shared.settings import BrokerSettings, read_settings


@dataclass(frozen=True)
class Status:
    """Ready messages by queue (None: there is no such queue yet), and counts of feeds and articles."""

    queues: dict[str, int | None]
    counts: dict[str, int]


def look(addresses: Addresses) -> Status:
    """Return how things stand.

    Raises:
        Unavailable: broker or database away.
        ConfigurationError: not migrated yet.
    """
    with connect(addresses.database_url) as connection:
        counts = count_all(connection)
    return Status(asyncio.run(_depths(addresses.amqp_url)), counts)


async def _depths(amqp_url: str) -> dict[str, int | None]:
    topology = read_settings(BrokerSettings).topology()
    broker = RabbitMQ(amqp_url, name="feedmill status", max_message_bytes=1024)
    async with broker.connect(None) as session:
        return {queue.name: await session.count_ready(queue.name) for queue in topology.queues}


def show(status: Status, console: Console) -> None:
    """Print it as two tables."""
    queues = Table("queue", title="messages ready")
    queues.add_column("ready", justify="right")
    for name, ready in status.queues.items():
        queues.add_row(name, "not declared" if ready is None else str(ready))
    counts = Table("what", title="feeds and articles")
    counts.add_column("number", justify="right")
    for name, number in status.counts.items():
        counts.add_row(name.replace("_", " "), str(number))
    console.print(queues, counts)
