"""RabbitMQ behind the port of `shared/broker/port.py`: connect, declare the topology, open a session.

Only this module, `session`, `publisher` and `amqp` know the AMQP library. Messages go straight through aiormq's
channel, on which aio-pika is built: aio-pika's objects, tasks and futures were a seventh of what an unchanged feed cost
the fetcher.

A session has two connections, one to consume and one to publish: a broker that throttles publishers (memory or disk
alarm) then still accepts acknowledgements. Nothing is repaired in place. When either connection ends, the session is
lost, and its owner connects anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiormq.exceptions import ProbableAuthenticationError

from shared.broker.amqp import Connection, close_quietly, heartbeat_seconds, make_connection, open_channel, translated
from shared.broker.port import Session
from shared.broker.publisher import SizeLimit
from shared.broker.session import RabbitMQSession
from shared.broker.topology import Topology
from shared.errors import BrokerUnavailable
from shared.observability.secrets import mask_credentials

CONNECT_TIMEOUT_SECONDS = 10.0


class RabbitMQ:
    """A broker at an AMQP URL.

    Args:
        url: with user and password.
        name: the connections' name in the management UI.
        max_message_bytes: larger bodies are refused before they are sent, since RabbitMQ closes the channel over one.
    """

    def __init__(self, url: str, *, name: str, max_message_bytes: int) -> None:
        self._url = url
        self._name = name
        self._size_limit = SizeLimit(max_message_bytes)
        self.heartbeat_seconds = heartbeat_seconds(url)
        """The broker may end a connection that is silent for longer; 0: it never does."""

    @property
    def max_message_bytes(self) -> int:
        """The largest body that is published: as configured, or less if the broker turned out to accept less."""
        return self._size_limit.bytes

    @asynccontextmanager
    async def connect(self, topology: Topology | None) -> AsyncIterator[Session]:
        """Connect, declare `topology` (None: nothing), yield a session, close it."""
        consuming = await self._open("consume")
        try:
            publishing = await self._open("publish")
            try:
                session = RabbitMQSession(consuming, publishing, self._size_limit)
                await session.open(topology)
                try:
                    yield session
                finally:
                    await session.flush()
            finally:
                await close_quietly(publishing)
        finally:
            await close_quietly(consuming)

    async def delete(self, topology: Topology) -> None:
        """Delete the topology's queues with all that they hold, and its exchanges (the demo cleans up after itself)."""
        connection = await self._open("delete")
        try:
            with translated("delete the queues"):
                channel = await open_channel(connection)
                for queue in topology.queues:
                    await channel.queue_delete(queue.name)
                for exchange in topology.exchanges:
                    await channel.exchange_delete(exchange.name)
        finally:
            await close_quietly(connection)

    async def _open(self, purpose: str) -> Connection:
        connection = make_connection(self._url, name=f"{self._name} ({purpose})")
        try:
            with translated(f"connect to {mask_credentials(self._url)}", but=(ProbableAuthenticationError,)):
                async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                    await connection.connect()
        except ProbableAuthenticationError as error:
            said = f"{mask_credentials(self._url)} refused the user or password: {error}"
            raise BrokerUnavailable(said) from error
        except BrokerUnavailable as error:
            raise BrokerUnavailable(mask_credentials(str(error))) from error
        return connection
