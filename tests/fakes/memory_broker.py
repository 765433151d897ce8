"""A broker in memory behind the port of `shared/broker.py`. Passes the same conformance suite as RabbitMQ.

Time stands still: delay queues keep what they get, unless the broker is `ticking`; then they follow the event loop's
clock (see `virtual_time`).
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from shared.broker import Delivery, Publication, Session
from shared.errors import BrokerUnavailable, MessageTooLarge, TopologyMismatch, Unroutable
from shared.topology import EXCHANGE, Queue, Topology


@dataclass
class Stored:
    publication: Publication
    redelivered: bool = False


@dataclass
class _Standing:
    declared: Queue
    ready: deque[Stored] = field(default_factory=deque)


@dataclass(eq=False)
class _Consumer:
    prefetch: int
    deliver: Callable[[Delivery], None]
    unsettled: int = 0


class MemoryBroker:
    """See the module. `up` can be set to False to play a broker that is away."""

    def __init__(self, *, max_message_bytes: int = 1_000_000, ticking: bool = False) -> None:
        self.up = True
        self.ticking = ticking
        self.queues: dict[str, _Standing] = {}
        self.refusing: set[str] = set()
        self._max_message_bytes = max_message_bytes
        self._sessions: set[MemorySession] = set()
        self.exchanges: set[str] = set()
        self.locks: dict[str, MemorySession] = {}

    @asynccontextmanager
    async def connect(self, topology: Topology | None) -> AsyncIterator[Session]:
        if not self.up:
            raise BrokerUnavailable("the broker is down")
        self.exchanges |= {exchange.name for exchange in topology.exchanges} if topology else set()
        for queue in topology.queues if topology else ():
            standing = self.queues.setdefault(queue.name, _Standing(queue))
            if dict(standing.declared.arguments) != dict(queue.arguments):
                raise TopologyMismatch(f"queue {queue.name} exists with other arguments")
        session = MemorySession(self)
        self._sessions.add(session)
        try:
            yield session
        finally:
            session.end()
            self._sessions.discard(session)

    def count_consumers(self, queue: str) -> int:
        return sum(session.is_consuming(queue) for session in self._sessions)

    def drop_connections(self) -> None:
        """End all sessions, as a broker that is killed does; queues keep their messages."""
        for session in list(self._sessions):
            session.end()

    def bodies(self, queue: str) -> list[bytes]:
        return [stored.publication.body for stored in self.queues[queue].ready]

    def publications(self, queue: str) -> list[Publication]:
        return [stored.publication for stored in self.queues[queue].ready]

    def delete_queue(self, queue: str) -> None:
        del self.queues[queue]
        for session in self._sessions:
            if session.is_consuming(queue):
                session.lost.set()

    def accept(self, publication: Publication) -> None:
        if len(publication.body) > self._max_message_bytes:
            raise MessageTooLarge(f"{len(publication.body)} bytes")
        targets = self._route(publication)
        listening = [hear for session in self._sessions for hear in session.listening.get(publication.exchange, ())]
        for hear in listening:
            hear(publication.body)
        if publication.mandatory and not targets and not listening:
            raise Unroutable(publication.routing_key)
        for name in targets:
            if name in self.refusing:
                raise BrokerUnavailable(f"{name} refused the message")
            self._store(name, Stored(publication))
        self.dispatch()

    def _store(self, name: str, stored: Stored) -> None:
        standing = self.queues[name]
        standing.ready.append(stored)
        ttl = standing.declared.arguments.get("x-message-ttl")
        if self.ticking and ttl is not None:
            asyncio.get_running_loop().call_later(int(ttl) / 1000, self._expire, standing)

    def _expire(self, standing: _Standing) -> None:
        """Dead-letter the oldest message of a delay queue."""
        stored = standing.ready.popleft()
        key = stored.publication.routing_key
        self._store(str(standing.declared.arguments.get("x-dead-letter-routing-key", key)), stored)
        self.dispatch()

    def take_back(self, queue: str, stored: Stored) -> None:
        """Like a quorum queue: what was returned comes before all others, the first to be returned first."""
        ready = self.queues[queue].ready
        returned = sum(1 for _ in itertools.takewhile(lambda other: other.redelivered, ready))
        ready.insert(returned, replace(stored, redelivered=True))

    def dispatch(self) -> None:
        for session in list(self._sessions):
            session.pull()

    def _route(self, publication: Publication) -> list[str]:
        if publication.exchange == "":
            return [publication.routing_key] if publication.routing_key in self.queues else []
        if publication.exchange not in self.exchanges:
            raise Unroutable(publication.exchange)
        fans_out = publication.exchange != EXCHANGE
        return [
            name
            for name, standing in self.queues.items()
            if standing.declared.exchange == publication.exchange
            and (fans_out or any(_matches(key, publication.routing_key) for key in standing.declared.bindings))
        ]


class MemorySession:
    def __init__(self, broker: MemoryBroker) -> None:
        self.lost = asyncio.Event()
        self.listening: dict[str, list[Callable[[bytes], None]]] = {}
        self._broker = broker
        self._consumers: dict[str, _Consumer] = {}
        self._tags = itertools.count(1)
        self._held: dict[int, tuple[str, Stored, _Consumer]] = {}

    async def publish(self, publication: Publication) -> None:
        self._alive()
        await asyncio.sleep(0)
        self._alive()
        try:
            self._broker.accept(publication)
        except Unroutable:
            self.lost.set()
            raise

    async def consume(self, queue: str, *, prefetch: int, deliver: Callable[[Delivery], None]) -> None:
        self._alive()
        # The prefetch is the consumer's own: what an earlier one holds does not count.
        self._consumers[queue] = _Consumer(prefetch, deliver)
        self.pull()

    async def stop_consuming(self, queue: str | None = None) -> None:
        self._alive()
        for name in list(self._consumers) if queue is None else [queue]:
            self._consumers.pop(name, None)

    async def lock(self, name: str) -> bool:
        self._alive()
        return self._broker.locks.setdefault(name, self) is self

    async def unlock(self, name: str) -> None:
        self._alive()
        assert self._broker.locks.pop(name) is self

    async def listen(self, exchange: str, hear: Callable[[bytes], None]) -> None:
        self._alive()
        self.listening.setdefault(exchange, []).append(hear)

    async def ack(self, delivery: Delivery) -> None:
        self._alive()
        self._settle(delivery)
        self.pull()

    async def give_back(self, delivery: Delivery) -> None:
        self._alive()
        queue, stored = self._settle(delivery)
        self._broker.take_back(queue, stored)
        self._broker.dispatch()

    async def reject(self, delivery: Delivery) -> None:
        self._alive()
        queue, stored = self._settle(delivery)
        target = self._broker.queues[queue].declared.arguments["x-dead-letter-routing-key"]
        self._broker.queues[str(target)].ready.append(replace(stored, redelivered=False))
        self.pull()

    async def count_ready(self, queue: str) -> int | None:
        self._alive()
        standing = self._broker.queues.get(queue)
        return len(standing.ready) if standing else None

    async def count_consumers(self, queue: str) -> int:
        self._alive()
        return self._broker.count_consumers(queue)

    def is_consuming(self, queue: str) -> bool:
        return queue in self._consumers and not self.lost.is_set()

    def pull(self) -> None:
        for queue, consumer in list(self._consumers.items()):
            standing = self._broker.queues.get(queue)
            while standing and standing.ready and not self.lost.is_set() and consumer.unsettled < consumer.prefetch:
                stored = standing.ready.popleft()
                tag = next(self._tags)
                self._held[tag] = (queue, stored, consumer)
                consumer.unsettled += 1
                publication = stored.publication
                consumer.deliver(
                    Delivery(
                        queue=queue,
                        body=publication.body,
                        routing_key=publication.routing_key,
                        type=publication.type,
                        content_encoding=publication.content_encoding,
                        headers=publication.headers,
                        message_id=publication.message_id,
                        redelivered=stored.redelivered,
                        tag=tag,
                    )
                )

    def _settle(self, delivery: Delivery) -> tuple[str, Stored]:
        queue, stored, consumer = self._held.pop(delivery.tag)
        consumer.unsettled -= 1
        return queue, stored

    def end(self) -> None:
        self.lost.set()
        held, self._held = self._held, {}
        for name in [name for name, owner in self._broker.locks.items() if owner is self]:
            del self._broker.locks[name]
        self.listening.clear()
        for queue, stored, _ in reversed(held.values()):
            if queue in self._broker.queues:
                self._broker.queues[queue].ready.appendleft(replace(stored, redelivered=True))
        self._broker.dispatch()

    def _alive(self) -> None:
        if self.lost.is_set():
            raise BrokerUnavailable("the session is lost")


def _matches(pattern: str, routing_key: str) -> bool:
    """The part of AMQP's topic matching that topologies use or used: literal keys, and `#` at the end."""
    prefix = pattern.removesuffix(".#")
    return routing_key == prefix or (pattern.endswith(".#") and routing_key.startswith(prefix + "."))
