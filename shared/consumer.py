"""The one loop: decode, handle, publish, confirm, settle. Nothing else in Feedmill acknowledges a message.

A service hands over a function from messages to the messages that follow; it never acknowledges, publishes or
sleeps on the broker's account. The loop promises, for every delivery:

- it is acknowledged only after the handler returned and everything it returned was confirmed by the broker;
- `Unavailable` (database or broker away): the message is kept and tried again until it works or the session ends,
  and then the broker hands it out again;
- `GiveBack`: back to its queue;
- any other error of a batch: the batch is halved until the culprit stands alone; alone, `shared/retry.py` decides:
  retry queue, or dead queue with the reason in the headers. Everyone else's work goes through.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from prometheus_client import Counter

from shared.broker import Broker, Delivery, Publication, Session
from shared.errors import GiveBack, Unavailable, Unprocessable
from shared.messages import Message
from shared.outgoing import Outgoing, encode_outgoing
from shared.retry import Bury, TryLater, after_failure
from shared.secrets import mask_credentials
from shared.topology import Stage, Topology
from shared.waiting import keep_trying, pause, until_any

log = logging.getLogger(__name__)

MESSAGES = Counter(
    "feedmill_messages_total",
    "Messages settled by the consumer loop: acknowledged, given_back, retried, or buried in the dead queue.",
    ["queue", "result"],
)

DRAIN_SECONDS = 35.0
"""How long what was begun may take to its end on shutdown: the longest fetch, and some for its confirm."""

STUMBLE_SECONDS = 1.0
"""The pause before a new session if the loop itself failed, so that a bug there does not spin."""

ERROR_CHARACTERS = 500
"""An error's text in a header is cut to this; AMQP headers are no place for a traceback."""

M = TypeVar("M", bound=Message)


Handler = Callable[[Sequence[M]], Awaitable[Sequence[Outgoing]]]
"""A batch of messages in, the messages that follow out. All of the batch worked, or it raises."""


@dataclass(frozen=True)
class Batching(Generic[M]):
    """How many messages the handler gets at once: up to `size` by `weigh`, waiting for more up to `linger_seconds`.

    The default is one at a time, as many side by side as the prefetch allows.
    """

    size: int = 1
    linger_seconds: float = 0.0
    weigh: Callable[[Delivery], int] = lambda _: 1
    concurrency: int | None = None
    """Batches handled at the same time; None: as many as the prefetch lets in."""


class Arrivals:
    """Deliveries that wait for their turn. Closed when no more will be handled."""

    def __init__(self) -> None:
        self._waiting: deque[Delivery] = deque()
        self._changed = asyncio.Event()
        self._closed = False

    def put(self, delivery: Delivery) -> None:
        """Add a delivery; called from the session."""
        self._waiting.append(delivery)
        self._changed.set()

    async def close_when(self, *events: asyncio.Event) -> None:
        """Close once any of the events is set."""
        await until_any(*events)
        self._closed = True
        self._changed.set()

    async def next(self, deadline: float | None = None) -> Delivery | None:
        """Return the oldest delivery; None if closed, or at `deadline` (the event loop's clock, seconds)."""
        try:
            async with asyncio.timeout_at(deadline):
                while not (self._waiting or self._closed):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return None
        return None if self._closed else self._waiting.popleft()

    def take_rest(self) -> list[Delivery]:
        """Return all that was not begun."""
        rest = list(self._waiting)
        self._waiting.clear()
        return rest


