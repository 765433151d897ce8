"""Settling: every message that a stage takes is acknowledged, requeued, tried later or dead-lettered, and only here."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from prometheus_client import Counter

from shared.broker.failed import copy_of_failed
from shared.broker.port import Delivery, Outgoing, Publication, Session
from shared.broker.topology import Stage
from shared.broker.tracing import start_processing
from shared.errors import Blocked, NackAndRequeue, TryLater, Unavailable, Unprocessable, after_failure
from shared.tracing import NO_SPAN, OFF, tracer
from shared.ttl_cache import TtlCache
from shared.waiting import keep_trying, pause
from shared.wire.envelope import Message

log = logging.getLogger(__name__)

MESSAGES = Counter(
    "feedmill_messages_total",
    "Messages settled by the consumer loop: acknowledged, given_back (requeued), retried, or buried (dead-lettered).",
    ["queue", "result"],
)

FROM_LATER_VERSIONS = Counter(
    "feedmill_messages_with_unknown_fields_total",
    "Messages with fields or values that this version doesn't know and leaves out: a later version sent them.",
    ["queue"],
)

BUG_PAUSE_SECONDS = 1.0
"""The pause before a new session after a bug in the loop itself, so that it does not spin."""

UNKNOWN_NAMES = 100
"""The most unknown fields that are logged, each once: a stream of garbage must not fill the log."""

UNPUBLISHED_SECONDS = 600.0
"""How long the results of handled messages are kept after their session was lost: longer than a broker restarts."""

ACKNOWLEDGED = 1000
"""How many of its last acknowledgements a lost session remembers: nothing confirms that the broker has read them."""

M = TypeVar("M", bound=Message)

Unpublished = TtlCache[list[Publication]]
"""What is still to be published for messages that were handled and not settled."""

Handler = Callable[[Sequence[M]], Awaitable[Sequence[Outgoing]]]
"""Takes a batch of messages and returns the messages that follow. It raises unless the whole batch worked."""


class Settler(Generic[M]):
    """Settles the messages of one session; `stop` ends waiting for servers that are away.

    Args:
        failures: how often a message that raised a bug is tried again before it is dead-lettered.
        max_message_bytes: the limit for publishing; a batch that unfolds to more is handled in parts.
        unpublished: results of messages whose earlier session was lost; they are not handled twice.
    """

    def __init__(
        self,
        session: Session,
        stop: asyncio.Event,
        stage: Stage,
        kind: type[M],
        handler: Handler[M],
        *,
        failures: int,
        max_message_bytes: int,
        unpublished: Unpublished,
    ) -> None:
        self._session = session
        self._stop = stop
        self._stage = stage
        self._kind = kind
        self._handler = handler
        self._failures = failures
        self._max_message_bytes = max_message_bytes
        self._unpublished = unpublished
        self._acknowledged: deque[Hashable] = deque(maxlen=ACKNOWLEDGED)
        self._unknown: set[str] = set()

    async def settle(self, batch: list[Delivery]) -> None:
        """Handle and settle a batch. If the session ends first, the broker delivers the messages again.

        A message that can't be settled while the service stops is left alone; the end of the session requeues it.
        Ending the session for it would cost everything else that is still running.
        """
        if tracer() is not OFF:
            batch = [_traced(delivery) for delivery in batch]
        try:
            await self._decode_and_handle(batch)
        except Unavailable as error:
            log.info("messages were not settled, the broker will deliver them again: %s", error)
        except Exception:
            log.exception("the consumer loop itself failed; starting it anew with a new session")
            await pause(BUG_PAUSE_SECONDS, self._stop)
        else:
            return
        finally:
            for delivery in batch:
                delivery.span.end("unsettled")  # unless it is settled
        if not self._stop.is_set():
            self._session.lost.set()

    async def requeue(self, delivery: Delivery) -> None:
        """Nack and requeue a message that was not begun. Raises BrokerUnavailable."""
        await self._session.requeue(delivery)
        self._note_end(delivery, "given_back")

    def remember_acknowledged(self) -> None:
        """Remember the last acknowledgements of a lost session: if such a message comes again, it is not handled."""
        for identity in self._acknowledged:
            self._unpublished.put(identity, [])

    async def _decode_and_handle(self, batch: list[Delivery]) -> None:
        good: list[tuple[Delivery, M]] = []
        size = 0
        for delivery in batch:
            try:
                message, unfolded = self._kind.decode_sized(
                    delivery.body,
                    delivery.content_encoding,
                    max_message_bytes=self._max_message_bytes,
                    on_unknown=self._note_unknown,
                )
            except Exception as error:  # noqa: BLE001 - a decoder may fail in any way on any bytes
                await self._fail(delivery, error)
                continue
            good.append((delivery, message.traced(delivery.span)))
            size += unfolded
            if size > self._max_message_bytes:
                await self._handle(good)
                good, size = [], 0
        if good:
            await self._handle(good)

    def _note_unknown(self, names: set[str]) -> None:
        FROM_LATER_VERSIONS.labels(self._stage.service).inc()
        if not names <= self._unknown and len(self._unknown) < UNKNOWN_NAMES:
            self._unknown |= names
            log.warning(
                "messages of a later version arrive: their unknown fields and values are left out",
                extra={"kind": self._kind.KIND, "fields": sorted(names)},
            )

    async def _handle(self, batch: list[tuple[Delivery, M]]) -> None:
        deliveries = [delivery for delivery, _ in batch]
        try:
            publications = await self._publications_for(batch)
            # A deferred job comes back as the same message. It must be handled then.
            comes_again = any(publication.body == deliveries[0].body for publication in publications)
            if len(deliveries) > 1:  # nothing of it is kept
                await self._publish_together(publications)
            else:
                with self._kept_if_lost(deliveries, publications):
                    while publications:
                        await self._publish(publications[0])
                        del publications[0]
        except Unavailable:
            raise
        except NackAndRequeue:
            for delivery in deliveries:
                await self.requeue(delivery)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is decided on, never swallowed
            await self._divide(batch, error)
        else:
            with self._kept_if_lost(deliveries, publications):
                for delivery in deliveries:
                    await self._session.ack(delivery)
                    self._note_end(delivery, "acknowledged")
            if len(deliveries) == 1 and not comes_again:
                self._acknowledged.append(_identity(deliveries[0]))

    async def _publications_for(self, batch: list[tuple[Delivery, M]]) -> list[Publication]:
        """Return what the handler returns for a batch, or what it returned before an earlier session was lost."""
        delivery, _ = batch[0]
        if delivery.redelivered and len(batch) == 1:
            publications = self._unpublished.take(_identity(delivery))
            if publications is not None:
                return publications
        outgoing = await keep_trying(
            partial(self._handler, [message for _, message in batch]),
            what="handling a batch",
            until=(self._session.lost, self._stop),
        )
        return [item.to_publication() for item in outgoing]

    @contextmanager
    def _kept_if_lost(self, batch: Sequence[Delivery], publications: list[Publication]) -> Iterator[None]:
        """Keep what is still to be published if the session is lost within the block."""
        try:
            yield
        except (Unavailable, asyncio.CancelledError):
            if len(batch) == 1:  # a larger one never comes back as the same batch: its handler has to be idempotent
                self._unpublished.put(_identity(batch[0]), publications)
            raise

    async def _divide(self, batch: list[tuple[Delivery, M]], error: Exception) -> None:
        if len(batch) == 1:
            await self._fail(batch[0][0], error)
            return
        log.warning("a batch of %d failed, halving it: %r", len(batch), error)
        middle = len(batch) // 2
        await self._handle(batch[:middle])
        await self._handle(batch[middle:])

    async def _fail(self, delivery: Delivery, error: Exception) -> None:
        """Publish a message that failed alone to where `after_failure` decides, then acknowledge it."""
        delivery.span.fail(type(error).__name__)
        failures = delivery.headers.get("failures", 0)
        failures = failures if isinstance(failures, int) else 0
        decision = after_failure(error, failures=failures, most=self._failures)
        if not self._stage.dead:
            await self._drop(delivery, error)
            return
        is_retried, is_blocked = isinstance(decision, TryLater), isinstance(error, Blocked)
        publication = copy_of_failed(delivery, self._stage, decision, error)
        log.log(
            logging.WARNING if is_blocked else logging.ERROR,
            "a message is blocked: %s" if is_blocked else "a message failed: %s",
            error,
            extra={"queue": delivery.queue, "to": _target(publication), "message_id": delivery.message_id},
            exc_info=error if is_retried and not is_blocked else None,
        )
        try:
            with self._kept_if_lost([delivery], [publication]):
                await self._publish(publication)
        except Unprocessable as refused:
            # The copy with our headers is too large to be published: the broker moves the message without them.
            log.warning(
                "the broker itself has to dead-letter it: %s", refused, extra={"message_id": delivery.message_id}
            )
            await self._session.reject(delivery)
            self._note_end(delivery, "buried")
        else:
            await self._session.ack(delivery)
            self._note_end(delivery, "retried" if is_retried else "buried")

    async def _drop(self, delivery: Delivery, error: Exception) -> None:
        log.error("a message failed and is dropped: %s", error, extra={"queue": delivery.queue}, exc_info=error)
        await self._session.reject(delivery)
        self._note_end(delivery, "buried")

    async def _publish(self, publication: Publication) -> None:
        """Publish until it is confirmed. A lost session or a refusal ends it, and on shutdown the first failed try."""
        await keep_trying(
            partial(self._session.publish, publication),
            what=f"publishing to {_target(publication)}",
            until=(self._session.lost, self._stop),
        )

    async def _publish_together(self, publications: Sequence[Publication]) -> None:
        """Publish what follows a batch; the confirms are waited for together."""
        ends = await asyncio.gather(*map(self._publish, publications), return_exceptions=True)
        for end in ends:
            if end is not None:
                raise end

    def _note_end(self, delivery: Delivery, result: str) -> None:
        MESSAGES.labels(self._stage.service, result).inc()
        if delivery.span is not NO_SPAN:
            delivery.span.note(settled=result)
            delivery.span.end()


def _traced(delivery: Delivery) -> Delivery:
    span = start_processing(delivery.headers, delivery.queue, delivery.message_id, redelivered=delivery.redelivered)
    return replace(delivery, span=span) if span else delivery


def _target(publication: Publication) -> str:
    return f"{publication.exchange} {publication.routing_key}".lstrip()


def _identity(delivery: Delivery) -> Hashable:
    """Return what identifies a message when the broker delivers it again."""
    return delivery.message_id, hashlib.sha256(delivery.body).digest()
