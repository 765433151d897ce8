"""`python -m services.scheduler`: puts the scheduler together and runs it."""

from __future__ import annotations

import asyncio

from services.scheduler.pending import PendingWatch
from services.scheduler.settings import SchedulerSettings
from services.scheduler.silence import LOOK_SECONDS, SilenceWatch
from services.scheduler.tick import Tick, Ticker
from services.scheduler.timekeeping import WORD_SECONDS, ClockAnnouncer
from shared.background import PeriodicTask, beside
from shared.broker.rabbitmq import RabbitMQ
from shared.clock import ServerClock
from shared.database.postgres import Database, tables_found
from shared.observability.telemetry import Health
from shared.service import run_service

CONNECTIONS = 4
"""Database connections of one scheduler: for the claim, the silence alarm, the count of pending articles, the clock."""

GRACE_SECONDS = 5.0
"""How long a periodic task may go on when the service stops."""


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
    clock = ServerClock()
    silence = SilenceWatch(database, seconds=settings.silence_seconds)
    housekeeping = (
        PeriodicTask("clock", ClockAnnouncer(database, clock, lambda: ticker.session).look, seconds=WORD_SECONDS),
        PeriodicTask("silence", silence.look, seconds=LOOK_SECONDS),
        PeriodicTask("pending", PendingWatch(database).look, seconds=LOOK_SECONDS),
    )
    health.add_warning("silence", silence.check)
    health.add_warning("clock", clock.check)
    for rounds in housekeeping:
        health.add_warning(f"background {rounds.name}", rounds.check)
    async with database.open():
        if await tables_found(database, stop):
            async with beside(stop, *(rounds.run(stop) for rounds in housekeeping), grace_seconds=GRACE_SECONDS):
                await ticker.run(stop)


if __name__ == "__main__":
    run_service("scheduler", SchedulerSettings, serve)
