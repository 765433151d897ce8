"""Private servers that die while services run are started again, as an operator's would be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from local.servers import PrivatePostgres, PrivateRabbitMQ, Servers
from shared.errors import ConfigurationError
from shared.waiting import pause

LOOK_SECONDS = 1.0


@asynccontextmanager
async def looking_after(servers: Servers | None, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Keep the servers running for the length of the block (None: they are somebody else's)."""
    if servers is None:
        yield
        return
    watching = asyncio.create_task(_watch(servers, say))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait({watching})


async def _watch(servers: Servers, say: Callable[[str], None]) -> None:
    while True:
        await pause(LOOK_SECONDS)
        for server in (servers.rabbitmq, servers.postgres):
            if not server.is_running():
                say(f"{type(server).__name__} died, starting it again")
                try:
                    await _start(server)
                except (ConfigurationError, OSError) as error:
                    say(f"it can't be started, trying again: {error}")


async def _start(server: PrivateRabbitMQ | PrivatePostgres) -> None:
    starting = asyncio.create_task(asyncio.to_thread(server.start))
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        # A thread can't be cancelled: whoever stops the servers next must not meet one that is half started.
        await asyncio.wait({starting})
        raise
