"""The map: exchanges, queues, bindings and arguments, as data. Code, docs and deployments follow it.

    feed.fetch.07.v1  ─► fetcher.07 ─► (the fetcher that owns it) ─► feed.fetched.v1 ─► writer ─► (writer service)
                           ▲  ▲
       fetcher.fast-delay ─┘  └─ fetcher.retry                      writer.retry ─► writer
                                       fetcher.dead                            writer.dead

Jobs stand in *shards*, queues `fetcher.00`, `fetcher.01`, …: each politeness group belongs to one by its hash. One
fetcher at a time owns a shard (`services/fetcher/shards`), so that one scoreboard knows all requests to a host.

Delay queues have no consumer: their messages expire after the queue's own TTL and are dead-lettered to the queue
that the routing key names. Each is fed by a fanout exchange of its own name, which takes every key and leaves it as it
is: so one delay queue leads each job back to its own shard. A queue's TTL can't be changed once it is declared, so it
is part of the name: a new setting makes a new queue, and the old one drains by itself.

Nothing is published to the default exchange, since who may, may write to every queue. A queue that a service addresses
by its name is bound by that name, too, so that its user can be held to the keys of its room
(`services/cli/broker_users.py`).

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
from typing import Final, Literal

from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched

EXCHANGE: Final = "feedmill"
"""Where messages enter: durable, of type topic. Routing keys are message kinds."""

FETCHERS: Final = "feedmill.fetchers"
"""Where fetchers tell each other what they own; no durable queue is bound to it."""

SHARDS: Final = 12
"""Shards unless told otherwise: so many fetchers can share the work; 1, 2, 3, 4, 6 and 12 share it evenly."""

MOST_SHARDS: Final = 100
"""Their numbers have two digits."""

DELIVERY_LIMIT: Final = 100
"""Redeliveries after which the broker itself moves a message to the dead queue. High, since each loss of a
connection counts as one; a message that kills its consumer a hundred times is poison."""

LOOKED_AT_LIMIT: Final = 1_000_000
"""The same for dead queues, where each look at a message (management UI, `get` and requeue) counts as a delivery:
RabbitMQ 4 would drop a dead letter after the twentieth."""

ANY_KEY: Final = ""
"""The binding of a queue to a fanout exchange, which looks at no key."""

Argument = str | int


@dataclass(frozen=True)
class Exchange:
    """One durable exchange."""

    name: str
    type: Literal["topic", "fanout"] = "fanout"


@dataclass(frozen=True)
class Queue:
    """One durable queue, the routing keys that feed it, and the arguments that it is declared with."""

    name: str
    bindings: tuple[str, ...] = ()
    """Routing keys of the exchange that feeds it; its own name is one where services address it by that."""
    exchange: str = EXCHANGE
    arguments: Mapping[str, Argument] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """The queues around one service, by their names. Those with a delay are exchanges of the same name, too."""

    service: str
    queues: tuple[str, ...]
    """What it reads: one queue, or its shards."""
    retry: str
    dead: str
    fast_delay: str | None = None

    @property
    def again(self) -> str:
        """Where a message waits whose handling failed: soon enough to be back within the claim of its feed."""
        return self.fast_delay or self.retry

    @property
    def queue(self) -> str:
        """The one queue of a stage that has no shards."""
        (queue,) = self.queues
        return queue

    def queue_of(self, group: str) -> str:
        """Return the shard that a politeness group belongs to."""
        return self.queues[shard_of(group, len(self.queues))]


@dataclass(frozen=True)
class Topology:
    """All that stands in one vhost."""

    fetcher: Stage
    writer: Stage
    queues: tuple[Queue, ...]
    exchanges: tuple[Exchange, ...] = (Exchange(EXCHANGE, "topic"), Exchange(FETCHERS))
    declared_on_connect: bool = True
    """Whether whoever connects declares it; if not, it is there already and its user may not."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages in the order in which data flows through them."""
        return (self.fetcher, self.writer)


