"""A broker in memory behind the port of `shared/broker/port.py`. Passes the same conformance suite as RabbitMQ.

Messages in delay queues never expire, unless the broker is `ticking`: then they expire by the event loop's clock (see
`virtual_time`).

With `turns` every call takes iterations of the event loop, as a round trip takes time, and goes on to its end if its
caller is cancelled. If the broker is `fragile`, such a cancellation costs the session, as it does with AMQP's library
if nothing protects it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from shared.broker.port import Delivery, Publication, Session
from shared.broker.topology import EXCHANGE, Queue, Topology
from shared.errors import BrokerUnavailable, MessageTooLarge, TopologyMismatch, Unconfirmed, Unroutable
from shared.waiting import retrieve_error

R = TypeVar("R")


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
    """The broker.

    Set `up` to False to play a broker that is away. `taking.clear()` plays an alarm: publications are accepted and
    confirmed once `taking` is set again, also if their session has ended meanwhile.

    Args:
        turns: iterations of the event loop that a message takes to the broker, and the answer back again.
    """

    def __init__(
        self,
        *,
        max_message_bytes: int = 1_000_000,
        ticking: bool = False,
        fragile: bool = False,
        turns: int = 0,
        confirm_seconds: float = 30.0,
    ) -> None:
        self.up = True
        self.taking = asyncio.Event()
        self.taking.set()
        self.ticking = ticking
        self.fragile = fragile
        self.turns = turns
        self.confirm_seconds = confirm_seconds
        self.queues: dict[str, _Standing] = {}
        self.refusing: set[str] = set()
        self.max_message_bytes = max_message_bytes
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
        return sum(session.count_consumers_of(queue) for session in self._sessions)

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
        if len(publication.body) > self.max_message_bytes:
            raise MessageTooLarge(f"{len(publication.body)} bytes")
        targets = self._route(publication)
        listeners = [each for session in self._sessions for each in session.listening.get(publication.exchange, ())]
        for receive in listeners:
            receive(publication.body)
        if publication.mandatory and not targets and not listeners:
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
            asyncio.get_running_loop().call_later(int(ttl) / 1000, self._expire, standing, stored)

    def _expire(self, standing: _Standing, stored: Stored) -> None:
        """Dead-letter a message that nobody has read."""
        place = next((n for n, other in enumerate(standing.ready) if other is stored), None)
        if place is None:
            return
        del standing.ready[place]
        if "x-dead-letter-exchange" in standing.declared.arguments:
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
        self._confirms: dict[str, asyncio.Task[None]] = {}

    async def _call(self, act: Callable[[], R]) -> R:
        """Let the broker act after `turns` iterations of the event loop, and answer after as many more."""
        self._alive()
        if not self._broker.turns:
            return act()
        trip = asyncio.create_task(self._travel(act))
        try:
            return await asyncio.shield(trip)
        except asyncio.CancelledError:
            if self._broker.fragile:
                self.end()
            trip.add_done_callback(retrieve_error)
            raise

    async def _travel(self, act: Callable[[], R]) -> R:
        for _ in range(self._broker.turns):
            await asyncio.sleep(0)
        self._alive()
        done = act()
        for _ in range(self._broker.turns):
            await asyncio.sleep(0)
        return done

    async def publish(self, publication: Publication) -> None:
        name = publication.message_id
        confirm = self._confirms.get(name)
        if confirm is None:
            self._alive()
            confirm = self._confirms[name] = asyncio.create_task(self._send(publication))
            if publication.span:
                confirm.add_done_callback(lambda _: publication.span.end())
            confirm.add_done_callback(retrieve_error)
        try:
            await asyncio.wait((confirm,), timeout=self._broker.confirm_seconds)
        except asyncio.CancelledError:
            if self._broker.fragile:
                self.end()
            raise
        if not confirm.done():
            raise Unconfirmed("no confirm yet")
        self._confirms.pop(name, None)
        confirm.result()

    async def _send(self, publication: Publication) -> None:
        for _ in range(max(self._broker.turns, 1)):
            await asyncio.sleep(0)
        self._alive()
        if not self._broker.taking.is_set():
            await self._broker.taking.wait()
        try:
            self._broker.accept(publication)
        except Unroutable:
            self.lost.set()
            raise
        if self.lost.is_set():
            raise Unconfirmed("the session was lost before a confirm")

    async def consume(self, queue: str, *, prefetch: int, deliver: Callable[[Delivery], None]) -> None:
        def act() -> None:
            # The prefetch is the consumer's own: what an earlier one holds does not count.
            self._consumers[queue] = _Consumer(prefetch, deliver)
            self.pull()

        await self._call(act)

    async def stop_consuming(self, queue: str | None = None) -> None:
        def act() -> None:
            for name in list(self._consumers) if queue is None else [queue]:
                self._consumers.pop(name, None)

        await self._call(act)

    async def lock(self, name: str) -> bool:
        return await self._call(lambda: self._broker.locks.setdefault(name, self) is self)

    async def is_locked(self, name: str) -> bool:
        return await self._call(lambda: name in self._broker.locks)

    async def unlock(self, name: str) -> None:
        assert await self._call(lambda: self._broker.locks.pop(name) is self)

    async def listen(self, exchange: str, receive: Callable[[bytes], None], *, name: str) -> bool:
        if not await self.lock(name):
            return False
        self.listening.setdefault(exchange, []).append(receive)
        return True

    async def ack(self, delivery: Delivery) -> None:
        self._alive()
        self._settle(delivery)
        self.pull()

    async def requeue(self, delivery: Delivery) -> None:
        self._alive()
        queue, stored = self._settle(delivery)
        self._broker.take_back(queue, stored)
        self._broker.dispatch()

    async def reject(self, delivery: Delivery) -> None:
        self._alive()
        queue, stored = self._settle(delivery)
        target = self._broker.queues[queue].declared.arguments.get("x-dead-letter-routing-key")
        if target is not None:
            self._broker.queues[str(target)].ready.append(replace(stored, redelivered=False))
        self.pull()

    async def count_ready(self, queue: str) -> int | None:
        def act() -> int | None:
            standing = self._broker.queues.get(queue)
            return len(standing.ready) if standing else None

        return await self._call(act)

    async def count_consumers(self, queue: str) -> int:
        return await self._call(lambda: self._broker.count_consumers(queue))

    async def find_alarm(self) -> str | None:
        return await self._call(lambda: None if self._broker.taking.is_set() else "low on memory")

    def is_consuming(self, queue: str) -> bool:
        return queue in self._consumers and not self.lost.is_set()

    def count_consumers_of(self, queue: str) -> int:
        """Like a quorum queue: a consumer that was ended counts until what it holds is settled."""
        holding = {consumer for name, _, consumer in self._held.values() if name == queue}
        return len(holding | {self._consumers[queue]} if self.is_consuming(queue) else holding)

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
