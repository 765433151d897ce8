"""RabbitMQ behind the port of `shared/broker.py`. It and `shared/amqp.py` are all that knows aio-pika.

Messages go straight through the channel of aiormq, on which aio-pika stands: the objects, tasks and futures in between
were a seventh of what an unchanged feed cost the fetcher. Acknowledgements are written without waiting for the socket
to take them.

A session is two plain connections, one to consume and one to publish: a broker that throttles publishers (memory
or disk alarm) then still lets us acknowledge. Nothing is repaired in place: when either connection ends, the
session is lost, and its owner connects anew. (aio-pika's "robust" connection would restore consumers by itself,
with deliveries of the old channel still in hand.)
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import aio_pika
from aio_pika import abc
from aio_pika.connection import make_url
from aio_pika.exceptions import (
    AMQPError,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
    ProbableAuthenticationError,
    PublishError,
)
from aiormq.abc import DeliveredMessage
from aiormq.channel import Channel
from aiormq.exceptions import ChannelLockedResource
from pamqp.commands import Queue
from pamqp.common import FieldTable

from shared.amqp import bare_channel, declare_topology, to_delivery, to_properties
from shared.broker import Delivery, Publication, Session
from shared.errors import BrokerUnavailable, MessageTooLarge, Unroutable
from shared.secrets import mask_credentials
from shared.topology import Topology

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_SECONDS = 10.0
CONFIRM_TIMEOUT_SECONDS = 30.0
"""A broker under a resource alarm reads nothing from publishers. After this long we say so; the publish is not sent
a second time, the next try waits for the same confirm."""

SMALL_BYTES = 65536
"""A larger message is handed over and drained before the next one is: so much may pile up behind a slow broker."""

CLOSE_SECONDS = 5.0

TRANSIENT: Final[FieldTable] = {"x-queue-type": "classic"}
"""Of queues that belong to a connection, whatever kind the virtual host makes of others."""

# What a lost or refusing broker looks like from aio-pika, all of it (RuntimeError: "channel is closed" and kin).
_AWAY = (AMQPError, OSError, asyncio.TimeoutError, RuntimeError)


class RabbitMQ:
    """A broker at an AMQP URL.

    `name` is shown as the connection's name in the management UI; `max_message_bytes` is refused before it is
    sent, because RabbitMQ answers an oversized message by closing the channel.
    """

    def __init__(self, url: str, *, name: str, max_message_bytes: int) -> None:
        self._url = url
        self._name = name
        self.max_message_bytes = max_message_bytes
        """Lowered when the broker turns out to take less: the next oversized message is refused before it is sent."""

    @asynccontextmanager
    async def connect(self, topology: Topology | None) -> AsyncIterator[Session]:
        """Connect, declare `topology`, yield a session, close it. See `shared.broker.Broker.connect`."""
        consuming = await self._open("consume")
        try:
            publishing = await self._open("publish")
            try:
                session = RabbitMQSession(self, consuming, publishing)
                await session.open(topology)
                try:
                    yield session
                finally:
                    await session.flush()
            finally:
                await _close_quietly(publishing)
        finally:
            await _close_quietly(consuming)

    async def delete(self, topology: Topology) -> None:
        """Delete the topology's queues with all that they hold, and its exchanges (the demo cleans up after itself)."""
        connection = await self._open("delete")
        try:
            async with connection.channel() as channel:
                for queue in topology.queues:
                    await channel.queue_delete(queue.name)
                for exchange in topology.exchanges:
                    await channel.exchange_delete(exchange.name)
        except _AWAY as error:
            raise BrokerUnavailable(f"cannot delete the queues: {error!r}") from error
        finally:
            await _close_quietly(connection)

    async def _open(self, purpose: str) -> abc.AbstractConnection:
        # Not aio_pika.connect(): what failed to connect has to be closed too, else it complains when it is collected.
        connection = aio_pika.Connection(
            make_url(self._url),
            client_properties={"connection_name": f"{self._name} ({purpose})", "product": "feedmill"},
        )
        try:
            await connection.connect(timeout=CONNECT_TIMEOUT_SECONDS)
        except BaseException as error:
            await connection.close()
            if isinstance(error, ProbableAuthenticationError):
                said = f"{mask_credentials(self._url)} refused the user or password: {error}"
                raise BrokerUnavailable(said) from error
            if isinstance(error, _AWAY):
                said = f"cannot connect to {mask_credentials(self._url)}: {mask_credentials(repr(error))}"
                raise BrokerUnavailable(said) from error
            raise
        return connection


