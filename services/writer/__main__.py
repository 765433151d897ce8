"""`python -m services.writer`: puts the writer together and runs it."""

from __future__ import annotations

import asyncio
import gc
from functools import partial

from services.writer.duplicates.settling import ROUND_SECONDS as SETTLING_SECONDS
from services.writer.duplicates.settling import Settling
from services.writer.fires.trials import TryArticles
from services.writer.handler import WriteArticles
from services.writer.pruning import ROUND_SECONDS, Pruning
from services.writer.settings import WriterSettings
from shared.background import PeriodicTask, beside
from shared.broker.consumer import Batching, Consumer, count_entries
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import TRIALS
from shared.clock import ServerClock
from shared.database.postgres import Database, tables_found
from shared.observability.telemetry import Health
from shared.service import run_service
from shared.wire.results import FeedFetched

BATCHES = 2
"""Transactions at the same time: while the disk commits one, the next is prepared (measured: a third more)."""

CONNECTIONS = BATCHES + 2
"""Database connections of one writer: one for each batch, one for dry runs, and one to spare."""

TRIALS_AT_HAND = 4
"""Results of dry runs that a writer holds; it looks at one at a time."""

YOUNG_OBJECTS = 20_000
"""The garbage collector runs when there are so many objects more than at its last run. An entry is about ten objects,
so the default of 700 runs it every few dozen entries, for nothing (measured: a sixth of the writer's CPU time)."""

CLOCK_SECONDS = 5.0
"""How often the database's clock is read."""

GRACE_SECONDS = 5.0
"""After a stop, a round of pruning may take so long to end."""


async def serve(settings: WriterSettings, stop: asyncio.Event, health: Health) -> None:
    """Consume until `stop`."""
    gc.set_threshold(YOUNG_OBJECTS)
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
        retry_seconds=settings.retry_delay_seconds,
    )
    consumer = make_consumer(settings, handler)
    trials = make_trial_consumer(settings, TryArticles(handler))

    async def set_clock() -> None:
        clock.observe(await database.read_clock())

    timekeeping = PeriodicTask("clock", set_clock, seconds=CLOCK_SECONDS)
    pruning = Pruning(database, settings.retention())
    tidying = PeriodicTask("pruning", partial(pruning.round, stop), seconds=ROUND_SECONDS)
    settling = PeriodicTask("settling", Settling(database, settings.duplicates).round, seconds=SETTLING_SECONDS)
    health.add_check("broker", consumer.check)
    health.add_check("database", database.check)
    health.add_warning("dry runs", trials.check)
    health.add_warning("clock", clock.check)
    for task in (timekeeping, tidying, settling):
        health.add_warning(f"background {task.name}", task.check)
    async with database.open():
        if await tables_found(database, stop):
            await timekeeping.run_once()  # before the first result is written
            background = timekeeping.run(stop), tidying.run(stop), settling.run(stop), trials.run(stop)
            async with beside(stop, *background, grace_seconds=GRACE_SECONDS):
                await consumer.run(stop)


def make_consumer(settings: WriterSettings, handler: WriteArticles) -> Consumer[FeedFetched]:
    """Return the consumer of the queue `writer`."""
    topology = settings.topology()
    return Consumer(
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


def make_trial_consumer(settings: WriterSettings, handler: TryArticles) -> Consumer[FeedFetched]:
    """Return the consumer of the queue `writer.trials`."""
    return Consumer(
        RabbitMQ(str(settings.amqp_url), name="feedmill writer trials", max_message_bytes=settings.max_message_bytes),
        settings.topology(),
        TRIALS,
        FeedFetched,
        handler,
        prefetch=TRIALS_AT_HAND,
        failures=0,
        batching=Batching(concurrency=1),
    )


if __name__ == "__main__":
    run_service("writer", WriterSettings, serve)
