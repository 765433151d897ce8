"""Topology and messages as AMQP's libraries want them. For `shared/rabbitmq.py` alone."""

from __future__ import annotations

from datetime import UTC, datetime

from aio_pika import DeliveryMode, ExchangeType, abc
from aio_pika.exceptions import ChannelPreconditionFailed
from aiormq.abc import DeliveredMessage
from aiormq.channel import Channel
from pamqp.commands import Basic

from shared.broker import Delivery, Publication
from shared.errors import TopologyMismatch
from shared.topology import Queue, Topology


async def bare_channel(channel: abc.AbstractChannel) -> Channel:
    """Return what a channel of aio-pika stands on."""
    underlay = await channel.get_underlay_channel()
    assert isinstance(underlay, Channel)
    return underlay


async def declare_topology(connection: abc.AbstractConnection, topology: Topology) -> None:
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


async def _declare_queue(channel: abc.AbstractChannel, queue: Queue) -> abc.AbstractQueue:
    try:
        return await channel.declare_queue(queue.name, durable=True, arguments=dict(queue.arguments))
    except ChannelPreconditionFailed as error:
        raise TopologyMismatch(
            f"queue {queue.name} exists with other arguments: {error}. Let it drain, delete it in the"
            " management UI (or with `rabbitmqctl delete_queue`) and start again; it will be declared anew"
        ) from error


def to_properties(publication: Publication) -> Basic.Properties:
    """Return what goes with the body."""
    return Basic.Properties(
        headers=dict(publication.headers),
        content_type="application/json",
        content_encoding=publication.content_encoding or "",
        delivery_mode=DeliveryMode.PERSISTENT,
        message_id=publication.message_id,
        timestamp=datetime.now(UTC),
        message_type=publication.type,
        app_id="feedmill",
    )


def to_delivery(message: DeliveredMessage, queue: str) -> Delivery:
    """Return what came."""
    assert message.delivery_tag is not None
    properties = message.header.properties
    headers = (properties.headers or {}).items()
    return Delivery(
        queue=queue,
        body=message.body,
        routing_key=message.routing_key or "",
        type=properties.message_type or "",
        content_encoding=properties.content_encoding or None,
        headers={key: value if isinstance(value, str | int) else str(value) for key, value in headers},
        message_id=properties.message_id or "",
        redelivered=bool(message.redelivered),
        tag=message.delivery_tag,
    )
