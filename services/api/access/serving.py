"""The API on the network: how uvicorn runs it, and the housekeeping beside it."""

from __future__ import annotations

import logging

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from services.admin.access import answers, audit_rows, sessions, tokens
from services.api.access.bearer import TokenAccess
from services.api.access.guard import Guard, Limits
from services.api.access.protocol import BoundedProtocol
from services.api.resources import Resources
from services.api.settings import ApiSettings
from shared.background import PeriodicTask
from shared.database.postgres import Database

log = logging.getLogger(__name__)

USES_SECONDS = 15.0
SWEEP_SECONDS = 600.0


def open_access(settings: ApiSettings, resources: Resources) -> TokenAccess:
    """Return who tells who asks.

    Raises:
        ConfigurationError: the API would be open to others.
    """
    settings.require_loopback_if_open()
    if settings.api_open:
        log.warning(
            "FEEDMILL_API_OPEN: anybody who reaches %s may do everything without a token. For development only",
            settings.api_host,
        )
    return TokenAccess(resources.database, resources.remembered, is_open=settings.api_open)


def guarded(app: FastAPI, settings: ApiSettings, limits: Limits | None = None) -> ASGIApp:
    """Return the app behind its guard."""
    guard: ASGIApp = Guard(app, settings.host_set(), limits, app.state.show)
    if settings.api_proxies:
        guard = ProxyHeadersMiddleware(guard, trusted_hosts=settings.api_proxies)  # type: ignore[arg-type,assignment]
    return guard


def configure_server(app: ASGIApp) -> uvicorn.Config:
    """Return how uvicorn runs a guarded app. Only FEEDMILL_API_PROXIES says which proxies are believed."""
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,  # longer than proxies keep connections to us (nginx: 60 s)
    )


def housekeeping(settings: ApiSettings, database: Database, access: TokenAccess) -> tuple[PeriodicTask, ...]:
    """Return what runs beside the server. Each replica may do it."""

    async def sweep() -> None:
        async with database.transaction() as connection:
            await answers.forget_answers(connection)
            await sessions.forget_sessions(connection)
            await tokens.forget_tokens(connection, settings.audit_days)
        deleted = audit_rows.SWEPT_ROWS
        while deleted == audit_rows.SWEPT_ROWS:
            async with database.transaction() as connection:
                deleted = await audit_rows.forget_rows(connection, settings.audit_days)

    return (
        PeriodicTask("token uses", access.note_uses, seconds=USES_SECONDS),
        PeriodicTask("access", sweep, seconds=SWEEP_SECONDS),
    )
