"""The port of `shared.tracing` by OpenTelemetry: spans, their attributes, and which jobs are traced."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace import Span as OtelSpan
from opentelemetry.trace import Tracer as OtelTracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from shared.tracing import NO_SPAN, SENT_HEADER, TRACE_HEADER, Headers, Kind, Span, Tracer, Value

JOBS_PER_SECOND: Final = 1.0
"""Jobs that one process begins to trace, on average. Traces are examples: what is to be counted, metrics count. A small
installation's jobs are all traced, and of a large one's millions some 80,000 a day. Fires are traced besides."""

MOST_AT_ONCE: Final = 20.0
"""After a pause, so many at once."""

ATTRIBUTES: Final = {
    # OpenTelemetry's own names, of its semantic conventions for HTTP and for messaging
    "host": "server.address",
    "port": "server.port",
    "method": "http.request.method",
    "status": "http.response.status_code",
    "hop": "http.request.resend_count",
    "wire_bytes": "http.response.body.size",
    "system": "messaging.system",
    "operation": "messaging.operation.name",
    "operation_type": "messaging.operation.type",
    "queue": "messaging.destination.name",
    "routing_key": "messaging.rabbitmq.destination.routing_key",
    "message_id": "messaging.message.id",
    "error": "error.type",
    # ours
    "feed_id": "feedmill.feed_id",
    "claim_id": "feedmill.claim_id",
    "group": "feedmill.group",
    "reason": "feedmill.reason",
    "attempt": "feedmill.attempt",
    "outcome": "feedmill.outcome",
    "final": "feedmill.final",
    "settled": "feedmill.settled",
    "redelivered": "feedmill.redelivered",
    "refusal": "feedmill.refusal",
    "body_bytes": "feedmill.body_bytes",
    "tier": "feedmill.tier",
    "results": "feedmill.results",
    "entries": "feedmill.entries",
    "new": "feedmill.articles.new",
    "updated": "feedmill.articles.updated",
    "repeated": "feedmill.articles.repeated",
}
"""The name of each attribute as it is sent."""

_KINDS: Final[Mapping[Kind, SpanKind]] = {
    "internal": SpanKind.INTERNAL,
    "client": SpanKind.CLIENT,
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
}

_CONTEXT = TraceContextTextMapPropagator()


class RecordedSpan(Span):
    """A span of OpenTelemetry, or (`resume`) the one of another process that a message names."""

    def __init__(self, tracer: OtelTracer, span: OtelSpan) -> None:
        self._tracer = tracer
        self._span = span

    @property
    def context(self) -> SpanContext:
        """Its ids."""
        return self._span.get_span_context()

    def __bool__(self) -> bool:
        return True

    def start(
        self,
        name: str,
        kind: Kind = "internal",
        *,
        at: int | None = None,
        links: Sequence[Span] = (),
        **attributes: Value,
    ) -> Span:
        """Start a child."""
        return start(self._tracer, name, kind, parent=self._span, at=at, links=links, attributes=attributes)

    def note(self, **attributes: Value) -> None:
        """Set attributes."""
        self._span.set_attributes(_named(attributes))

    def event(self, name: str) -> None:
        """Note that something happened now."""
        self._span.add_event(name)

    def fail(self, error: str) -> None:
        """Mark it as failed."""
        self._span.set_status(StatusCode.ERROR, error)
        self.note(error=error)

    def end(self, error: str | None = None) -> None:
        """End it. Further calls do nothing."""
        if self._span.is_recording():
            if error is not None:
                self.fail(error)
            self._span.end()

    def headers(self) -> Headers:
        """Return the headers that name it."""
        carrier: dict[str, str] = {}
        _CONTEXT.inject(carrier, set_span_in_context(self._span))
        return {TRACE_HEADER: carrier[TRACE_HEADER], SENT_HEADER: time.time_ns()}


def start(
    tracer: OtelTracer,
    name: str,
    kind: Kind,
    *,
    parent: OtelSpan,
    at: int | None,
    links: Sequence[Span],
    attributes: Mapping[str, Value],
) -> Span:
    """Start a span below `parent`, or a trace of its own if that is invalid."""
    return RecordedSpan(
        tracer,
        tracer.start_span(
            name,
            set_span_in_context(parent),
            _KINDS[kind],
            _named(attributes),
            [Link(span.context) for span in links if isinstance(span, RecordedSpan)],
            at,
        ),
    )


def _named(attributes: Mapping[str, Value]) -> dict[str, str | int | float | bool]:
    return {ATTRIBUTES[name]: value for name, value in attributes.items() if value is not None}


class JobTracer(Tracer):
    """Begins traces with OpenTelemetry.

    Args:
        tracer: OpenTelemetry's.
        clock: monotonic seconds.
    """

    def __init__(self, tracer: OtelTracer, clock: Callable[[], float] = time.monotonic) -> None:
        self._tracer = tracer
        self._clock = clock
        self._left = MOST_AT_ONCE
        self._looked_at = clock()

    def pick(self, jobs: int) -> Sequence[int]:
        """Return random places, as many as `JOBS_PER_SECOND` allows now."""
        now = self._clock()
        self._left = min(self._left + JOBS_PER_SECOND * (now - self._looked_at), MOST_AT_ONCE)
        self._looked_at = now
        picked = random.sample(range(jobs), min(jobs, int(self._left)))
        self._left -= len(picked)
        return picked

    def root(
        self,
        name: str,
        *,
        parent: str | None = None,
        at: int | None = None,
        links: Sequence[Span] = (),
        **attributes: Value,
    ) -> Span:
        """Start a span of a trace of its own, or below `parent`."""
        above = _read({TRACE_HEADER: parent or ""})
        return start(self._tracer, name, "internal", parent=above, at=at, links=links, attributes=attributes)

    def resume(self, headers: Headers) -> Span:
        """Return the span that these headers name."""
        if TRACE_HEADER not in headers:
            return NO_SPAN
        span = _read(headers)
        return RecordedSpan(self._tracer, span) if span.get_span_context().is_valid else NO_SPAN


def _read(headers: Headers) -> OtelSpan:
    """Return the span that these headers name, else an invalid one. A stranger may have written them."""
    carrier = {TRACE_HEADER: str(headers[TRACE_HEADER])}
    context = get_current_span(_CONTEXT.extract(carrier, set_span_in_context(INVALID_SPAN))).get_span_context()
    return NonRecordingSpan(context)
