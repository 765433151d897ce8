"""A message and where it goes: what handlers return and the consumer loop and the scheduler publish."""

from __future__ import annotations

from dataclasses import dataclass

from shared.broker.port import Publication
from shared.broker.topology import EXCHANGE
from shared.wire.messages import Message


@dataclass(frozen=True)
class Outgoing:
    """A message to publish to an exchange, with the routing key that leads it on."""

    message: Message
    routing_key: str
    exchange: str = EXCHANGE

    @classmethod
    def into(cls, queue: str, message: Message) -> Outgoing:
        """Return `message` addressed to `queue`, one that services read or a dead queue: these are bound by name."""
        return cls(message, routing_key=queue)

    @classmethod
    def after(cls, delay: str, message: Message, *, then: str) -> Outgoing:
        """Return `message` addressed to the delay queue `delay`, which leads it to the queue `then`."""
        return cls(message, routing_key=then, exchange=delay)


def encode_outgoing(outgoing: Outgoing) -> Publication:
    """Return `outgoing` as the bytes and headers that go on the wire."""
    body, encoding = outgoing.message.encode()
    return Publication(
        routing_key=outgoing.routing_key,
        exchange=outgoing.exchange,
        body=body,
        type=outgoing.message.KIND,
        content_encoding=encoding,
        headers=outgoing.message.headers(),
    )
