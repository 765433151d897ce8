"""Runs uvicorn: on a socket of ours, quiet, and with a graceful end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator

import uvicorn

from shared.errors import ConfigurationError

BACKLOG = 2048

DRAIN_SECONDS = 30
"""How long requests that are under way may go on after a stop."""


class _Server(uvicorn.Server):
    """The frame around every service handles signals; uvicorn must not."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def run_server(config: uvicorn.Config, listening: socket.socket, stop: asyncio.Event) -> None:
    """Answer requests until `stop`; then take no more, and return once those under way are answered.

    Those that take longer than `DRAIN_SECONDS` for it are cancelled.
    """
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # what strangers send wrong is counted, not logged
    config.timeout_graceful_shutdown = DRAIN_SECONDS
    server = _Server(config)
    serving = asyncio.create_task(server.serve([listening]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        server.should_exit = True
        await serving


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that takes connections.

    Raises:
        ConfigurationError: the port is taken, or the address is not this machine's.
    """
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
