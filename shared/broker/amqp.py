"""The AMQP library: connections, errors, declaring the topology, messages to and from its types."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import aio_pika
import aiormq
from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractQueue, TimeoutType, UnderlayConnection
from aio_pika.exceptions import AMQPError, ChannelPreconditionFailed
from aiormq.channel import Channel
from yarl import URL

from shared.broker.frames import FrameTransport
from shared.broker.message_channel import MessageChannel
from shared.broker.topology import Queue, Topology
from shared.errors import BrokerUnavailable, TopologyMismatch

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 20
"""Unless the URL says otherwise. RabbitMQ ends a connection that was silent for two to three of these."""

AWAY = (AMQPError, OSError, asyncio.TimeoutError, RuntimeError)
"""Every error of a lost or refusing broker (RuntimeError: "channel is closed" and the like)."""

CLOSE_SECONDS = 5.0


class _Wire(aiormq.Connection):
    """aiormq's connection with an unlimited frame buffer.

    With the default buffer the library drops its answer to a closed channel if ten frames wait at that moment. The
    broker then takes the next channel of that number for a second opening and ends the connection. With an unlimited
    buffer an acknowledgement never waits either, so it can't be cancelled.
    """

    FRAME_BUFFER_SIZE = 0

    def __init__(self, url: URL, **kwargs: Any) -> None:
        self.ends = FrameTransport()
        super().__init__(url, transport_factory=self.ends, **kwargs)


class _Underlay(UnderlayConnection):
    """Makes aio-pika use our connections."""

    @classmethod
    async def make_connection(
        cls,
        url: URL,
        timeout: TimeoutType = None,  # noqa: ASYNC109 - as aio-pika declares it
        **kwargs: Any,
    ) -> aiormq.abc.AbstractConnection:
        properties = kwargs.pop("client_properties", None)
        wire = _Wire(url, **kwargs)
        await asyncio.wait_for(wire.connect(client_properties=properties), timeout)
        return wire


class Connection(aio_pika.Connection):
    """aio-pika's connection over ours."""

    async def connect(self, timeout: TimeoutType = None) -> None:  # noqa: ASYNC109 - as aio-pika declares it
        """Connect. Raises what the library raises."""
        self.transport = await _Underlay.connect(self.url, self._on_connection_close, timeout=timeout, **self.kwargs)
        await self._on_connected()

    def __del__(self) -> None:
        """Do nothing: its owner closes it. aio-pika would close it here, where there may be no event loop."""

    async def ready(self) -> None:
        """Wait while the broker says that it is blocked (memory or disk alarm)."""
        if self.transport is None:
            raise ConnectionError("the connection is closed")
        await self.transport.ready()


def heartbeat_seconds(url: str) -> int:
    """Return the heartbeat timeout (seconds) that a URL names, or the default; 0: no heartbeats."""
    text = URL(url).query.get("heartbeat", "")
    return int(text) if text.isdecimal() else HEARTBEAT_SECONDS


def make_connection(url: str, *, name: str) -> Connection:
    """Return a connection that is not open yet; the management UI shows `name`."""
    address = URL(url).update_query(heartbeat=heartbeat_seconds(url))
    return Connection(address, client_properties={"connection_name": name, "product": "feedmill"})


@contextmanager
def translated(what: str, *, but: tuple[type[AMQPError], ...] = ()) -> Iterator[None]:
    """Raise BrokerUnavailable ("cannot `what`") for every error that means "away", except for those of `but`.

    The library cancels pending calls when it misses heartbeats. Such a cancellation counts as one of these errors,
    since nobody asked this task to end.
    """
    task = asyncio.current_task()
    assert task is not None
    requests = task.cancelling()
    try:
        yield
    except but:
        raise
    except AWAY as error:
        raise BrokerUnavailable(f"cannot {what}: {error!r}") from error
    except asyncio.CancelledError as error:
        if task.cancelling() > requests:
            raise
        raise BrokerUnavailable(f"cannot {what}: the connection was given up") from error


async def close_quietly(connection: Connection) -> None:
    """Close a connection; a failure is only logged."""
    try:
        with translated("close a connection"):
            async with asyncio.timeout(CLOSE_SECONDS):
                await connection.close()
    except BrokerUnavailable as error:
        log.debug("%s", error)


async def open_channel(connection: AbstractConnection, *, confirms: bool = False) -> Channel:
    """Return aiormq's channel of a new channel of aio-pika. Raises what the library raises."""
    channel = await connection.channel(publisher_confirms=confirms)
    underlay = await channel.get_underlay_channel()
    assert isinstance(underlay, Channel)
    return underlay


async def open_message_channel(connection: AbstractConnection, *, confirms: bool = False) -> MessageChannel:
    """Return a new channel for messages. Raises what the library raises."""
    calls = await open_channel(connection, confirms=confirms)
    wire = calls.connection
    assert isinstance(wire, _Wire)
    return MessageChannel(calls, wire.ends.reader, wire.ends.writer, wire.connection_tune.frame_max)


async def declare_topology(connection: AbstractConnection, topology: Topology) -> None:
    """Declare the exchanges and all queues. Raises TopologyMismatch, and what the library raises.

    A user without the right to is refused: `Topology.declared_on_connect` says whether services try.
    """
    async with connection.channel(publisher_confirms=False) as channel:
        for exchange in topology.exchanges:
            await channel.declare_exchange(exchange.name, ExchangeType(exchange.type), durable=True)
        for queue in topology.queues:
            declared = await _declare_queue(channel, queue)
            for routing_key in queue.bindings:
                await declared.bind(queue.exchange, routing_key)


async def _declare_queue(channel: AbstractChannel, queue: Queue) -> AbstractQueue:
    try:
        return await channel.declare_queue(queue.name, durable=True, arguments=dict(queue.arguments))
    except ChannelPreconditionFailed as error:
        raise TopologyMismatch(
            f"queue {queue.name} exists with other arguments: {error}. Let it drain, delete it in the"
            " management UI (or with `rabbitmqctl delete_queue`) and start again; it will be declared anew"
        ) from error
