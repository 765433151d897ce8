"""A failed message, as it goes to the retry queue or to the dead queue."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from shared.broker.port import Delivery, Publication
from shared.broker.topology import EXCHANGE, Stage
from shared.broker.tracing import start_sending
from shared.errors import DeadLetter, TryLater
from shared.observability.secrets import mask_credentials

ERROR_CHARACTERS = 500
"""The most characters of an error's text in a header."""


def copy_of_failed(delivery: Delivery, stage: Stage, decision: TryLater | DeadLetter, error: Exception) -> Publication:
    """Return the copy that is published. It keeps the message's id; its headers say what went wrong."""
    headers: dict[str, str | int] = {
        "attempt": delivery.headers.get("attempt", 0),
        "failures": decision.failures if isinstance(decision, TryLater) else delivery.headers.get("failures", 0),
        "error": mask_credentials(f"{type(error).__name__}: {error}")[:ERROR_CHARACTERS],
        "service": stage.service,
        "first_queue": delivery.headers.get("first_queue", delivery.queue),
    }
    if isinstance(decision, DeadLetter):
        headers |= {"reason": decision.reason, "died_at": datetime.now(UTC).isoformat(timespec="seconds")}
    is_retried = isinstance(decision, TryLater)
    exchange, routing_key = (stage.message_retry, delivery.queue) if is_retried else (EXCHANGE, stage.dead)
    span = start_sending(delivery.span, exchange, routing_key)
    same_id: dict[str, Any] = {"message_id": delivery.message_id} if delivery.message_id else {}
    return Publication(
        exchange=exchange,
        routing_key=routing_key,
        body=delivery.body,
        type=delivery.type,
        content_encoding=delivery.content_encoding,
        headers={**headers, **span.headers()},
        span=span,
        **same_id,
    )
