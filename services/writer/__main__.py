"""`python -m services.writer`: puts the writer together and runs it. Owns the clock."""

from __future__ import annotations

import asyncio
from functools import partial

from services.writer.handler import WriteArticles
from services.writer.pruning import ROUND_SECONDS, Pruning
from services.writer.settings import WriterSettings
from shared.background import PeriodicTask, beside
from shared.broker.consumer import Consumer
from shared.broker.deliveries import Batching
from shared.broker.port import Delivery
from shared.broker.rabbitmq import RabbitMQ
from shared.clock import ServerClock
from shared.database.postgres import Database, tables_found
from shared.observability.telemetry import Health
from shared.service import run_service
from shared.wire.results import FeedFetched

BATCHES = 2
"""Transactions at the same time: while the disk commits one, the next is prepared (measured: a third more)."""

CONNECTIONS = BATCHES + 1
"""Database connections of one writer: one for each batch, and one to spare."""

CLOCK_SECONDS = 5.0
"""How often the database's clock is read."""

GRACE_SECONDS = 5.0
"""What a round of housekeeping may take to its end when the service stops."""


async def serve(settings: WriterSettings, stop: asyncio.Event, health: Health) -> None:
    """Consume until `stop`."""
    topology = settings.topology()
    database = Database(
        str(settings.database_url),
        size=CONNECTIONS,
        prepared=settings.prepared_statements,
        statement_seconds=settings.statement_seconds,
    )
    clock = ServerClock()
    handler = WriteArticles(
        database,
        rules=settings.rules(),
        proxy_hosts=settings.proxy_host_set(),
        now=clock.now,
        policy=settings.policy(),
    )
    pruning = Pruning(database, settings.retention())

    async def set_clock() -> None:
        clock.observe(await database.read_clock())

    timekeeping = PeriodicTask("clock", set_clock, seconds=CLOCK_SECONDS)
    tidying = PeriodicTask("pruning", partial(pruning.round, stop), seconds=ROUND_SECONDS)
    consumer = Consumer(
        RabbitMQ(str(settings.amqp_url), name="feedmill writer", max_message_bytes=settings.max_message_bytes),
        topology,
        topology.writer,
        FeedFetched,
        handler,
        prefetch=settings.writer_prefetch,
        failures=settings.message_retries,
        batching=Batching(
            size=settings.writer_batch,
            linger_seconds=settings.writer_linger_seconds,
            weigh=count_entries,
            concurrency=BATCHES,
        ),
    )
    health.add_check("broker", consumer.check)
    health.add_check("database", database.check)
    health.add_warning("clock", clock.check)
    for rounds in (timekeeping, tidying):
        health.add_warning(f"background {rounds.name}", rounds.check)
    async with database.open():
        if await tables_found(database, stop):
            await timekeeping.run_once()  # before the first result is written
            async with beside(stop, timekeeping.run(stop), tidying.run(stop), grace_seconds=GRACE_SECONDS):
                await consumer.run(stop)


def count_entries(delivery: Delivery) -> int:
    """Return how much of a batch a result takes up: its entries, or one if it has none."""
    entries = delivery.headers.get("entries", 0)
    return max(1, entries) if isinstance(entries, int) else 1


if __name__ == "__main__":
    run_service("writer", WriterSettings, serve)
