"""`python -m services.api`: puts the API together and runs it."""

from __future__ import annotations

import asyncio
import logging

from services.admin.health.backlog import SAMPLE_SECONDS
from services.api.access.serving import configure_server, guarded, housekeeping, open_access
from services.api.app import make_app
from services.api.pages.warming import warm_up
from services.api.resources import Resources, open_database
from services.api.ringing import LOOK_SECONDS as RINGING_SECONDS
from services.api.ringing import Ringing
from services.api.server import listen, run_server
from services.api.settings import ApiSettings
from services.api.watched import Measured, Probed
from shared.background import PeriodicTask, beside
from shared.database.postgres import tables_found
from shared.observability.telemetry import Health
from shared.service import run_service

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""How often the database is asked whether it is there: while we are not ready, nobody else asks it."""

GRACE_SECONDS = 5.0
"""How long a periodic task may go on when the service stops."""


async def serve(settings: ApiSettings, stop: asyncio.Event, health: Health) -> None:
    """Answer requests until `stop`; from the first moment, so that what is wrong is said over HTTP as well."""
    settings.require_loopback_if_open()
    database = open_database(settings)
    health.add_check("database", database.check)
    health.add_check("service", lambda: "stopping" if stop.is_set() else None)
    resources = Resources(settings, database, stop)
    access = open_access(settings, resources)
    app = guarded(make_app(resources, access.authenticate), settings)
    server = configure_server(Probed(Measured(app), health))
    watching = (
        PeriodicTask("alarms", Ringing(resources).look, seconds=RINGING_SECONDS),
        PeriodicTask("backlog", resources.backlog.take, seconds=SAMPLE_SECONDS),
    )
    tasks = (*housekeeping(settings, database, access), *watching)
    for task in tasks:
        health.add_warning(f"background {task.name}", task.check)
    async with database.open():
        with listen(settings.api_host, settings.api_port) as listening:
            host, port = listening.getsockname()[:2]
            log.info("listening", extra={"api": f"http://{f'[{host}]' if ':' in host else host}:{port}/api"})
            beside_it = _keep_house(resources, tasks, stop), _end_waits(resources, stop)
            async with beside(stop, *beside_it, grace_seconds=GRACE_SECONDS):
                await run_server(server, listening, stop)


async def _end_waits(resources: Resources, stop: asyncio.Event) -> None:
    """Answer claims that wait, so that the server can end."""
    await stop.wait()
    resources.arrivals.close()


async def _keep_house(resources: Resources, tasks: tuple[PeriodicTask, ...], stop: asyncio.Event) -> None:
    """Wait for the tables; then warm up, run the tasks, and look whether the database is there, again and again."""

    async def look() -> None:
        await resources.database.read_clock()

    if await tables_found(resources.database, stop):
        looking = PeriodicTask("database", look, seconds=LOOK_SECONDS)
        await asyncio.gather(warm_up(resources), *(task.run(stop) for task in (looking, *tasks)))


if __name__ == "__main__":
    run_service("api", ApiSettings, serve)
