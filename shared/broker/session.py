"""A session with RabbitMQ: a publisher that also consumes, settles, looks at queues and takes locks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

from aiormq.abc import DeliveredMessage
from aiormq.channel import Channel
from aiormq.exceptions import (
    AMQPError,
    ChannelAccessRefused,
    ChannelLockedResource,
    ChannelNotFoundEntity,
)
from pamqp.commands import Queue
from pamqp.common import FieldTable

from shared.broker.amqp import (
    CLOSE_SECONDS,
    Connection,
    declare_topology,
    open_channel,
    publish_nowhere,
    to_delivery,
    translated,
)
from shared.broker.port import Delivery
from shared.broker.publisher import Publisher, SizeLimit
from shared.broker.topology import Topology
from shared.errors import BrokerUnavailable
from shared.waiting import retrieve_error

log = logging.getLogger(__name__)

CALL_SECONDS = 60.0
"""A broker that does not answer a call for so long hangs. (Its first missed heartbeat is noticed sooner.)"""

TRANSIENT: Final[FieldTable] = {"x-queue-type": "classic"}
"""The type of queues that belong to a connection, whatever the virtual host's default type is."""

R = TypeVar("R")


class RabbitMQSession(Publisher):
    """A session over two connections (`shared.broker.port.Session`).

    Every call of the library goes through `_call` (or, for the calls that don't wait, `translated`):

    - Each call has a task of its own, since the library closes the channel of a cancelled call and so ends everything
      that is under way there. A call whose caller is cancelled goes on to its end.
    - A call that is not answered in time loses the session.
    - Every error that means "away" is raised as BrokerUnavailable.
    """

    def __init__(self, consuming: Connection, publishing: Connection, size_limit: SizeLimit) -> None:
        super().__init__(publishing, size_limit)
        self._consuming = consuming
        self._calls: set[asyncio.Task[Any]] = set()
        self._consumer_tags: dict[str, str] = {}
        self._subscribing = asyncio.Lock()
        self._ask_channel: Channel | None = None
        self._asking = asyncio.Lock()

    async def open(self, topology: Topology | None) -> None:
        """Open the channels and declare the topology."""
        for connection in (self._consuming, self._publishing):
            connection.close_callbacks.add(lambda *_: self.lose())
        if topology is not None and topology.declared_on_connect:
            await self._call("declare the queues", declare_topology(self._publishing, topology))
        self._channel = await self._call("open a channel", open_channel(self._consuming))
        self._channel.closing.add_done_callback(self.lose)
        # The broker ends a consumer whose queue is deleted; without this we would wait for ever.
        self._channel.on_consumer_cancel_callbacks.add(self.lose)

    async def _call(self, what: str, call: Coroutine[Any, Any, R], *, but: tuple[type[AMQPError], ...] = ()) -> R:
        """Return what a call of the library returns; at most `CALL_SECONDS` later."""

        async def finish() -> R:
            with translated(what, but=but):
                return await call

        task = asyncio.create_task(finish())
        self._calls.add(task)
        task.add_done_callback(self._note_end)
        await asyncio.wait((task,), timeout=CALL_SECONDS)  # cancels nothing
        if not task.done():
            self.lost.set()
            raise BrokerUnavailable(f"cannot {what}: no answer within {CALL_SECONDS:g} s")
        return task.result()

    def _note_end(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        retrieve_error(task)

    async def consume(self, queue: str, *, prefetch: int, deliver: Callable[[Delivery], None]) -> None:
        """Start a consumer; the prefetch count is its own (basic.qos before basic.consume)."""

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
        """End the consumer of `queue` (None: all); what it delivered stays ours to settle."""

        async def unsubscribe() -> None:
            async with self._subscribing:
                for name in list(self._consumer_tags) if queue is None else [queue]:
                    tag = self._consumer_tags.pop(name, None)
                    if tag is not None:
                        await self._channel.basic_cancel(tag)

        await self._call(f"end the consumer of {queue or 'all queues'}", unsubscribe())

    async def ack(self, delivery: Delivery) -> None:
        """Acknowledge (basic.ack)."""
        with translated("acknowledge a message"):
            await self._channel.basic_ack(delivery.tag, wait=False)

    async def requeue(self, delivery: Delivery) -> None:
        """Nack and requeue (basic.nack)."""
        with translated("requeue a message"):
            await self._channel.basic_nack(delivery.tag, requeue=True, wait=False)

    async def reject(self, delivery: Delivery) -> None:
        """Reject without requeueing (basic.reject): the broker dead-letters the message."""
        with translated("reject a message"):
            await self._channel.basic_reject(delivery.tag, requeue=False, wait=False)

    async def count_ready(self, queue: str) -> int | None:
        """Return how many messages wait in `queue`; None if there is no such queue."""
        found = await self._look_at(queue)
        return found.message_count if found else None

    async def count_consumers(self, queue: str) -> int:
        """Return how many consumers `queue` has; 0 if there is no such queue."""
        found = await self._look_at(queue)
        return found.consumer_count or 0 if found else 0

    async def _look_at(self, queue: str) -> Queue.DeclareOk | None:
        try:
            return await self._ask(f"look at {queue}", lambda channel: channel.queue_declare(queue, passive=True))
        except ChannelNotFoundEntity:
            return None

    async def lock(self, name: str) -> bool:
        """Take a lock: an exclusive queue, which only one connection can have."""
        try:
            await self._ask(f"lock {name}", lambda channel: _declare_transient(channel, name))
        except ChannelLockedResource:
            return False
        return True

    async def is_locked(self, name: str) -> bool:
        """Return whether some session has the lock."""
        try:
            return await self._look_at(name) is not None
        except ChannelLockedResource:
            return True

    async def _ask(self, what: str, question: Callable[[Channel], Awaitable[R]]) -> R:
        """Return the answer to a question whose refusal closes its channel, or raise the refusal.

        Such questions have a channel of their own, on the consuming connection: a broker under an alarm answers nothing
        on a connection that publishes. They are asked one at a time, so that a new channel never takes the number of
        one whose end is still under way.
        """

        async def ask() -> R:
            async with self._asking:
                if self._ask_channel is None or self._ask_channel.is_closed:
                    self._ask_channel = await open_channel(self._consuming)
                return await question(self._ask_channel)

        return await self._call(what, ask(), but=(ChannelNotFoundEntity, ChannelLockedResource))

    async def unlock(self, name: str) -> None:
        """Release a lock of this session."""
        await self._call(f"unlock {name}", self._channel.queue_delete(name))

    async def listen(self, exchange: str, receive: Callable[[bytes], None], *, name: str) -> bool:
        """Receive what is published to a fanout exchange, through a queue that ends with the connection."""
        if not await self.lock(name):
            return False

        async def on_message(message: DeliveredMessage) -> None:
            receive(message.body)

        async def subscribe() -> None:
            await self._channel.queue_bind(name, exchange)
            await self._channel.basic_consume(name, on_message, no_ack=True)

        await self._call(f"listen to {exchange}", subscribe())
        return True

    async def find_alarm(self) -> str | None:
        """Publish to nowhere: the broker answers, or says that the connection is blocked. A refusal is an answer."""

        async def find() -> str | None:
            blocked = self._publishing.blocked_by()
            if not blocked.done():
                answered = asyncio.ensure_future(publish_nowhere(self._publishing))
                answered.add_done_callback(retrieve_error)
                futures: set[asyncio.Future[Any]] = {blocked, answered}
                await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
                if not blocked.done():
                    with suppress(ChannelAccessRefused, ChannelNotFoundEntity):
                        answered.result()
            return blocked.result() if blocked.done() else None

        return await self._call("look for an alarm", find())

    async def flush(self) -> None:
        """Wait until the broker has read every acknowledgement: closing would drop what is not written yet."""
        if self.lost.is_set():
            return
        try:
            with translated("flush"):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._channel.basic_qos(prefetch_count=1)  # any call: it is answered in order
        except BrokerUnavailable as error:
            log.debug("the last acknowledgements may be lost: %s", error)


async def _declare_transient(channel: Channel, name: str) -> Queue.DeclareOk:
    return await channel.queue_declare(name, exclusive=True, arguments=TRANSIENT)
