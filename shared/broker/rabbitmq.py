"""RabbitMQ behind the port of `shared/broker/port.py`. It and `shared/broker/amqp.py` are all that knows aio-pika.

Messages go straight through the channel of aiormq, on which aio-pika stands: the objects, tasks and futures in between
were a seventh of what an unchanged feed cost the fetcher.

A session is two plain connections, one to consume and one to publish: a broker that throttles publishers (memory
or disk alarm) then still lets us acknowledge. Nothing is repaired in place: when either connection ends, the
session is lost, and its owner connects anew.

Every call of the library goes through `_call` (or, for the calls that don't wait, `translated`):

- Each call has a task of its own. The library closes the channel of a call that is cut off, and with it goes
  everything that is under way there. So a call whose caller is cancelled goes on to its end.
- A call that isn't answered in time loses the session.
- What means "away" is raised as BrokerUnavailable.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from aiormq.abc import DeliveredMessage
from aiormq.channel import Channel
from aiormq.exceptions import (
    AMQPError,
    ChannelInvalidStateError,
    ChannelLockedResource,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
    ProbableAuthenticationError,
    PublishError,
)
from pamqp.commands import Queue
from pamqp.common import FieldTable

from shared.broker.amqp import (
    Connection,
    declare_topology,
    heartbeat_seconds,
    make_connection,
    open_channel,
    to_delivery,
    to_properties,
    translated,
)
from shared.broker.port import Delivery, Publication, Session
from shared.broker.topology import Topology
from shared.errors import BrokerUnavailable, MessageTooLarge, Unconfirmed, Unroutable
from shared.observability.secrets import mask_credentials

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_SECONDS = 10.0
CONFIRM_TIMEOUT_SECONDS = 30.0
"""A broker under a resource alarm reads nothing from publishers. After this long we say so; the publish is not sent
a second time, the next try waits for the same confirm."""

CALL_SECONDS = 60.0
"""A broker that leaves a question unanswered for so long hangs. (Its first heartbeat is missed sooner.)"""

SMALL_BYTES = 65536
"""A larger message is handed over and drained before the next one is: so much may pile up behind a slow broker."""

CLOSE_SECONDS = 5.0

TRANSIENT: Final[FieldTable] = {"x-queue-type": "classic"}
"""Of queues that belong to a connection, whatever kind the virtual host makes of others."""

R = TypeVar("R")


class RabbitMQ:
    """A broker at an AMQP URL.

    `name` is shown as the connection's name in the management UI; `max_message_bytes` is refused before it is
    sent, because RabbitMQ answers an oversized message by closing the channel.
    """

    def __init__(self, url: str, *, name: str, max_message_bytes: int) -> None:
        self._url = url
        self._name = name
        self.heartbeat_seconds = heartbeat_seconds(url)
        """A connection that is silent for longer may be ended by the broker; 0: it never is."""
        self.max_message_bytes = max_message_bytes
        """Lowered when the broker turns out to take less: the next oversized message is refused before it is sent."""

    @asynccontextmanager
    async def connect(self, topology: Topology | None) -> AsyncIterator[Session]:
        """Connect, declare `topology`, yield a session, close it. See `shared.broker.port.Broker.connect`."""
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
            with translated("delete the queues"):
                channel = await open_channel(connection)
                for queue in topology.queues:
                    await channel.queue_delete(queue.name)
                for exchange in topology.exchanges:
                    await channel.exchange_delete(exchange.name)
        finally:
            await _close_quietly(connection)

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


class RabbitMQSession:
    """See `shared.broker.port.Session`."""

    def __init__(self, broker: RabbitMQ, consuming: Connection, publishing: Connection) -> None:
        self.lost = asyncio.Event()
        self._broker = broker
        self._consuming = consuming
        self._publishing = publishing
        self._calls: set[asyncio.Task[Any]] = set()
        self._confirms: dict[str, asyncio.Task[None]] = {}
        self._unsent: dict[str, asyncio.Task[None]] = {}
        self._consumer_tags: dict[str, str] = {}
        self._subscribing = asyncio.Lock()
        self._ask_channel: Channel | None = None
        self._asking = asyncio.Lock()
        self._publish_channel: Channel | None = None
        self._reopening = asyncio.Lock()

    async def open(self, topology: Topology | None) -> None:
        """Open the channels and declare the topology."""
        for connection in (self._consuming, self._publishing):
            connection.close_callbacks.add(lambda *_: self._lose(None))
        if topology is not None and topology.declared_on_connect:
            await self._call("declare the queues", declare_topology(self._publishing, topology))
        self._channel = await self._call("open a channel", open_channel(self._consuming))
        self._channel.closing.add_done_callback(self._lose)
        # The broker takes the consumer away when its queue is deleted; without this we would wait for ever.
        self._channel.on_consumer_cancel_callbacks.add(self._lose)

    def _lose(self, _: object) -> None:
        self.lost.set()
        for waiting in self._unsent.values():  # for a broker that is blocked, and will never say that it no longer is
            waiting.cancel()

    async def _call(self, what: str, call: Coroutine[Any, Any, R], *, but: tuple[type[AMQPError], ...] = ()) -> R:
        """Return what a call of the library returns. See the module."""

        async def finish() -> R:
            with translated(what, but=but):
                return await call

        task = asyncio.create_task(finish())
        self._calls.add(task)
        task.add_done_callback(self._note_end)
        await asyncio.wait((task,), timeout=CALL_SECONDS)  # which cancels nothing
        if not task.done():
            self.lost.set()
            raise BrokerUnavailable(f"cannot {what}: no answer within {CALL_SECONDS:g} s")
        return task.result()

    def _note_end(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        _forgive(task)

    async def publish(self, publication: Publication) -> None:
        """See `shared.broker.port.Session.publish`."""
        if len(publication.body) > self._broker.max_message_bytes:
            raise MessageTooLarge(
                f"a {publication.type} message of {len(publication.body)} bytes exceeds the"
                f" {self._broker.max_message_bytes} that FEEDMILL_MAX_MESSAGE_BYTES or the broker allows"
            )
        name = publication.message_id
        confirm = self._confirms.get(name)
        if confirm is None:
            confirm = asyncio.create_task(self._send(publication))
            self._confirms[name] = self._unsent[name] = confirm
            confirm.add_done_callback(_forgive)
        await asyncio.wait((confirm,), timeout=CONFIRM_TIMEOUT_SECONDS)  # which cancels nothing
        if not confirm.done():
            raise Unconfirmed(f"no confirm within {CONFIRM_TIMEOUT_SECONDS:g} s; still waiting for it")
        self._confirms.pop(name, None)  # not sooner: whoever asks again is told, and nothing is sent again
        confirm.result()

    async def _send(self, publication: Publication) -> None:
        """Publish; an error tells what became of the message."""
        target = f"{publication.exchange} {publication.routing_key}".lstrip()
        try:
            with translated(f"publish to {target}", but=(AMQPError,)):
                channel = await self._ready_channel()
                self._unsent.pop(publication.message_id, None)
                await channel.basic_publish(
                    publication.body,
                    exchange=publication.exchange,
                    routing_key=publication.routing_key,
                    properties=to_properties(publication),
                    mandatory=publication.mandatory,
                    wait=len(publication.body) > SMALL_BYTES,
                )
        except (PublishError, ChannelNotFoundEntity) as error:
            self.lost.set()
            raise Unroutable(f"no queue takes what is published to {target}: {error!r}") from error
        except DeliveryError as error:
            raise BrokerUnavailable(f"the broker refused a message for {target}") from error
        except ChannelPreconditionFailed as error:
            size, largest = _refused_size(error)
            if size == len(publication.body):
                self._broker.max_message_bytes = min(largest, self._broker.max_message_bytes)
                raise MessageTooLarge(f"the broker refused a {publication.type} message: {error}") from error
            # Another message was too large, and ours was on the same channel when the broker closed it.
            raise Unconfirmed(f"the channel was closed before a confirm: {error!r}") from error
        except (AMQPError, BrokerUnavailable, asyncio.CancelledError) as error:
            never_sent = self._unsent.pop(publication.message_id, None) is not None
            if isinstance(error, asyncio.CancelledError) and not self.lost.is_set():
                raise
            if never_sent or isinstance(error, ChannelInvalidStateError):
                raise BrokerUnavailable(f"cannot publish to {target}: {error!r}") from error
            raise Unconfirmed(f"the connection ended before a confirm: {error!r}") from error

    async def _ready_channel(self) -> Channel:
        """Return the publish channel as soon as the broker takes messages; a new one if the broker closed it.

        A broker under an alarm says that it is blocked. What is sent then stands in the socket, and nobody can take it
        back. A channel is closed over an oversized message.
        """
        await self._publishing.ready()
        channel = self._publish_channel
        if channel is not None and not channel.is_closed:
            return channel
        async with self._reopening:
            if self._publish_channel is None or self._publish_channel.is_closed:
                self._publish_channel = await open_channel(self._publishing, confirms=True)
            return self._publish_channel

    async def consume(self, queue: str, *, prefetch: int, deliver: Callable[[Delivery], None]) -> None:
        """See `shared.broker.port.Session.consume`."""

        async def on_message(message: DeliveredMessage) -> None:
            deliver(to_delivery(message, queue))

        async def subscribe() -> None:
            async with self._subscribing:
                await self._channel.basic_qos(prefetch_count=prefetch)  # for the consumers that begin after it
                started = await self._channel.basic_consume(queue, on_message)
                assert started.consumer_tag is not None
                self._consumer_tags[queue] = started.consumer_tag

        await self._call(f"consume {queue}", subscribe())

    async def stop_consuming(self, queue: str | None = None) -> None:
        """See `shared.broker.port.Session.stop_consuming`."""

        async def unsubscribe() -> None:
            async with self._subscribing:
                for name in list(self._consumer_tags) if queue is None else [queue]:
                    tag = self._consumer_tags.pop(name, None)
                    if tag is not None:
                        await self._channel.basic_cancel(tag)

        await self._call(f"end the consumer of {queue or 'all queues'}", unsubscribe())

    async def ack(self, delivery: Delivery) -> None:
        """See `shared.broker.port.Session.ack`."""
        with translated("acknowledge a message"):
            await self._channel.basic_ack(delivery.tag, wait=False)

    async def requeue(self, delivery: Delivery) -> None:
        """See `shared.broker.port.Session.requeue`."""
        with translated("give a message back"):
            await self._channel.basic_nack(delivery.tag, requeue=True, wait=False)

    async def reject(self, delivery: Delivery) -> None:
        """See `shared.broker.port.Session.reject`."""
        with translated("reject a message"):
            await self._channel.basic_reject(delivery.tag, requeue=False, wait=False)

    async def count_ready(self, queue: str) -> int | None:
        """See `shared.broker.port.Session.count_ready`."""
        found = await self._look_at(queue)
        return found.message_count if found else None

    async def count_consumers(self, queue: str) -> int:
        """See `shared.broker.port.Session.count_consumers`."""
        found = await self._look_at(queue)
        return found.consumer_count or 0 if found else 0

    async def _look_at(self, queue: str) -> Queue.DeclareOk | None:
        try:
            return await self._ask(f"look at {queue}", lambda channel: channel.queue_declare(queue, passive=True))
        except ChannelNotFoundEntity:
            return None

    async def lock(self, name: str) -> bool:
        """See `shared.broker.port.Session.lock`: an exclusive queue, which only one connection can have."""
        try:
            await self._ask(f"lock {name}", lambda channel: _declare_transient(channel, name))
        except ChannelLockedResource:
            return False
        return True

    async def is_locked(self, name: str) -> bool:
        """See `shared.broker.port.Session.is_locked`."""
        try:
            return await self._look_at(name) is not None
        except ChannelLockedResource:
            return True

    async def _ask(self, what: str, question: Callable[[Channel], Awaitable[R]]) -> R:
        """Return the answer to a question whose refusal closes its channel, or raise the refusal.

        Such questions have a channel of their own, on the consuming connection, since a broker under an alarm answers
        nothing on one that publishes. They are asked one after the other: when the next one opens a new channel, the
        library has answered the end of the one before, and the number is free on both sides.
        """

        async def ask() -> R:
            async with self._asking:
                if self._ask_channel is None or self._ask_channel.is_closed:
                    self._ask_channel = await open_channel(self._consuming)
                return await question(self._ask_channel)

        return await self._call(what, ask(), but=(ChannelNotFoundEntity, ChannelLockedResource))

    async def unlock(self, name: str) -> None:
        """See `shared.broker.port.Session.unlock`."""
        await self._call(f"unlock {name}", self._channel.queue_delete(name))

    async def listen(self, exchange: str, receive: Callable[[bytes], None], *, name: str) -> bool:
        """See `shared.broker.port.Session.listen`: over a queue that ends with the connection."""
        if not await self.lock(name):
            return False

        async def on_message(message: DeliveredMessage) -> None:
            receive(message.body)

        async def subscribe() -> None:
            await self._channel.queue_bind(name, exchange)
            await self._channel.basic_consume(name, on_message, no_ack=True)

        await self._call(f"listen to {exchange}", subscribe())
        return True

    async def flush(self) -> None:
        """Wait until the broker has read every acknowledgement: closing would drop what is not written yet."""
        if self.lost.is_set():
            return
        try:
            with translated("flush"):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._channel.basic_qos(prefetch_count=1)  # any question will do: it is answered in turn
        except BrokerUnavailable as error:
            log.debug("the last acknowledgements may be lost: %s", error)


async def _declare_transient(channel: Channel, name: str) -> Queue.DeclareOk:
    return await channel.queue_declare(name, exclusive=True, arguments=TRANSIENT)


def _forgive(task: asyncio.Task[Any]) -> None:
    """Note a failure that perhaps nobody waits for any more."""
    if not task.cancelled():
        task.exception()


def _refused_size(error: ChannelPreconditionFailed) -> tuple[int, int]:
    """Return both numbers of "message size 512 is larger than configured max size 256"; zeros if it says otherwise."""
    found = re.search(r"message size (\d+).*max size (\d+)", str(error))
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


async def _close_quietly(connection: Connection) -> None:
    try:
        with translated("close a connection"):
            async with asyncio.timeout(CLOSE_SECONDS):
                await connection.close()
    except BrokerUnavailable as error:
        log.debug("%s", error)
