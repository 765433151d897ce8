"""Spans of messages, by OpenTelemetry's semantic conventions for messaging.

Publishing is a span `send` below what publishes. Its ids travel in the message's headers. Below it, where the message
arrives, are the time in between (`wait in`) and its handling (`process`), which ends when the message is settled. So a
job, its requeues and its retries are one trace. Results that are written together have a span `process` each; that of
the batch stands beside them (`services.writer.tracing`).
"""

from __future__ import annotations

import time

from shared.broker.shards import is_front
from shared.broker.topology import EXCHANGE
from shared.tracing import NO_SPAN, SENT_HEADER, Headers, Span, tracer


def start_sending(span: Span, exchange: str, routing_key: str) -> Span:
    """Return the started span of a message that is published below `span`."""
    if span is NO_SPAN:
        return span
    target = routing_key if exchange in {"", EXCHANGE} else exchange
    return span.start(
        f"send {target}",
        "producer",
        system="rabbitmq",
        operation="send",
        operation_type="send",
        queue=target,
        routing_key=routing_key,
    )


def start_processing(headers: Headers, queue: str, message_id: str, *, redelivered: bool) -> Span:
    """Return the started span of a message that is handled now, if it is traced.

    A job that a person waits for is always traced: it begins here if nobody did before.
    """
    sent = tracer().resume(headers)
    if sent:
        sent_at = headers.get(SENT_HEADER)
        if isinstance(sent_at, int) and sent_at > 0:
            sent.start(f"wait in {queue}", at=min(sent_at, time.time_ns()), queue=queue).end()
    elif is_front(queue):
        sent = tracer().root("fire")
        sent.end()
    else:
        return NO_SPAN
    return sent.start(
        f"process {queue}",
        "consumer",
        system="rabbitmq",
        operation="process",
        operation_type="process",
        queue=queue,
        feed_id=headers.get("feed_id"),
        message_id=message_id,
        redelivered=redelivered,
    )