def build_topology(
    *, fast_delay_seconds: float, retry_delay_seconds: float, message_retry_seconds: float, fetcher_shards: int = SHARDS
) -> Topology:
    """Return the map for these delays (seconds, down to the millisecond)."""
    fetcher = Stage(
        service="fetcher",
        queues=tuple(map(shard_name, range(fetcher_shards))),
        # v2: the first ones led back to the queue `fetcher`, and a queue's arguments can't be changed
        retry=f"fetcher.retry.v2.{retry_delay_seconds:g}s",
        dead="fetcher.dead",
        fast_delay=f"fetcher.fast-delay.v2.{fast_delay_seconds:g}s",
    )
    writer = Stage(
        service="writer",
        queues=("writer",),
        retry=f"writer.retry.{message_retry_seconds:g}s",
        dead="writer.dead",
    )
    assert fetcher.fast_delay is not None
    delays = (fetcher.fast_delay, fetcher.retry, writer.retry)
    return Topology(
        fetcher=fetcher,
        writer=writer,
        queues=(
            *(_work_queue(name, fetcher, _shard_key(number)) for number, name in enumerate(fetcher.queues)),
            _delay_queue(fetcher.fast_delay, fast_delay_seconds),
            _delay_queue(fetcher.retry, retry_delay_seconds),
            _dead_queue(fetcher),
            _work_queue(writer.queue, writer, FeedFetched.KIND),
            _delay_queue(writer.retry, message_retry_seconds, then=writer.queue),
            _dead_queue(writer),
        ),
        exchanges=(Exchange(EXCHANGE, "topic"), Exchange(FETCHERS), *map(Exchange, delays)),
    )


def shard_of(group: str, shards: int) -> int:
    """Return the number of the shard that a politeness group belongs to; the same everywhere and for ever."""
    return int.from_bytes(hashlib.md5(group.encode(), usedforsecurity=False).digest()[:8]) % shards


def shard_name(number: int) -> str:
    """Return what the queue of a shard is called."""
    return f"fetcher.{number:02d}"


def is_shard(queue: str) -> bool:
    """Return whether a queue is a shard, of however many."""
    return any(queue == shard_name(number) for number in range(MOST_SHARDS))


def fetch_routing_key(group: str, shards: int) -> str:
    """Return the routing key of a `FetchFeed` for a politeness group: `feed.fetch.07.v1`."""
    return _shard_key(shard_of(group, shards))


def _shard_key(number: int) -> str:
    # Not behind the kind: the queue `fetcher` of earlier versions takes all of `feed.fetch.v1.#`.
    kind, _, version = FetchFeed.KIND.rpartition(".")
    return f"{kind}.{number:02d}.{version}"


def _work_queue(name: str, stage: Stage, *bindings: str) -> Queue:
    return Queue(
        name,
        (name, *bindings),
        arguments={
            "x-queue-type": "quorum",
            "x-delivery-limit": DELIVERY_LIMIT,
            **_dead_letter_to(stage.dead),
        },
    )


def _delay_queue(name: str, seconds: float, *, then: str | None = None) -> Queue:
    """Return a queue that leads back to the queue `then`, or else to the one that the routing key names."""
    return Queue(
        name,
        (ANY_KEY,),
        exchange=name,
        arguments={
            "x-queue-type": "quorum",
            "x-message-ttl": round(seconds * 1000),
            **_dead_letter_to(then),
        },
    )


def _dead_queue(stage: Stage) -> Queue:
    return Queue(stage.dead, (stage.dead,), arguments={"x-queue-type": "quorum", "x-delivery-limit": LOOKED_AT_LIMIT})


def _dead_letter_to(queue: str | None) -> dict[str, Argument]:
    return {
        "x-dead-letter-exchange": "",
        **({"x-dead-letter-routing-key": queue} if queue else {}),
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
