"""The consumer loop: receive, decode, handle, publish, confirm, acknowledge. Stages have no other.

A service hands over a function from messages to the messages that follow. The loop promises for every delivery:

- It is acknowledged only after the handler returned and the broker confirmed everything that the handler returned.
- `Unavailable` (database or broker away): the message is kept and tried again until it works or the session ends. After
  the session the broker delivers it again.
- `NackAndRequeue`: it goes back to its queue.
- Any other error of a batch: the batch is halved until the culprit stands alone. `shared.errors.after_failure` then
  sends it to the retry queue or to the dead queue, with the reason in its headers. The other messages go through.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from shared.broker.port import Broker, Delivery, Session
from shared.broker.prefetch import PrefetchLimit, divide
from shared.broker.settling import UNPUBLISHED_SECONDS, Handler, Settler, Unpublished
from shared.broker.shards import front_of, in_ranges, is_front, is_shard
from shared.broker.topology import Stage, Topology
from shared.errors import Unavailable
from shared.ttl_cache import TtlCache
from shared.waiting import keep_trying, until_any
from shared.wire.envelope import Message

log = logging.getLogger(__name__)

DRAIN_SECONDS = 35.0
"""The default time on shutdown for work that has begun, the publisher confirms included."""

FRONT_PREFETCH = 8
"""How many messages of a front queue may be unsettled, whatever the prefetch limit says: a person waits for each, and a
few more fit into any process."""

M = TypeVar("M", bound=Message)


def count_entries(delivery: Delivery) -> int:
    """Return the weight of a result in a batch: the number of its entries, at least one."""
    entries = delivery.headers.get("entries", 0)
    return max(1, entries) if isinstance(entries, int) else 1


@dataclass(frozen=True)
class Batching:
    """How many messages the handler gets at once. The default is one at a time, as many in parallel as the prefetch."""

    size: int = 1
    """A batch is full at this weight."""
    linger_seconds: float = 0.0
    """How long a batch waits until it is full."""
    weigh: Callable[[Delivery], int] = lambda _: 1
    concurrency: int | None = None
    """Batches handled at the same time; None: as many as the prefetch allows."""


class Arrivals:
    """Deliveries that wait for the handler. Closed when no more will be handled."""

    def __init__(self) -> None:
        self._waiting: deque[Delivery] = deque()
        self._changed = asyncio.Event()
        self._closed = False

    def put(self, delivery: Delivery) -> None:
        """Add a delivery; the session calls this."""
        self._waiting.append(delivery)
        self._changed.set()

    async def close_when(self, *events: asyncio.Event) -> None:
        """Close as soon as any of the events is set."""
        await until_any(*events)
        self._closed = True
        self._changed.set()

    async def next_batch(self, batching: Batching, most: int) -> list[Delivery]:
        """Return the next batch, of at most `most` deliveries; empty once closed."""
        first = await self._next()
        if first is None:
            return []
        batch, weight = [first], batching.weigh(first)
        deadline = asyncio.get_running_loop().time() + batching.linger_seconds
        while weight < batching.size and len(batch) < most:
            following = await self._next(deadline)
            if following is None:
                break
            batch.append(following)
            weight += batching.weigh(following)
        return batch

    async def _next(self, deadline: float | None = None) -> Delivery | None:
        """Return the oldest delivery; None if closed, or at `deadline` (the event loop's clock, seconds)."""
        if self._waiting and not self._closed:
            return self._waiting.popleft()
        try:
            async with asyncio.timeout_at(deadline):
                while not (self._waiting or self._closed):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return None
        return None if self._closed else self._waiting.popleft()

    def take_rest(self, queues: Collection[str] | None = None) -> list[Delivery]:
        """Remove and return what no handler has begun: the deliveries of these queues, or all."""
        rest = [delivery for delivery in self._waiting if queues is None or delivery.queue in queues]
        left = [delivery for delivery in self._waiting if queues is not None and delivery.queue not in queues]
        self._waiting = deque(left)
        return rest


class Consumer(Generic[M]):
    """Runs one stage's handler over its queues until told to stop.

    Args:
        broker: makes the sessions.
        topology: declared with every new session.
        stage: the queues to read, and where failed messages go.
        kind: the message class of these queues.
        handler: see `Handler`.
        prefetch: how many unsettled messages the broker may hand us; a `PrefetchLimit` may change at any time.
        failures: how often a message that raised a bug is tried again before it is dead-lettered.
        batching: see `Batching`.
        drain_seconds: time on shutdown for work that has begun.
    """

    def __init__(
        self,
        broker: Broker,
        topology: Topology,
        stage: Stage,
        kind: type[M],
        handler: Handler[M],
        *,
        prefetch: int | PrefetchLimit,
        failures: int,
        batching: Batching | None = None,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        self._broker = broker
        self._topology = topology
        self._stage = stage
        self._kind = kind
        self._handler = handler
        self._limit = prefetch if isinstance(prefetch, PrefetchLimit) else PrefetchLimit(prefetch)
        self._failures = failures
        self._batching = batching or Batching()
        self._drain_seconds = drain_seconds
        self._unpublished: Unpublished = TtlCache(UNPUBLISHED_SECONDS)
        self.session: Session | None = None
        """The current session, if there is one (for health checks and queue lengths)."""

    async def run(self, stop: asyncio.Event) -> None:
        """Consume until `stop` is set; reconnect whenever the session is lost.

        On `stop`: consume no more, requeue the messages that were not begun, finish and settle the others, close.

        Raises:
            ConfigurationError: the topology does not fit what exists at the broker.
        """
        while not stop.is_set():
            try:
                await keep_trying(partial(self._run_session, stop), what="connecting to the broker", until=(stop,))
            except Unavailable as error:
                log.info("stopped while the broker was away: %s", error)

    def check(self) -> str | None:
        """Return what keeps this consumer from being ready, if anything (a `shared.observability.telemetry.Check`)."""
        return None if self.session and not self.session.lost.is_set() else "no session with the broker"

    async def _run_session(self, stop: asyncio.Event) -> None:
        async with self._broker.connect(self._topology) as session:
            self.session = session
            arrivals = Arrivals()
            closing = asyncio.create_task(arrivals.close_when(stop, session.lost))
            settler = Settler(
                session,
                stop,
                self._stage,
                self._kind,
                self._handler,
                failures=self._failures,
                max_message_bytes=self._broker.max_message_bytes,
                unpublished=self._unpublished,
            )
            enough = asyncio.Event()
            subscribing = asyncio.create_task(self._subscribe(session, arrivals, settler, enough))
            try:
                running = await self._start_batches(arrivals, settler)
                self._end(enough)
                await asyncio.wait((subscribing,))
                await self._drain(session, arrivals, settler, running)
                subscribing.result()  # an error that ended the session: reconnect, after a pause
            finally:
                closing.cancel()
                self._end(enough)
                settler.remember_acknowledged()
                self.session = None
        if not stop.is_set():
            log.warning("the session with the broker was lost, connecting anew")

    def _end(self, enough: asyncio.Event) -> None:
        enough.set()
        self._limit.wake()

    async def _subscribe(
        self, session: Session, arrivals: Arrivals, settler: Settler[M], enough: asyncio.Event
    ) -> None:
        """Consume as the prefetch limit says, until `enough` is set.

        An event ends it instead of a cancellation, so that no call to the broker is cut off.
        """
        current: dict[str, int] = {}
        try:
            while not enough.is_set():
                wanted = self._wanted()
                changed = [queue for queue in current if wanted.get(queue) != current[queue]]
                for queue in changed:
                    if not enough.is_set():
                        await session.stop_consuming(queue)
                for delivery in arrivals.take_rest([q for q in changed if wanted.get(q, 0) < current[q]]):
                    await settler.requeue(delivery)
                for queue, prefetch in wanted.items():
                    if prefetch != current.get(queue) and not enough.is_set():
                        await session.consume(queue, prefetch=prefetch, deliver=arrivals.put)
                if wanted != current:
                    self._log_change({queue: n for queue, n in wanted.items() if not is_front(queue)})
                current = wanted
                if self._wanted() == current:
                    self._limit.note_applied()
                await self._limit.wait_changed()
        except Exception:
            session.lost.set()  # also after a bug: nobody would apply the prefetch limit any more
            raise
        finally:
            self._limit.note_applied()  # a session that ends delivers nothing more

    def _wanted(self) -> dict[str, int]:
        """Return the prefetch count by queue. A limit of 0 stops no front queue."""
        queues = self._stage.queues if self._limit.queues is None else self._limit.queues
        fronts = {front_of(queue): FRONT_PREFETCH for queue in queues if is_shard(queue)}
        return fronts | divide(self._limit.total, queues)

    def _log_change(self, wanted: dict[str, int]) -> None:
        what = "consuming" if wanted else "taking no more for now"
        log.info(
            what, extra={"queue": self._stage.service, "prefetch": sum(wanted.values()), "queues": in_ranges(wanted)}
        )

    async def _start_batches(self, arrivals: Arrivals, settler: Settler[M]) -> set[asyncio.Task[None]]:
        """Start a task per batch until the arrivals are closed; return the tasks that still run then."""
        running: set[asyncio.Task[None]] = set()
        while batch := await arrivals.next_batch(self._batching, most=self._limit.most):
            task = asyncio.create_task(settler.settle(batch))
            running.add(task)
            task.add_done_callback(running.discard)
            while self._batching.concurrency and len(running) >= self._batching.concurrency:
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        return running

    async def _drain(
        self, session: Session, arrivals: Arrivals, settler: Settler[M], running: set[asyncio.Task[None]]
    ) -> None:
        """Consume no more, requeue the messages that were not begun, wait for the others."""
        try:
            await session.stop_consuming()
            for delivery in arrivals.take_rest():
                await settler.requeue(delivery)
        except Unavailable as error:
            log.info("the broker went away first and will deliver the messages again: %s", error)
        if not running:
            return
        # After a lost session nothing can be settled any more.
        patience = 0.0 if session.lost.is_set() else self._drain_seconds
        _, late = await asyncio.wait(running, timeout=patience)
        for task in late:
            task.cancel()
        if late:
            log.warning("%d messages were not finished and will be delivered again", len(late))
            await asyncio.wait(late)
