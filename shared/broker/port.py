"""The port to the message broker: what the consumer loop and the scheduler need of one, and nothing of AMQP's library.

`shared/broker/rabbitmq.py` is the real one; the tests have one in memory. Both pass the same conformance suite
(`tests/contract/test_broker_conformance.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol
from uuid import uuid4

from shared.broker.topology import EXCHANGE, Topology
from shared.wire.envelope import Message

Headers = Mapping[str, str | int]


@dataclass(frozen=True)
class Publication:
    """A message on its way out. An empty exchange means: straight to the queue named by the routing key."""

    routing_key: str
    body: bytes
    exchange: str
    type: str
    content_encoding: str | None = None
    headers: Headers = field(default_factory=dict)
    message_id: str = field(default_factory=lambda: uuid4().hex)
    mandatory: bool = True
    """Whether it is an error if no queue takes it; else it is for those who listen, if any."""


@dataclass(frozen=True)
class Outgoing:
    """A message and where it goes: what handlers return and the consumer loop publishes."""

    message: Message
    routing_key: str
    exchange: str = EXCHANGE

    @classmethod
    def into(cls, queue: str, message: Message) -> Outgoing:
        """Return `message` addressed to `queue`: one that services read, or a dead queue. These are bound by name."""
        return cls(message, routing_key=queue)

    @classmethod
    def after(cls, delay: str, message: Message, *, then: str) -> Outgoing:
        """Return `message` addressed to the delay queue `delay`, which leads it to the queue `then`."""
        return cls(message, routing_key=then, exchange=delay)

    def to_publication(self) -> Publication:
        """Return the bytes and headers that go on the wire."""
        body, encoding = self.message.encode()
        return Publication(
            routing_key=self.routing_key,
            exchange=self.exchange,
            body=body,
            type=self.message.KIND,
            content_encoding=encoding,
            headers=self.message.headers(),
        )


@dataclass(frozen=True, eq=False)
class Delivery:
    """A message that the broker handed to us and that is ours until it is acknowledged or given back."""

    queue: str
    """Where it came from."""
    body: bytes
    routing_key: str
    type: str
    content_encoding: str | None
    headers: Headers
    message_id: str
    redelivered: bool
    tag: int


class Session(Protocol):
    """A connection that stands, with the topology declared. It ends once and is not repaired: connect anew.

    Every method raises `BrokerUnavailable` once the session is lost. A caller may be cancelled at any time: the call
    that it waits for goes on to its end, and the session is none the worse for it.
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
        """Start handing messages of `queue` to `deliver`, at most `prefetch` unsettled of this queue at a time."""

    async def stop_consuming(self, queue: str | None = None) -> None:
        """Ask for no more of `queue` (None: of any). What was delivered stays ours to settle."""

    async def ack(self, delivery: Delivery) -> None:
        """Settle: the broker forgets the message."""

    async def requeue(self, delivery: Delivery) -> None:
        """Put the message back to the front of its queue for whoever comes next."""

    async def reject(self, delivery: Delivery) -> None:
        """Let the broker itself move the message to its queue's dead-letter target, untouched."""

    async def count_ready(self, queue: str) -> int | None:
        """Return how many messages wait in `queue`, or None if there is no such queue."""

    async def lock(self, name: str) -> bool:
        """Take the lock of this name; False if another session has it. It ends with the session, however that ends."""

    async def unlock(self, name: str) -> None:
        """Give back a lock that this session has."""

    async def is_locked(self, name: str) -> bool:
        """Return whether some session has the lock of this name."""

    async def listen(self, exchange: str, receive: Callable[[bytes], None], *, name: str) -> bool:
        """Have `receive` called with each body that is published to a fanout exchange from now on, by us as well.

        The session has the lock `name` from then on, so that others can tell that it stands. False if another session
        has that lock: nothing will be heard.
        """

    async def count_consumers(self, queue: str) -> int:
        """Return how many consumers `queue` has in all; 0 if there is no such queue."""


class Broker(Protocol):
    """Where sessions come from."""

    @property
    def max_message_bytes(self) -> int:
        """Return how many bytes a body may have that is published; what consumers unpack is bounded by it."""

    def connect(self, topology: Topology | None) -> AbstractAsyncContextManager[Session]:
        """Connect, declare `topology` (None: declare nothing), and close at the end.

        Raises:
            BrokerUnavailable: nobody answers, or the credentials were refused.
            TopologyMismatch: a queue exists with other arguments.
        """
