"""The one loop: decode, handle, publish, confirm, settle. Nothing else in Feedmill acknowledges a message.

A service hands over a function from messages to the messages that follow; it never acknowledges, publishes or
sleeps on the broker's account. The loop promises, for every delivery:

- it is acknowledged only after the handler returned and everything it returned was confirmed by the broker;
- `Unavailable` (database or broker away): the message is kept and tried again until it works or the session ends,
  and then the broker hands it out again;
- `NackAndRequeue`: back to its queue;
- any other error of a batch: the batch is halved until the culprit stands alone; alone, `shared/retry.py` decides:
  retry queue, or dead queue with the reason in the headers. Everyone else's work goes through.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Generic, TypeVar

from shared.broker.deliveries import Arrivals, Batching
from shared.broker.port import Broker, Session
from shared.broker.prefetch import PrefetchLimit, divide
from shared.broker.settling import UNPUBLISHED_SECONDS, Handler, Settler, Unpublished
from shared.broker.topology import Stage, Topology
from shared.errors import Unavailable
from shared.ttl_cache import TtlCache
from shared.waiting import keep_trying
from shared.wire.envelope import Message

log = logging.getLogger(__name__)

DRAIN_SECONDS = 35.0
"""How long what was begun may take to its end on shutdown, the confirms included, unless a service knows better."""

M = TypeVar("M", bound=Message)


class Consumer(Generic[M]):
    """Runs one stage's handler over its queues until told to stop.

    Args:
        broker: where sessions come from.
        topology: declared with every new session.
        stage: the queues to read, and where failures go.
        kind: the message class of these queues.
        handler: see `Handler`.
        prefetch: unsettled messages the broker may hand us; or a prefetch limit, which may be turned at any time.
        failures: how often a message that raised a bug is tried again before it is buried.
        batching: see `Batching`.
        drain_seconds: how long what was begun may take to its end on shutdown.
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
        self._prefetch_limit = prefetch if isinstance(prefetch, PrefetchLimit) else PrefetchLimit(prefetch)
        self._failures = failures
        self._batching = batching or Batching()
        self._drain_seconds = drain_seconds
        self._unpublished: Unpublished = TtlCache(UNPUBLISHED_SECONDS)
        self.session: Session | None = None
        """The session that stands at the moment, if any (for health checks and depth look-ups)."""

    async def run(self, stop: asyncio.Event) -> None:
        """Consume until `stop` is set; reconnect whenever the session is lost.

        On `stop`: ask for no more, give back what was not begun, finish and settle what was, close.

        Raises:
            ConfigurationError: the topology does not fit what stands in the broker.
        """
        while not stop.is_set():
            try:
                await keep_trying(lambda: self._run_session(stop), what="connecting to the broker", until=(stop,))
            except Unavailable as error:
                log.info("stopped while the broker was away: %s", error)

    def check(self) -> str | None:
        """Return what keeps this consumer from being ready, if anything (a `shared.observability.telemetry.Check`)."""
        return None if self.session and not self.session.lost.is_set() else "no session with the broker"

    async def _run_session(self, stop: asyncio.Event) -> None:
        async with self._broker.connect(self._topology) as session:
            self.session = session
            arrivals = Arrivals()
            watcher = asyncio.create_task(arrivals.close_when(stop, session.lost))
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
            feeding = asyncio.create_task(self._feed(session, arrivals, settler, enough))
            try:
                running = await self._pump(arrivals, settler)
                self._end(enough)
                await asyncio.wait((feeding,))
                await self._drain(session, arrivals, settler, running)
                feeding.result()  # what ended the session: connect anew, but not at once
            finally:
                watcher.cancel()
                self._end(enough)
                settler.keep_acknowledged()
                self.session = None
        if not stop.is_set():
            log.warning("the session with the broker was lost, connecting anew")

    def _end(self, enough: asyncio.Event) -> None:
        enough.set()
        self._prefetch_limit.wake()

    async def _feed(self, session: Session, arrivals: Arrivals, settler: Settler[M], enough: asyncio.Event) -> None:
        """Take as many messages as the prefetch limit lets through, from where it points at, until `enough` is set.

        It is told, and not cancelled: between two calls to the broker it ends, and not within one.
        """
        standing: dict[str, int] = {}
        try:
            while not enough.is_set():
                wanted = self._wanted()
                if wanted != standing:
                    await self._follow(session, arrivals, settler, standing, wanted, enough)
                    standing = wanted
                if self._wanted() == standing:
                    self._prefetch_limit.note_applied()
                await self._prefetch_limit.wait_changed()
        except Exception:
            session.lost.set()  # a bug too: nobody would follow the prefetch limit any more
            raise
        finally:
            self._prefetch_limit.note_applied()  # nothing comes through a session that ends

    def _wanted(self) -> dict[str, int]:
        queues = self._prefetch_limit.queues
        return divide(self._prefetch_limit.total, self._stage.queues if queues is None else queues)

    async def _follow(
        self,
        session: Session,
        arrivals: Arrivals,
        settler: Settler[M],
        standing: dict[str, int],
        wanted: dict[str, int],
        enough: asyncio.Event,
    ) -> None:
        """From what each queue hands out at most to what it is to hand out."""
        changed = [queue for queue in standing if wanted.get(queue) != standing[queue]]
        for queue in changed:
            if not enough.is_set():
                await session.stop_consuming(queue)
        for delivery in arrivals.take_rest([queue for queue in changed if wanted.get(queue, 0) < standing[queue]]):
            await settler.requeue(delivery)
        for queue, prefetch in wanted.items():
            if prefetch != standing.get(queue) and not enough.is_set():
                await session.consume(queue, prefetch=prefetch, deliver=arrivals.put)
        what = "consuming" if wanted else "taking no more for now"
        log.info(what, extra={"queue": self._stage.service, "prefetch": sum(wanted.values()), "queues": [*wanted]})

    async def _pump(self, arrivals: Arrivals, settler: Settler[M]) -> set[asyncio.Task[None]]:
        """Have batches settled until the arrivals are closed; return what still runs then."""
        running: set[asyncio.Task[None]] = set()
        while batch := await arrivals.next_batch(self._batching, most=self._prefetch_limit.most):
            task = asyncio.create_task(settler.settle(batch))
            running.add(task)
            task.add_done_callback(running.discard)
            while self._batching.concurrency and len(running) >= self._batching.concurrency:
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        return running

    async def _drain(
        self, session: Session, arrivals: Arrivals, settler: Settler[M], running: set[asyncio.Task[None]]
    ) -> None:
        """Ask for no more, give back what was not begun, let what was come to its end."""
        try:
            await session.stop_consuming()
            for delivery in arrivals.take_rest():
                await settler.requeue(delivery)
        except Unavailable as error:
            log.info("the broker went away first and will hand the messages out again: %s", error)
        # After a loss, what they come to can't be settled any more, and will be handed out again.
        patience = 0.0 if session.lost.is_set() else self._drain_seconds
        if running:
            _, late = await asyncio.wait(running, timeout=patience)
            for task in late:
                task.cancel()
            if late:
                log.warning("%d messages were not finished and will be handed out again", len(late))
                await asyncio.wait(late)
