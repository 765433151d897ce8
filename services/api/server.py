"""Runs the API's app on uvicorn: bounded, quiet, and with a graceful end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from shared.errors import ConfigurationError

BACKLOG = 2048

DRAIN_SECONDS = 30.0
"""How long requests that are under way may go on after a stop."""

KEEP_ALIVE_SECONDS = 75
"""An idle connection is kept for so long: longer than a proxy before us keeps it (60 s with nginx), so that the proxy
closes first and never sends a request into a connection that we just close."""

HEADER_SECONDS = 20.0
"""The time for a request's head to arrive, from its first byte; and for the first byte of a new connection."""

HEADER_BYTES = 32 * 1024
"""The size of a request's head, at most."""

CONNECTIONS = 1000
"""Connections at a time; to a request on a further one the answer is 503."""


class _Protocol(H11Protocol):
    """One connection. uvicorn gives a client for ever to send a request's head; here it has `HEADER_SECONDS`."""

    _head_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        if self._waits_for_head() and self._head_due is None:
            self._expect_head()
        super().data_received(data)
        if not self._waits_for_head():
            self._forget_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def _waits_for_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect_head(self) -> None:
        self._head_due = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _forget_head(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _give_up(self) -> None:
        self._head_due = None
        if self._waits_for_head():
            self.transport.close()


class _Server(uvicorn.Server):
    """The frame around every service handles signals; uvicorn must not."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def run_server(app: ASGIApp, listening: socket.socket, stop: asyncio.Event) -> None:
    """Answer requests until `stop`; then take no more, and return once those under way are answered.

    Those that take longer than `DRAIN_SECONDS` for it are cancelled.
    """
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # what a stranger sends is no news; our metrics count it
    config = uvicorn.Config(
        cast("Any", app),  # Starlette's type of apps says the same in other words
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=HEADER_BYTES,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(DRAIN_SECONDS),
    )
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
