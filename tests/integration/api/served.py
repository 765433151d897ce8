"""The API on a loopback port, for clients that are not asynchronous: a thread of the test's process runs it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from pydantic import AmqpDsn, PostgresDsn

from services.api.app import make_app
from services.api.resources import Resources, open_database
from services.api.settings import ApiSettings
from tests.integration.api.conftest import Caller


@contextmanager
def serving_api(database_url: str, amqp_url: str, caller: Caller | None = None) -> Iterator[str]:
    """Yield the URL of an API on these servers; its caller is an admin by default."""
    settings = ApiSettings(database_url=PostgresDsn(database_url), amqp_url=AmqpDsn(amqp_url))
    who = caller or Caller()
    listening = socket.create_server(("127.0.0.1", 0))
    server: list[uvicorn.Server] = []
    ready = threading.Event()

    async def serve() -> None:
        async with open_database(settings).open() as database:
            app = make_app(Resources(settings, database), who.authenticate)
            server.append(uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")))
            ready.set()
            await server[0].serve([listening])

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(30)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server[0].should_exit = True
        thread.join(30)
        listening.close()
    assert not thread.is_alive()