class RabbitMQSession:
    """See `shared.broker.Session`."""

    def __init__(self, broker: RabbitMQ, consuming: abc.AbstractConnection, publishing: abc.AbstractConnection) -> None:
        self.lost = asyncio.Event()
        self._broker = broker
        self._consuming = consuming
        self._publishing = publishing
        self._confirms: dict[str, asyncio.Task[None]] = {}
        self._consumer_tags: dict[str, str] = {}
        self._lock_channel: Channel | None = None
        self._look_channel: Channel | None = None
        self._looking = asyncio.Lock()
        self._publish_channel: Channel | None = None
        self._reopening = asyncio.Lock()

    async def open(self, topology: Topology | None) -> None:
        """Open the channels and declare the topology."""
        try:
            for connection in (self._consuming, self._publishing):
                connection.close_callbacks.add(lambda *_: self.lost.set())
            if topology is not None:
                await declare_topology(self._publishing, topology)
            channel = await self._consuming.channel(publisher_confirms=False)
            channel.close_callbacks.add(lambda *_: self.lost.set())
            self._channel = await bare_channel(channel)
            # The broker takes the consumer away when its queue is deleted; without this we would wait for ever.
            self._channel.on_consumer_cancel_callbacks.add(lambda *_: self.lost.set())
        except _AWAY as error:
            raise BrokerUnavailable(f"lost the broker while setting up: {error!r}") from error

    async def publish(self, publication: Publication) -> None:
        """See `shared.broker.Session.publish`."""
        if len(publication.body) > self._broker.max_message_bytes:
            raise MessageTooLarge(
                f"a {publication.type} message of {len(publication.body)} bytes exceeds the"
                f" {self._broker.max_message_bytes} that FEEDMILL_MAX_MESSAGE_BYTES or the broker allows"
            )
        confirm = self._confirms.get(publication.message_id)
        if confirm is None:
            confirm = asyncio.create_task(self._send(publication))
            self._confirms[publication.message_id] = confirm
            confirm.add_done_callback(lambda done: self._forget(publication.message_id, done))
        await asyncio.wait((confirm,), timeout=CONFIRM_TIMEOUT_SECONDS)  # which cancels nothing
        if not confirm.done():
            raise BrokerUnavailable(f"no confirm within {CONFIRM_TIMEOUT_SECONDS:g} s; still waiting for it")
        confirm.result()

    async def _send(self, publication: Publication) -> None:
        try:
            channel = self._publish_channel
            if channel is None or channel.is_closed:
                channel = await self._open_publish_channel()
            await channel.basic_publish(
                publication.body,
                exchange=publication.exchange,
                routing_key=publication.routing_key,
                properties=to_properties(publication),
                mandatory=publication.mandatory,
                wait=len(publication.body) > SMALL_BYTES,
            )
        except PublishError as error:
            self.lost.set()
            raise Unroutable(
                f"no queue takes {publication.routing_key!r} on exchange {publication.exchange!r}"
            ) from error
        except DeliveryError as error:
            raise BrokerUnavailable(f"the broker refused a message for {publication.routing_key!r}") from error
        except ChannelNotFoundEntity as error:
            self.lost.set()
            raise Unroutable(f"there is no exchange {publication.exchange!r}") from error
        except ChannelPreconditionFailed as error:
            size, largest = _refused_size(error)
            if size == len(publication.body):
                self._broker.max_message_bytes = min(largest, self._broker.max_message_bytes)
                raise MessageTooLarge(f"the broker refused a {publication.type} message: {error}") from error
            # Another message was too large, and ours was on the same channel when the broker closed it.
            raise BrokerUnavailable(f"publishing failed: {error!r}") from error
        except _AWAY as error:
            raise BrokerUnavailable(f"publishing failed: {error!r}") from error

    def _forget(self, message_id: str, done: asyncio.Task[None]) -> None:
        self._confirms.pop(message_id, None)
        if not done.cancelled():
            done.exception()  # if nobody waits for it any more, its failure is nobody's news

    async def consume(self, queue: str, *, prefetch: int, deliver: Callable[[Delivery], None]) -> None:
        """See `shared.broker.Session.consume`."""

        async def on_message(message: DeliveredMessage) -> None:
            deliver(to_delivery(message, queue))

        try:
            await self._channel.basic_qos(prefetch_count=prefetch)  # for the consumers that begin after it
            started = await self._channel.basic_consume(queue, on_message)
        except _AWAY as error:
            raise BrokerUnavailable(f"cannot consume {queue}: {error!r}") from error
        assert started.consumer_tag is not None
        self._consumer_tags[queue] = started.consumer_tag

    async def stop_consuming(self, queue: str | None = None) -> None:
        """See `shared.broker.Session.stop_consuming`."""
        for name in list(self._consumer_tags) if queue is None else [queue]:
            tag = self._consumer_tags.pop(name, None)
            if tag is None:
                continue
            try:
                await self._channel.basic_cancel(tag)
            except _AWAY as error:
                raise BrokerUnavailable(f"cannot cancel the consumer of {name}: {error!r}") from error

    async def ack(self, delivery: Delivery) -> None:
        """See `shared.broker.Session.ack`."""
        try:
            await self._channel.basic_ack(delivery.tag, wait=False)
        except _AWAY as error:
            raise BrokerUnavailable(f"cannot acknowledge: {error!r}") from error

    async def give_back(self, delivery: Delivery) -> None:
        """See `shared.broker.Session.give_back`."""
        try:
            await self._channel.basic_nack(delivery.tag, requeue=True, wait=False)
        except _AWAY as error:
            raise BrokerUnavailable(f"cannot give a message back: {error!r}") from error

    async def reject(self, delivery: Delivery) -> None:
        """See `shared.broker.Session.reject`."""
        try:
            await self._channel.basic_reject(delivery.tag, requeue=False, wait=False)
        except _AWAY as error:
            raise BrokerUnavailable(f"cannot reject a message: {error!r}") from error

    async def count_ready(self, queue: str) -> int | None:
        """See `shared.broker.Session.count_ready`."""
        found = await self._look_at(queue)
        return found.message_count if found else None

    async def count_consumers(self, queue: str) -> int:
        """See `shared.broker.Session.count_consumers`."""
        found = await self._look_at(queue)
        return found.consumer_count or 0 if found else 0

    async def _look_at(self, queue: str) -> Queue.DeclareOk | None:
        try:
            async with asyncio.timeout(CONFIRM_TIMEOUT_SECONDS), self._looking:
                # A passive declaration of a missing queue closes the channel, so looks have one of their own; on the
                # consuming connection, since a broker under an alarm answers nothing on one that publishes.
                channel = self._look_channel
                if channel is None or channel.is_closed:
                    channel = await bare_channel(await self._consuming.channel(publisher_confirms=False))
                    self._look_channel = channel
                return await channel.queue_declare(queue, passive=True)
        except ChannelNotFoundEntity:
            return None
        except _AWAY as error:
            raise BrokerUnavailable(f"cannot look at {queue}: {error!r}") from error

    async def lock(self, name: str) -> bool:
        """See `shared.broker.Session.lock`: an exclusive queue, which only one connection can have."""
        try:
            channel = self._lock_channel
            if channel is None or channel.is_closed:  # a refusal closes it
                channel = await bare_channel(await self._consuming.channel(publisher_confirms=False))
                self._lock_channel = channel
            await channel.queue_declare(name, exclusive=True, arguments=TRANSIENT)
        except ChannelLockedResource:
            return False
        except _AWAY as error:
            raise BrokerUnavailable(f"cannot lock {name}: {error!r}") from error
        return True

    async def unlock(self, name: str) -> None:
        """See `shared.broker.Session.unlock`."""
        try:
            await self._channel.queue_delete(name)
        except _AWAY as error:
            raise BrokerUnavailable(f"cannot unlock {name}: {error!r}") from error

    async def listen(self, exchange: str, hear: Callable[[bytes], None]) -> None:
        """See `shared.broker.Session.listen`: over a queue that ends with the connection."""

        async def on_message(message: DeliveredMessage) -> None:
            hear(message.body)

        try:
            queue = (await self._channel.queue_declare(exclusive=True, arguments=TRANSIENT)).queue
            assert queue is not None
            await self._channel.queue_bind(queue, exchange)
            await self._channel.basic_consume(queue, on_message, no_ack=True)
        except _AWAY as error:
            raise BrokerUnavailable(f"cannot listen to {exchange}: {error!r}") from error

    async def flush(self) -> None:
        """Wait until the broker has read every acknowledgement: closing would drop what is not written yet."""
        if self.lost.is_set():
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._channel.basic_qos(prefetch_count=1)  # any question will do: it is answered in turn
        except _AWAY as error:
            log.debug("the last acknowledgements may be lost: %r", error)

    async def _open_publish_channel(self) -> Channel:
        """Return the publish channel, a new one if the broker closed it (as it does over an oversized message)."""
        async with self._reopening:
            if self._publish_channel is None or self._publish_channel.is_closed:
                channel = await self._publishing.channel(publisher_confirms=True, on_return_raises=True)
                self._publish_channel = await bare_channel(channel)
            return self._publish_channel


def _refused_size(error: ChannelPreconditionFailed) -> tuple[int, int]:
    """Return both numbers of "message size 512 is larger than configured max size 256"; zeros if it says otherwise."""
    found = re.search(r"message size (\d+).*max size (\d+)", str(error))
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


async def _close_quietly(connection: abc.AbstractConnection) -> None:
    try:
        await asyncio.wait_for(connection.close(), timeout=CLOSE_SECONDS)
    except _AWAY as error:
        log.debug("closing a connection: %r", error)
