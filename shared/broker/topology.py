"""The topology: exchanges, queues, bindings and arguments, as data. Code, docs and deployments follow it.

    feed.fetch.07.v1  ─► fetcher.07 ─► (the fetcher that owns it) ─► feed.fetched.v1 ─► writer ─► (writer service)
                           ▲  ▲
       fetcher.fast-delay ─┘  └─ fetcher.retry                      writer.retry ─► writer
       fetcher.07.front ─► (the same one)  fetcher.dead     writer.trials ─► (writer)  writer.dead

`CHAIN` lists the stages in the order of the data. To add one, add its package and an entry before the writer's. Its
queues, the users' rights, `feedmill dead` and `status` follow.

An *optional* stage, such as the enricher, adds to articles what they can do without. Results without entries pass it
by, and so do all results while it is switched off. What it does not take in time goes on to the next stage as it is,
and so does a message that it dies of.

The fetcher's jobs wait in *shards*, the queues `fetcher.00`, `fetcher.01`, …: each politeness group belongs to one by
its hash. One fetcher at a time owns a shard (`services/fetcher/shards`), so that one scoreboard sees all requests to a
host.

Each shard has a *front queue*, for jobs that a person waits for (`feedmill fire`): the shard's fetcher reads it beside
the shard, however full that is. Quorum queues have no priorities before RabbitMQ 4. What nobody reads for a minute goes
to the shard, since fetchers of earlier versions read no front queues.

What a dry run brings goes to `writer.trials`, so that no writer that would write it gets hold of it.

A delay queue has no consumer: its messages expire after the queue's TTL and are dead-lettered to the queue that their
routing key names. A fanout exchange of the same name feeds it and leaves every routing key as it is, so that one delay
queue leads each job back to its own shard. A declared queue can't change its TTL. The TTL is therefore part of its
name: a new setting makes a new queue, and the old one drains by itself.

Nobody publishes to the default exchange, since the right to it is the right to write to every queue. A queue that a
service addresses by name is bound by that name, so that a user's rights can be limited to routing keys
(`services/cli/broker_users.py`).

All queues are durable quorum queues. Two rules keep every message (RabbitMQ 3.10 to 4.x):

- Delay queues dead-letter *at least once* (`x-dead-letter-strategy`, which requires `x-overflow: reject-publish`): a
  broker that dies between expiry and delivery loses nothing.
- Work queues have their own `x-delivery-limit` and dead-letter target. RabbitMQ 4 otherwise *drops* a message after 20
  redeliveries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from shared.broker.shards import SHARDS, front_of, shard_name, shard_of
from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched

EXCHANGE: Final = "feedmill"
"""Where messages enter: a durable topic exchange. Routing keys are message kinds or names of queues."""

FETCHERS: Final = "feedmill.fetchers"
"""The exchange of the fetchers' heartbeats and of the database's time; no durable queue is bound to it."""

NOWHERE: Final = "nowhere"
"""A routing key that no queue is bound by: whoever asks whether the broker takes messages publishes to it."""

DELIVERY_LIMIT: Final = 100
"""Redeliveries after which the broker moves a message to the dead queue. High, since each lost connection counts as
one; a message that kills its consumer a hundred times is poison."""

DEAD_DELIVERY_LIMIT: Final = 1_000_000
"""The same for dead queues: each look at a message (management UI, `get` and requeue) counts as a delivery, and
RabbitMQ 4 would drop a dead letter after the twentieth."""

ANY_KEY: Final = ""
"""The binding key of a queue at a fanout exchange, which ignores keys."""

OPTIONAL_SECONDS: Final = 600.0
"""How long a result waits for an optional stage, before it goes on without."""

OPTIONAL_DELIVERY_LIMIT: Final = 10
"""Redeliveries after which a result goes on without an optional stage."""

FRONT_SECONDS: Final = 60.0
"""How long a job waits in a front queue for the shard's fetcher, before it goes to the shard."""

FRONT_BYTES: Final = 32 * 1024 * 1024
"""The most bytes of a front queue; then it refuses jobs."""

TRIAL_SECONDS: Final = 600.0
"""How long a dry run's result waits for a writer. Then nobody waits for it any more, and the broker drops it."""

