"""The port to the message broker: everything that services need of one, without the AMQP library.

`shared/broker/rabbitmq.py` implements it; `tests/fakes/memory_broker.py` is a fake in memory. Both pass the same
conformance suite (`tests/contract/test_broker_*.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol
from uuid import uuid4

from shared.broker.topology import EXCHANGE, Stage, Topology
from shared.broker.tracing import start_sending
from shared.tracing import NO_SPAN, Headers, Span
from shared.wire.envelope import Message
from shared.wire.results import FeedFetched


@dataclass(frozen=True)
class Publication:
    """A message as it is published. With an empty exchange the routing key is the name of a queue."""

    routing_key: str
    body: bytes
    exchange: str
    type: str
    content_encoding: str | None = None
    headers: Headers = field(default_factory=dict)
    message_id: str = field(default_factory=lambda: uuid4().hex)
    mandatory: bool = True
    """Whether it is an error if no queue takes it. False for broadcasts."""
    span: Span = field(default=NO_SPAN, repr=False, compare=False)
    """From here to the confirm; the session ends it."""


@dataclass(frozen=True)
class Outgoing:
    """A message and where it goes: what handlers return and the consumer loop publishes."""

    message: Message
    routing_key: str
    exchange: str = EXCHANGE
    encoded: tuple[bytes, str | None] | None = field(default=None, repr=False)
    """What `message.encode` returned, where the handler has called it on a thread."""

    @classmethod
    def into(cls, queue: str, message: Message) -> Outgoing:
        """Return `message` addressed to `queue`: one that services read, or a dead queue. These are bound by name."""
        return cls(message, routing_key=queue)

    @classmethod
    def onward(cls, stage: Stage, result: FeedFetched, encoded: tuple[bytes, str | None] | None = None) -> Outgoing:
        """Return `result` addressed to the stage behind `stage`, whichever that is for it."""
        key = stage.next_key if result.entries else stage.next_key_if_empty
        assert key is not None
        return cls(result, routing_key=key, encoded=encoded)

    @classmethod
    def after(cls, delay: str, message: Message, *, then: str) -> Outgoing:
        """Return `message` addressed to the delay queue `delay`, which leads it to the queue `then`."""
        return cls(message, routing_key=then, exchange=delay)

    def to_publication(self) -> Publication:
        """Return the bytes and headers that go on the wire."""
        body, encoding = self.encoded or self.message.encode()
        span = start_sending(self.message.span, self.exchange, self.routing_key)
        return Publication(
            routing_key=self.routing_key,
            exchange=self.exchange,
            body=body,
            type=self.message.KIND,
            content_encoding=encoding,
            headers=self.message.headers() if span is NO_SPAN else {**self.message.headers(), **span.headers()},
            span=span,
        )


@dataclass(frozen=True, eq=False)
class Delivery:
    """A message that the broker delivered. It is ours until we acknowledge, requeue or reject it."""

    queue: str
    """The queue that it came from."""
    body: bytes
    type: str
    content_encoding: str | None
    headers: Headers
    message_id: str
    redelivered: bool
    tag: int
    span: Span = field(default=NO_SPAN, repr=False)
    """From here until it is settled."""


class Session(Protocol):
    """An open connection with the topology declared. A lost session is never repaired: connect anew.

    Every method raises `BrokerUnavailable` once the session is lost. A caller may be cancelled at any time: its call
    goes on to the end, and the session stays sound.
    """

    lost: asyncio.Event
    """Set when the broker, the network or `close` ended the session."""

    async def publish(self, publication: Publication) -> None:
        """Return once the broker has confirmed that the message is in a queue.

        Publishing the same publication again after `Unconfirmed` sends nothing: it waits for the same confirm.

        Raises:
            BrokerUnavailable: refused (a full queue), or never sent; no queue has it, and it may be tried again.
            Unconfirmed: not confirmed in time, or the session was lost meanwhile; a queue may have it.
            Unroutable: no queue takes this routing key. The session is lost with it, since
                connecting anew declares whatever queue somebody deleted.
            MessageTooLarge: the broker does not take bodies of this size.
        """

    async def consume(self, queue: str, *, prefetch: int, deliver: Callable[[Delivery], None]) -> None:
        """Start to call `deliver` with messages of `queue`; at most `prefetch` of this consumer may be unsettled."""

    async def stop_consuming(self, queue: str | None = None) -> None:
        """End the consumer of `queue` (None: all). What it delivered stays ours to settle."""

    async def ack(self, delivery: Delivery) -> None:
        """Acknowledge: the broker forgets the message."""

    async def requeue(self, delivery: Delivery) -> None:
        """Nack and requeue: the message goes back to the front of its queue, for any consumer."""

    async def reject(self, delivery: Delivery) -> None:
        """Let the broker move the message, unchanged, to its queue's dead-letter target."""

    async def count_ready(self, queue: str) -> int | None:
        """Return how many messages wait in `queue`, or None if there is no such queue."""

    async def lock(self, name: str) -> bool:
        """Take the lock of this name; False if another session has it. The lock ends with the session."""

    async def unlock(self, name: str) -> None:
        """Release a lock of this session."""

    async def is_locked(self, name: str) -> bool:
        """Return whether some session has the lock of this name."""

    async def listen(self, exchange: str, receive: Callable[[bytes], None], *, name: str) -> bool:
        """Call `receive` with each body that anybody, also this process, publishes to a fanout exchange from now on.

        The session takes the lock `name`, by which others can see that it is alive. False if another session has that
        lock: then nothing is received.
        """

    async def find_alarm(self) -> str | None:
        """Return why the broker takes no messages now ("low on memory", "low on disk"); None if it takes them.

        To find out, it publishes a message that no queue takes.
        """

    async def count_consumers(self, queue: str) -> int:
        """Return how many consumers `queue` has in all; 0 if there is no such queue.

        A consumer that was ended counts until the messages that it holds are settled.
        """


class Broker(Protocol):
    """Makes sessions."""

    @property
    def max_message_bytes(self) -> int:
        """The largest body that may be published, in bytes; it also bounds what consumers unpack."""

    def connect(self, topology: Topology | None) -> AbstractAsyncContextManager[Session]:
        """Connect, declare `topology` (None: declare nothing), and close at the end.

        Raises:
            BrokerUnavailable: no answer, or the credentials were refused.
            TopologyMismatch: a queue exists with other arguments.
        """