class Consumer(Generic[M]):
    """Runs one stage's handler over one queue until told to stop.

    Args:
        broker: where sessions come from.
        topology: declared with every new session.
        stage: the queue to read, and where failures go.
        kind: the message class of this queue.
        handler: see `Handler`.
        prefetch: unsettled messages the broker may hand us.
        failures: how often a message that raised a bug is tried again before it is buried.
        batching: see `Batching`.
    """

    def __init__(
        self,
        broker: Broker,
        topology: Topology,
        stage: Stage,
        kind: type[M],
        handler: Handler[M],
        *,
        prefetch: int,
        failures: int,
        batching: Batching[M] | None = None,
    ) -> None:
        self._broker = broker
        self._topology = topology
        self._stage = stage
        self._kind = kind
        self._handler = handler
        self._prefetch = prefetch
        self._failures = failures
        self._batching = batching or Batching()
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
        """Return what keeps this consumer from being ready, if anything (a `shared.telemetry.Check`)."""
        return None if self.session and not self.session.lost.is_set() else "no session with the broker"

    async def _run_session(self, stop: asyncio.Event) -> None:
        async with self._broker.connect(self._topology) as session:
            self.session = session
            arrivals = Arrivals()
            watcher = asyncio.create_task(arrivals.close_when(stop, session.lost))
            try:
                await session.consume(self._stage.queue, prefetch=self._prefetch, deliver=arrivals.put)
                log.info("consuming", extra={"queue": self._stage.queue, "prefetch": self._prefetch})
                await self._pump(session, arrivals, stop)
            finally:
                watcher.cancel()
                self.session = None
        if not stop.is_set():
            log.warning("the session with the broker was lost, connecting anew")

    async def _pump(self, session: Session, arrivals: Arrivals, stop: asyncio.Event) -> None:
        """Hand batches to `_settle` until the arrivals are closed, then drain."""
        running: set[asyncio.Task[None]] = set()
        while batch := await self._collect(arrivals):
            task = asyncio.create_task(self._settle(session, batch, stop))
            running.add(task)
            task.add_done_callback(running.discard)
            while self._batching.concurrency and len(running) >= self._batching.concurrency:
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        try:
            await session.stop_consuming()
            for delivery in arrivals.take_rest():
                await self._give_back(session, delivery)
        except Unavailable as error:
            log.info("the broker went away first and will hand the messages out again: %s", error)
        if session.lost.is_set():
            for task in running:  # what they come to can't be settled any more, and will be handed out again
                task.cancel()
        if running:
            _, late = await asyncio.wait(running, timeout=DRAIN_SECONDS)
            for task in late:
                task.cancel()
            if late:
                log.warning("%d messages were not finished in time and will be handed out again", len(late))
                await asyncio.wait(late)

    async def _collect(self, arrivals: Arrivals) -> list[Delivery]:
        """Return the next batch; empty once the arrivals are closed."""
        first = await arrivals.next()
        if first is None:
            return []
        batch, weight = [first], self._batching.weigh(first)
        if weight < self._batching.size:
            deadline = asyncio.get_running_loop().time() + self._batching.linger_seconds
            while (
                weight < self._batching.size
                and len(batch) < self._prefetch
                and (following := await arrivals.next(deadline))
            ):
                batch.append(following)
                weight += self._batching.weigh(following)
        return batch

    async def _settle(self, session: Session, batch: list[Delivery], stop: asyncio.Event) -> None:
        """Handle a batch to its end. If the session ends first, the broker hands the messages out again."""
        try:
            good: list[tuple[Delivery, M]] = []
            for delivery in batch:
                try:
                    good.append((delivery, self._decode(delivery)))
                except Exception as error:  # noqa: BLE001 - a decoder may fail in any way on any bytes
                    await self._fail(session, delivery, error, stop)
            if good:
                await self._handle(session, good, stop)
        except Unavailable as error:
            log.info("unsettled, the broker will hand it out again: %s", error)
            session.lost.set()
        except Exception:
            log.exception("the consumer loop itself failed; starting it anew with a new session")
            await pause(STUMBLE_SECONDS, stop)
            session.lost.set()

    def _decode(self, delivery: Delivery) -> M:
        return self._kind.decode(delivery.body, delivery.content_encoding)

    async def _handle(self, session: Session, batch: list[tuple[Delivery, M]], stop: asyncio.Event) -> None:
        try:
            outgoing = await keep_trying(
                lambda: self._handler([message for _, message in batch]),
                what="handling a batch",
                until=(session.lost, stop),
            )
            for item in outgoing:
                await self._publish(session, encode_outgoing(item), stop)
        except Unavailable:
            raise
        except GiveBack:
            for delivery, _ in batch:
                await self._give_back(session, delivery)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is decided on, never swallowed
            await self._divide(session, batch, error, stop)
        else:
            for delivery, _ in batch:
                await session.ack(delivery)
                MESSAGES.labels(self._stage.queue, "acknowledged").inc()

    async def _divide(
        self, session: Session, batch: list[tuple[Delivery, M]], error: Exception, stop: asyncio.Event
    ) -> None:
        if len(batch) == 1:
            await self._fail(session, batch[0][0], error, stop)
            return
        log.warning("a batch of %d failed, halving it: %r", len(batch), error)
        middle = len(batch) // 2
        await self._handle(session, batch[:middle], stop)
        await self._handle(session, batch[middle:], stop)

    async def _fail(self, session: Session, delivery: Delivery, error: Exception, stop: asyncio.Event) -> None:
        """Send a message that failed alone where `shared/retry.py` says, then acknowledge it."""
        failures = delivery.headers.get("failures", 0)
        failures = failures if isinstance(failures, int) else 0
        decision = after_failure(error, failures=failures, most=self._failures)
        publication = self._aside(delivery, decision, error)
        log.error(
            "a message failed: %s",
            error,
            extra={"queue": self._stage.queue, "to": publication.routing_key, "message_id": delivery.message_id},
            exc_info=error if isinstance(decision, TryLater) else None,
        )
        result = "retried" if isinstance(decision, TryLater) else "buried"
        try:
            await self._publish(session, publication, stop)
        except Unprocessable as refused:
            # Not even its way out can be published (too large): the broker moves it, without our headers.
            log.warning("the broker has to bury it: %s", refused, extra={"message_id": delivery.message_id})
            await session.reject(delivery)
            result = "buried"
        else:
            await session.ack(delivery)
        MESSAGES.labels(self._stage.queue, result).inc()

    def _aside(self, delivery: Delivery, decision: TryLater | Bury, error: Exception) -> Publication:
        headers: dict[str, str | int] = {
            "attempt": delivery.headers.get("attempt", 0),
            "failures": decision.failures if isinstance(decision, TryLater) else delivery.headers.get("failures", 0),
            "error": _describe(error),
            "service": self._stage.service,
            "first_queue": delivery.headers.get("first_queue", self._stage.queue),
        }
        if isinstance(decision, Bury):
            headers |= {"reason": decision.reason, "died_at": datetime.now(UTC).isoformat(timespec="seconds")}
        return Publication(
            routing_key=self._stage.again if isinstance(decision, TryLater) else self._stage.dead,
            exchange="",
            body=delivery.body,
            type=delivery.type,
            content_encoding=delivery.content_encoding,
            headers=headers,
        )

    async def _publish(self, session: Session, publication: Publication, stop: asyncio.Event) -> None:
        """Publish until it is confirmed. On shutdown too: only a lost session or a refusal then ends it."""
        await keep_trying(
            lambda: session.publish(publication),
            what=f"publishing to {publication.routing_key}",
            until=(session.lost, stop),
        )

    async def _give_back(self, session: Session, delivery: Delivery) -> None:
        await session.give_back(delivery)
        MESSAGES.labels(self._stage.queue, "given_back").inc()


def _describe(error: Exception) -> str:
    return mask_credentials(f"{type(error).__name__}: {error}")[:ERROR_CHARACTERS]
