"""`python -m services.api`: puts the API together and runs it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator

import uvicorn
from fastapi import Request

from services.admin.actor import Actor, Scope
from services.api.app import make_app
from services.api.resources import Resources, open_database
from services.api.settings import ApiSettings
from shared.errors import ConfigurationError
from shared.observability.telemetry import Health
from shared.service import run_service

log = logging.getLogger(__name__)

BACKLOG = 2048


class _Server(uvicorn.Server):
    """The frame around every service handles signals; uvicorn must not."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(settings: ApiSettings, stop: asyncio.Event, health: Health) -> None:
    """Answer requests until `stop`."""
    database = open_database(settings)
    health.add_check("database", database.check)
    async with database.open():
        resources = Resources(settings, database)
        app = make_app(resources, _anybody)
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", server_header=False)
        server = _Server(config)
        with _listen(settings.api_host, settings.api_port) as listening:
            host, port = listening.getsockname()[:2]
            log.info("listening", extra={"api": f"http://{host}:{port}/api"})
            serving = asyncio.create_task(server.serve([listening]))
            await stop.wait()
            resources.arrivals.close()  # claims that wait are answered, so that the server can end
            server.should_exit = True
            await serving


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol, by which asyncio knows that it may switch Nagle's delay (40 ms) off.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
        return listening
    except (OSError, OverflowError) as error:
        listening.close()
        raise ConfigurationError(
            f"cannot listen on {host}:{port} (FEEDMILL_API_HOST, FEEDMILL_API_PORT): {error}"
        ) from error


async def _anybody(_request: Request) -> Actor:
    return Actor("anybody", frozenset(Scope))


if __name__ == "__main__":
    run_service("api", ApiSettings, serve)
