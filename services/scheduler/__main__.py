"""`python -m services.scheduler`: puts the scheduler together and runs it. Owns the clock."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from services.scheduler.settings import SchedulerSettings
from services.scheduler.tick import Tick
from shared.broker import Session
from shared.errors import Unavailable
from shared.postgres import Database, tables_found
from shared.rabbitmq import RabbitMQ
from shared.service import run_service
from shared.telemetry import Health
from shared.waiting import keep_trying, pause

log = logging.getLogger(__name__)

CONNECTIONS = 2


async def serve(settings: SchedulerSettings, stop: asyncio.Event, health: Health) -> None:
    """Tick until `stop`; connect anew whenever the broker is lost."""
    topology = settings.topology()
    broker = RabbitMQ(str(settings.amqp_url), name="feedmill scheduler", max_message_bytes=settings.max_message_bytes)
    database = Database(str(settings.database_url), size=CONNECTIONS)
    tick = Tick(
        database,
        topology,
        batch=settings.claim_batch,
        claim_seconds=settings.claim_seconds,
        high_water=settings.fetcher_high_water,
    )
    standing: list[Session] = []
    health.add_check("broker", lambda: None if standing else "no session with the broker")

    async def run_session() -> None:
        async with broker.connect(topology) as session:
            standing.append(session)
            try:
                await tick_until(tick, session, stop, full=settings.claim_batch, seconds=settings.tick_seconds)
            finally:
                standing.clear()

    health.add_check("database", database.check)
    async with database.open():
        if not await tables_found(database, stop):
            return
        while not stop.is_set():
            with contextlib.suppress(Unavailable):  # only raised once `stop` is set
                await keep_trying(run_session, what="scheduling", until=(stop,))


async def tick_until(tick: Tick, session: Session, stop: asyncio.Event, *, full: int, seconds: float) -> None:
    """Tick every `seconds` until the service stops or the session is lost; at once again after a full batch."""
    while not (stop.is_set() or session.lost.is_set()):
        claimed = await tick.run(session)
        if claimed < full:
            await pause(seconds, stop, session.lost)


if __name__ == "__main__":
    run_service("scheduler", SchedulerSettings, serve)
