"""`python -m services.api`: puts the API together and runs it."""

from __future__ import annotations

import asyncio
import logging

import uvicorn
from fastapi import Request
from starlette.types import ASGIApp

from services.admin.actor import Actor, Scope
from services.api.app import make_app
from services.api.resources import Resources, open_database
from services.api.server import listen, run_server
from services.api.settings import ApiSettings
from services.api.watched import Measured, Probed
from shared.background import PeriodicTask, beside
from shared.database.postgres import Database, tables_found
from shared.observability.telemetry import Health
from shared.service import run_service

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""How often the database is asked whether it is there: while we are not ready, nobody else asks it."""


async def serve(settings: ApiSettings, stop: asyncio.Event, health: Health) -> None:
    """Answer requests until `stop`; from the first moment, so that what is wrong is said over HTTP as well."""
    settings.require_loopback_if_open()
    database = open_database(settings)
    health.add_check("database", database.check)
    health.add_check("service", lambda: "stopping" if stop.is_set() else None)
    async with database.open():
        app = make_app(Resources(settings, database, stop), _anybody)
        with listen(settings.api_host, settings.api_port) as listening:
            host, port = listening.getsockname()[:2]
            log.info("listening", extra={"api": f"http://{f'[{host}]' if ':' in host else host}:{port}/api"})
            async with beside(stop, _watch(database, stop)):
                await run_server(_configure(Probed(Measured(app), health)), listening, stop)


def _configure(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )


async def _watch(database: Database, stop: asyncio.Event) -> None:
    """Wait for the tables; then look whether the database is there, again and again."""

    async def look() -> None:
        await database.read_clock()

    if await tables_found(database, stop):
        await PeriodicTask("database", look, seconds=LOOK_SECONDS).run(stop)


async def _anybody(_request: Request) -> Actor:
    return Actor("anybody", frozenset(Scope))


if __name__ == "__main__":
    run_service("api", ApiSettings, serve)
