"""`python -m services.writer`: puts the writer together and runs it. Owns the clock."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from services.writer.handler import WriteArticles
from services.writer.pruning import Pruning
from services.writer.settings import WriterSettings
from shared.arrivals import Batching
from shared.broker import Delivery
from shared.consumer import Consumer
from shared.messages import FeedFetched
from shared.postgres import Database, tables_found
from shared.rabbitmq import RabbitMQ
from shared.service import run_service
from shared.telemetry import Health

BATCHES = 2
"""Transactions at the same time: while the disk commits one, the next is prepared (measured: a third more)."""

CONNECTIONS = BATCHES + 1
"""Database connections of one writer: one for each batch, and one to spare."""


async def serve(settings: WriterSettings, stop: asyncio.Event, health: Health) -> None:
    """Consume until `stop`."""
    topology = settings.topology()
    database = Database(
        str(settings.database_url),
        size=CONNECTIONS,
        prepared=settings.prepared_statements,
        statement_seconds=settings.statement_seconds,
    )
    handler = WriteArticles(
        database,
        rules=settings.rules(),
        proxy_hosts=settings.proxy_host_set(),
        now=lambda: datetime.now(UTC),
        policy=settings.policy(),
    )
    pruning = Pruning(database, settings.retention())
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
    async with database.open():
        if await tables_found(database, stop):
            tidying = asyncio.create_task(pruning.run(stop))
            try:
                await consumer.run(stop)
            finally:
                stop.set()
                await tidying


def count_entries(delivery: Delivery) -> int:
    """Return how much of a batch a result takes up: its entries, or one if it has none."""
    entries = delivery.headers.get("entries", 0)
    return max(1, entries) if isinstance(entries, int) else 1


if __name__ == "__main__":
    run_service("writer", WriterSettings, serve)