TRIAL_BYTES: Final = 256 * 1024 * 1024
"""The most bytes of such results; the oldest are dropped."""

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
    """Routing keys of the exchange that feeds it, its own name among them if services address it by name."""
    exchange: str = EXCHANGE
    arguments: Mapping[str, Argument] = field(default_factory=dict)


@dataclass(frozen=True)
class StageEntry:
    """A stage in the chain."""

    service: str
    """Its service, its queue, and the first word of the names of its other queues."""
    input_key: str = ""
    """The routing key of its messages; empty: the queue's name."""
    is_optional: bool = False
    """Whether results may go on without it: those without entries always do."""


CHAIN: Final = (
    StageEntry("fetcher"),
    StageEntry("enricher", is_optional=True),
    StageEntry("writer", input_key=FeedFetched.KIND),
)
"""The stages in the order of the data. The first one reads the scheduler's jobs from shards; each later one reads what
the stage before it hands on."""


@dataclass(frozen=True)
class Stage:
    """The queues around one service, by name. The delay queues' names are names of exchanges, too."""

    service: str
    queues: tuple[str, ...]
    """What it reads: one queue, or its shards."""
    retry: str
    dead: str
    """Empty: a message that fails is dropped."""
    fast_delay: str | None = None
    input_key: str = ""
    """The routing key of its messages; empty: each shard has its own."""
    next_key: str | None = None
    """The routing key of what it hands on to the next stage; None: it is the last stage."""
    next_key_if_empty: str | None = None
    """The same for results without entries."""
    is_optional: bool = False
    """Whether results may go on without it."""
    is_on: bool = True
    """False: it is optional, and results pass it by."""

    @property
    def message_retry(self) -> str:
        """The delay queue for a message whose handling failed: short enough to be back within its feed's claim."""
        return self.fast_delay or self.retry

    @property
    def queue(self) -> str:
        """The one queue of a stage without shards."""
        (queue,) = self.queues
        return queue

    def queue_of(self, group: str) -> str:
        """Return the shard that a politeness group belongs to."""
        return self.queues[shard_of(group, len(self.queues))]


TRIALS: Final = Stage("writer.trials", queues=("writer.trials",), retry="", dead="")
"""Where dry runs end: its results are written by nobody. It stands beside the chain."""


_TRIALS = Queue(
    TRIALS.queue,
    (TRIALS.queue,),
    arguments={
        "x-queue-type": "quorum",
        "x-delivery-limit": DELIVERY_LIMIT,
        "x-message-ttl": round(TRIAL_SECONDS * 1000),
        "x-max-length-bytes": TRIAL_BYTES,
    },
)


@dataclass(frozen=True)
class Topology:
    """All queues and exchanges of one virtual host."""

    stages: tuple[Stage, ...]
    """In the order of the data."""
    queues: tuple[Queue, ...]
    exchanges: tuple[Exchange, ...]
    declared_on_connect: bool = True
    """Whether services declare it when they connect. If not, `feedmill migrate` has, and their users may not."""

    def stage(self, service: str) -> Stage:
        """Return the stage of a service."""
        return next(stage for stage in self.stages if stage.service == service)

    def behind(self, stage: Stage) -> tuple[Stage, ...]:
        """Return the stages behind `stage`, the next one first."""
        return self.stages[self.stages.index(stage) + 1 :]

    @property
    def fetcher(self) -> Stage:
        """The fetcher's stage."""
        return self.stage("fetcher")

    @property
    def writer(self) -> Stage:
        """The writer's stage."""
        return self.stage("writer")


