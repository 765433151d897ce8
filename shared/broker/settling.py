"""What becomes of every message of one session: handled and acknowledged, given back, tried later, or buried.

The only place that acknowledges.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from prometheus_client import Counter

from shared.broker.port import Delivery, Outgoing, Publication, Session
from shared.broker.topology import EXCHANGE, Stage
from shared.errors import Blocked, NackAndRequeue, Unavailable, Unprocessable
from shared.observability.secrets import mask_credentials
from shared.retry import DeadLetter, TryLater, after_failure
from shared.ttl_cache import TtlCache
from shared.waiting import keep_trying, pause
from shared.wire.envelope import Message

log = logging.getLogger(__name__)

MESSAGES = Counter(
    "feedmill_messages_total",
    "Messages settled by the consumer loop: acknowledged, given_back, retried, or buried in the dead queue.",
    ["queue", "result"],
)

FROM_LATER_VERSIONS = Counter(
    "feedmill_messages_with_unknown_fields_total",
    "Messages with fields or values that this version doesn't know and passes over: a later one sent them.",
    ["queue"],
)

STUMBLE_SECONDS = 1.0
"""The pause before a new session if the loop itself failed, so that a bug there does not spin."""

ERROR_CHARACTERS = 500
"""An error's text in a header is cut to this; AMQP headers are no place for a traceback."""

NAMES_OF_UNKNOWN = 100
"""So many unknown fields are told of, each once; a stream of garbage shall not fill the log."""

UNPUBLISHED_SECONDS = 600.0
"""How long is kept what a message came to whose session was lost: longer than a broker takes to come back."""

ACKNOWLEDGED = 1000
"""So many of its last acknowledgements a lost session remembers: nothing confirms that the broker read them."""

M = TypeVar("M", bound=Message)

Unpublished = TtlCache[list[Publication]]
"""What is still to be published for messages that were handled and not settled."""

Handler = Callable[[Sequence[M]], Awaitable[Sequence[Outgoing]]]
"""A batch of messages in, the messages that follow out. All of the batch worked, or it raises."""


