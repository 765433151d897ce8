"""`python -m services.scheduler`: puts the scheduler together and runs it."""

from __future__ import annotations

import asyncio

from services.scheduler.settings import SchedulerSettings
from services.scheduler.silence import SilenceWatch
from services.scheduler.tick import Tick
from services.scheduler.ticker import Ticker
from shared.postgres import Database, tables_found
from shared.rabbitmq import RabbitMQ
from shared.service import run_service
from shared.telemetry import Health

CONNECTIONS = 3
"""Database connections of one scheduler: the claim at hand, the look for silence, and one to spare for a check."""


async def serve(settings: SchedulerSettings, stop: asyncio.Event, health: Health) -> None:
    """Tick until `stop`."""
    topology = settings.topology()
    database = Database(
        str(settings.database_url),
        size=CONNECTIONS,
        prepared=settings.prepared_statements,
        statement_seconds=settings.statement_seconds,
    )
    tick = Tick(
        database,
        topology,
        batch=settings.claim_batch,
        claim_seconds=settings.claim_seconds,
        high_water=settings.fetcher_high_water,
        group_jobs=settings.group_jobs,
    )
    broker = RabbitMQ(str(settings.amqp_url), name="feedmill scheduler", max_message_bytes=settings.max_message_bytes)
    ticker = Ticker(broker, topology, tick, full=settings.claim_batch, seconds=settings.tick_seconds)
    health.add_check("broker", ticker.check)
    health.add_check("database", database.check)
    watch = SilenceWatch(database, seconds=settings.silence_seconds)
    health.add_warning("silence", watch.check)
    async with database.open():
        if await tables_found(database, stop):
            watching = asyncio.create_task(watch.run(stop))
            try:
                await ticker.run(stop)
            finally:
                stop.set()
                await watching


if __name__ == "__main__":
    run_service("scheduler", SchedulerSettings, serve)