def build_topology(
    chain: Sequence[StageEntry] = CHAIN,
    /,
    *,
    fast_delay_seconds: float,
    retry_delay_seconds: float,
    message_retry_seconds: float,
    fetcher_shards: int = SHARDS,
    switched_off: Collection[str] = (),
) -> Topology:
    """Return the topology for these delays (seconds, down to the millisecond).

    Results pass by the optional stages in `switched_off`. These keep their queues, which drain.
    """
    first, *later = chain
    keys = [_key_of(entry) for entry in later]
    fetcher = Stage(
        service=first.service,
        queues=tuple(map(shard_name, range(fetcher_shards))),
        # v2: version 1 led back to the queue `fetcher`, and a queue's arguments can't be changed
        retry=f"fetcher.retry.v2.{retry_delay_seconds:g}s",
        dead="fetcher.dead",
        fast_delay=f"fetcher.fast-delay.v2.{fast_delay_seconds:g}s",
        next_key=_next_key(later, switched_off),
        next_key_if_empty=_next_key(later, (), is_empty=True),
    )
    assert fetcher.fast_delay is not None
    stages, exchanges = [fetcher], [fetcher.fast_delay, fetcher.retry]
    queues = [
        *(_work_queue(name, _shard_key(n), then=fetcher.dead) for n, name in enumerate(fetcher.queues)),
        *(_work_queue(front_of(name), then=name, **_FRONT) for name in fetcher.queues),
        _delay_queue(fetcher.fast_delay, fast_delay_seconds),
        _delay_queue(fetcher.retry, retry_delay_seconds),
        _dead_queue(fetcher),
    ]
    for place, (entry, key) in enumerate(zip(later, keys, strict=True), start=1):
        stage = Stage(
            service=entry.service,
            queues=(entry.service,),
            retry=f"{entry.service}.retry.{message_retry_seconds:g}s",
            dead=f"{entry.service}.dead",
            input_key=key,
            next_key=_next_key(later[place:], switched_off),
            next_key_if_empty=_next_key(later[place:], (), is_empty=True),
            is_optional=entry.is_optional,
            is_on=entry.service not in switched_off,
        )
        stages.append(stage)
        exchanges.append(stage.retry)
        queues += (
            _stage_queue(stage, key, later[place].service if entry.is_optional else None),
            _delay_queue(stage.retry, message_retry_seconds, then=stage.queue),
            _dead_queue(stage),
        )
    return Topology(
        stages=tuple(stages),
        queues=(*queues, _TRIALS),
        exchanges=(Exchange(EXCHANGE, "topic"), Exchange(FETCHERS), *map(Exchange, exchanges)),
    )


def _key_of(entry: StageEntry) -> str:
    return entry.input_key or entry.service


def _next_key(later: Sequence[StageEntry], switched_off: Collection[str], *, is_empty: bool = False) -> str | None:
    taking = (e for e in later if not (e.is_optional and (is_empty or e.service in switched_off)))
    return next(map(_key_of, taking), None)


def _stage_queue(stage: Stage, key: str, next_queue: str | None) -> Queue:
    """Return the queue of a stage behind the fetcher; of an optional one, with the queue that it leads on to."""
    bindings = [key] if key != stage.queue else []
    if next_queue is None:
        return _work_queue(stage.queue, *bindings, then=stage.dead)
    limits = {"x-delivery-limit": OPTIONAL_DELIVERY_LIMIT, "x-message-ttl": round(OPTIONAL_SECONDS * 1000)}
    return _work_queue(stage.queue, *bindings, then=next_queue, **limits)


def fetch_routing_key(group: str, shards: int) -> str:
    """Return the routing key of a `FetchFeed` for a politeness group: `feed.fetch.07.v1`."""
    return _shard_key(shard_of(group, shards))


def _shard_key(number: int) -> str:
    # Not behind the kind: the queue `fetcher` of earlier versions takes all of `feed.fetch.v1.#`.
    kind, _, version = FetchFeed.KIND.rpartition(".")
    return f"{kind}.{number:02d}.{version}"


_FRONT = {"x-message-ttl": round(FRONT_SECONDS * 1000), "x-max-length-bytes": FRONT_BYTES}


def _work_queue(name: str, *bindings: str, then: str, **arguments: Argument) -> Queue:
    """Return a queue that services read. What fails or expires there goes to the queue `then`."""
    return Queue(
        name,
        (name, *bindings),
        arguments={
            "x-queue-type": "quorum",
            "x-delivery-limit": DELIVERY_LIMIT,
            **arguments,
            **_dead_letter_to(then),
        },
    )


def _delay_queue(name: str, seconds: float, *, then: str | None = None) -> Queue:
    """Return a queue that leads to the queue `then`; None: to the one that the routing key names."""
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
    return Queue(
        stage.dead, (stage.dead,), arguments={"x-queue-type": "quorum", "x-delivery-limit": DEAD_DELIVERY_LIMIT}
    )


def _dead_letter_to(queue: str | None) -> dict[str, Argument]:
    return {
        "x-dead-letter-exchange": "",
        **({"x-dead-letter-routing-key": queue} if queue else {}),
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
