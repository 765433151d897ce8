"""The map: exchange, queues, bindings and arguments, as data. Code, docs and deployments follow it.

    feed.fetch.v1.#   ─► fetcher ─► (fetcher service) ─► feed.fetched.v1 ─► writer ─► (writer service)
                           ▲  ▲
       fetcher.fast-delay ─┘  └─ fetcher.retry          writer.retry ─► writer
                                       fetcher.dead                writer.dead

Delay queues have no consumer: their messages expire after the queue's own TTL and are dead-lettered to the queue
that they delay. A queue's TTL can't be changed once it is declared, so it is part of the name: a new setting makes
a new queue, and the old one drains by itself.

Everything is a durable quorum queue. Rules that keep every message (RabbitMQ 3.10 to 4.x):

- delay queues dead-letter *at least once* (`x-dead-letter-strategy`, which requires `x-overflow: reject-publish`),
  so that a broker that dies between expiry and delivery loses nothing;
- work queues carry their own `x-delivery-limit` and dead-letter target. RabbitMQ 4 otherwise *drops* a message
  after 20 redeliveries; ours goes to the dead queue, in every version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from shared.messages import FeedFetched, FetchFeed

EXCHANGE: Final = "feedmill"
"""The one exchange: durable, of type topic. Routing keys are message kinds."""

DELIVERY_LIMIT: Final = 100
"""Redeliveries after which the broker itself moves a message to the dead queue. High, since each loss of a
connection counts as one; a message that kills its consumer a hundred times is poison."""

LOOKED_AT_LIMIT: Final = 1_000_000
"""The same for dead queues, where each look at a message (management UI, `get` and requeue) counts as a delivery:
RabbitMQ 4 would drop a dead letter after the twentieth."""

Argument = str | int


@dataclass(frozen=True)
class Queue:
    """One durable queue, the routing keys that feed it, and the arguments that it is declared with."""

    name: str
    bindings: tuple[str, ...] = ()
    arguments: Mapping[str, Argument] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """The queues around one service, by their names."""

    service: str
    queue: str
    retry: str
    dead: str
    fast_delay: str | None = None

    @property
    def again(self) -> str:
        """Where a message waits whose handling failed: soon enough to be back within the claim of its feed."""
        return self.fast_delay or self.retry


@dataclass(frozen=True)
class Topology:
    """All that stands in one vhost."""

    fetcher: Stage
    writer: Stage
    queues: tuple[Queue, ...]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages in the order in which data flows through them."""
        return (self.fetcher, self.writer)


def build_topology(*, fast_delay_seconds: float, retry_delay_seconds: float, message_retry_seconds: float) -> Topology:
    """Return the map for these delays (seconds, down to the millisecond)."""
    fetcher = Stage(
        service="fetcher",
        queue="fetcher",
        retry=f"fetcher.retry.{retry_delay_seconds:g}s",
        dead="fetcher.dead",
        fast_delay=f"fetcher.fast-delay.{fast_delay_seconds:g}s",
    )
    writer = Stage(
        service="writer",
        queue="writer",
        retry=f"writer.retry.{message_retry_seconds:g}s",
        dead="writer.dead",
    )
    assert fetcher.fast_delay is not None
    return Topology(
        fetcher=fetcher,
        writer=writer,
        queues=(
            _work_queue(fetcher, f"{FetchFeed.KIND}.#"),
            _delay_queue(fetcher.fast_delay, fast_delay_seconds, then=fetcher.queue),
            _delay_queue(fetcher.retry, retry_delay_seconds, then=fetcher.queue),
            _dead_queue(fetcher),
            _work_queue(writer, FeedFetched.KIND),
            _delay_queue(writer.retry, message_retry_seconds, then=writer.queue),
            _dead_queue(writer),
        ),
    )


def fetch_routing_key(group: str) -> str:
    """Return the routing key of a `FetchFeed` for a politeness group.

    The group rides along as a hash (it may be longer than AMQP's 255 bytes), so that an exchange that hashes
    routing keys can give each group to one fetcher.
    """
    return f"{FetchFeed.KIND}.{hashlib.md5(group.encode(), usedforsecurity=False).hexdigest()[:8]}"


def _work_queue(stage: Stage, *bindings: str) -> Queue:
    return Queue(
        stage.queue,
        bindings,
        {
            "x-queue-type": "quorum",
            "x-delivery-limit": DELIVERY_LIMIT,
            **_dead_letter_to(stage.dead),
        },
    )


def _delay_queue(name: str, seconds: float, *, then: str) -> Queue:
    return Queue(
        name,
        arguments={
            "x-queue-type": "quorum",
            "x-message-ttl": round(seconds * 1000),
            **_dead_letter_to(then),
        },
    )


def _dead_queue(stage: Stage) -> Queue:
    return Queue(stage.dead, arguments={"x-queue-type": "quorum", "x-delivery-limit": LOOKED_AT_LIMIT})


def _dead_letter_to(queue: str) -> dict[str, Argument]:
    return {
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": queue,
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