class Settler(Generic[M]):
    """Settles the messages of one session; `stop` ends waiting for servers that are away.

    Args:
        failures: how often a message that raised a bug is tried again before it is buried.
        max_message_bytes: as they may be published; a batch that unfolds to more is handled in parts.
        unpublished: what messages came to that an earlier session was lost with, so that they are not handled twice.
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
        """Handle a batch to its end. If the session ends first, the broker hands the messages out again.

        What can't be settled while the service stops is left as it is: the end of the session gives it back. Losing
        the session for it would cost everything else that is still running.
        """
        try:
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
                    good.append((delivery, message))
                    size += unfolded
                except Exception as error:  # noqa: BLE001 - a decoder may fail in any way on any bytes
                    await self._fail(delivery, error)
                if size > self._max_message_bytes:
                    await self._handle(good)
                    good, size = [], 0
            if good:
                await self._handle(good)
        except Unavailable as error:
            log.info("unsettled, the broker will hand it out again: %s", error)
            if not self._stop.is_set():
                self._session.lost.set()
        except Exception:
            log.exception("the consumer loop itself failed; starting it anew with a new session")
            await pause(STUMBLE_SECONDS, self._stop)
            if not self._stop.is_set():
                self._session.lost.set()

    def keep_acknowledged(self) -> None:
        """Remember what a lost session acknowledged last: what comes again of that is not handled again."""
        for identity in self._acknowledged:
            self._unpublished.put(identity, [])

    def _note_unknown(self, names: set[str]) -> None:
        FROM_LATER_VERSIONS.labels(self._stage.service).inc()
        if not names <= self._unknown and len(self._unknown) < NAMES_OF_UNKNOWN:
            self._unknown |= names
            log.warning(
                "messages of a later version come: what this one doesn't know of them is left out",
                extra={"kind": self._kind.KIND, "fields": sorted(names)},
            )

    async def _handle(self, batch: list[tuple[Delivery, M]]) -> None:
        deliveries = [delivery for delivery, _ in batch]
        try:
            publications = await self._outcome_of(batch)
            comes_again = any(publication.body == deliveries[0].body for publication in publications)
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
                    MESSAGES.labels(self._stage.service, "acknowledged").inc()
            if len(deliveries) == 1 and not comes_again:  # a job that was put off comes as the same message
                self._acknowledged.append(_identity(deliveries[0]))

    async def _outcome_of(self, batch: list[tuple[Delivery, M]]) -> list[Publication]:
        """Return what is to be published for a batch: what its handler says, or said before the session was lost."""
        delivery, _ = batch[0]
        if delivery.redelivered and len(batch) == 1:
            publications = self._unpublished.take(_identity(delivery))
            if publications is not None:
                return publications
        outgoing = await keep_trying(
            lambda: self._handler([message for _, message in batch]),
            what="handling a batch",
            until=(self._session.lost, self._stop),
        )
        return [item.to_publication() for item in outgoing]

    @contextmanager
    def _kept_if_lost(self, batch: Sequence[Delivery], publications: list[Publication]) -> Iterator[None]:
        """Keep what is still to be published, should the session be lost meanwhile."""
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
        """Send a message that failed alone where `shared/retry.py` says, then acknowledge it."""
        failures = delivery.headers.get("failures", 0)
        failures = failures if isinstance(failures, int) else 0
        decision = after_failure(error, failures=failures, most=self._failures)
        publication = self._aside(delivery, decision, error)
        is_blocked = isinstance(error, Blocked)
        log.log(
            logging.WARNING if is_blocked else logging.ERROR,
            "a message is blocked: %s" if is_blocked else "a message failed: %s",
            error,
            extra={"queue": delivery.queue, "to": _target(publication), "message_id": delivery.message_id},
            exc_info=error if isinstance(decision, TryLater) and not is_blocked else None,
        )
        result = "retried" if isinstance(decision, TryLater) else "buried"
        try:
            with self._kept_if_lost([delivery], [publication]):
                await self._publish(publication)
        except Unprocessable as refused:
            # Not even its way out can be published (too large): the broker moves it, without our headers.
            log.warning("the broker has to bury it: %s", refused, extra={"message_id": delivery.message_id})
            await self._session.reject(delivery)
            result = "buried"
        else:
            await self._session.ack(delivery)
        MESSAGES.labels(self._stage.service, result).inc()

    def _aside(self, delivery: Delivery, decision: TryLater | DeadLetter, error: Exception) -> Publication:
        headers: dict[str, str | int] = {
            "attempt": delivery.headers.get("attempt", 0),
            "failures": decision.failures if isinstance(decision, TryLater) else delivery.headers.get("failures", 0),
            "error": _describe(error),
            "service": self._stage.service,
            "first_queue": delivery.headers.get("first_queue", delivery.queue),
        }
        if isinstance(decision, DeadLetter):
            headers |= {"reason": decision.reason, "died_at": datetime.now(UTC).isoformat(timespec="seconds")}
        later = isinstance(decision, TryLater)
        return Publication(
            exchange=self._stage.again if later else EXCHANGE,
            routing_key=delivery.queue if later else self._stage.dead,
            body=delivery.body,
            type=delivery.type,
            content_encoding=delivery.content_encoding,
            headers=headers,
            **_same_id(delivery),
        )

    async def _publish(self, publication: Publication) -> None:
        """Publish until it is confirmed. On shutdown too: only a lost session or a refusal then ends it."""
        await keep_trying(
            lambda: self._session.publish(publication),
            what=f"publishing to {_target(publication)}",
            until=(self._session.lost, self._stop),
        )

    async def requeue(self, delivery: Delivery) -> None:
        """Put a message that was not begun back into its queue. Raises BrokerUnavailable."""
        await self._session.requeue(delivery)
        MESSAGES.labels(self._stage.service, "given_back").inc()


def _target(publication: Publication) -> str:
    return f"{publication.exchange} {publication.routing_key}".lstrip()


def _identity(delivery: Delivery) -> Hashable:
    """Return what a message has in common only with itself when it comes again."""
    return delivery.message_id, hashlib.sha256(delivery.body).digest()


def _same_id(delivery: Delivery) -> dict[str, Any]:
    """Return the message id as an argument, if there is one: a message keeps it from queue to queue."""
    return {"message_id": delivery.message_id} if delivery.message_id else {}


def _describe(error: Exception) -> str:
    return mask_credentials(f"{type(error).__name__}: {error}")[:ERROR_CHARACTERS]
