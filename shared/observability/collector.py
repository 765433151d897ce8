"""Sends spans to a collector over OTLP/HTTP.

Nothing waits for the collector. Spans that have ended stand in a bounded queue, which a thread sends. While the
collector is away or slow, spans that find no room are dropped, and so are those that it does not take in time. A metric
counts them, and a log line says so once.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from prometheus_client import Counter

from shared.build import read_version
from shared.observability.otlp import JobTracer
from shared.observability.secrets import mask_credentials
from shared.tracing import Tracer

log = logging.getLogger(__name__)

QUEUE: Final = 4096
"""Spans that wait to be sent, some 3 KB each."""

CHARACTERS: Final = 200
"""Longer attributes are cut: a message's headers may be somebody else's."""

BATCH: Final = 512
SEND_EVERY_MILLISECONDS: Final = 1000.0

SEND_SECONDS: Final = 10.0
"""The time that the collector has for a batch, tries after a failure included."""

CLOSE_SECONDS: Final = 5.0
"""The time for what is left when the process ends. It adds to `DRAIN_SECONDS`, and platforms kill 10 s after that."""


class _Sender(SpanExporter):
    """Sends batches, and counts what becomes of them."""

    def __init__(self, exporter: SpanExporter, collector: str, counter: Counter) -> None:
        self._exporter = exporter
        self._collector = collector
        self._counter = counter
        self._lock = threading.Lock()
        self._waiting = 0
        self._in_trouble = False
        self._is_over = False

    def accept(self) -> bool:
        """Return whether there is room for one more span, and take it."""
        with self._lock:
            if self._waiting < QUEUE and not self._is_over:
                self._waiting += 1
                return True
        self._drop(1, "they end faster than it takes them")
        return False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch. The queue has room for as many again."""
        result = SpanExportResult.FAILURE if self._is_over else self._exporter.export(spans)
        with self._lock:
            self._waiting -= len(spans)
        if result is SpanExportResult.SUCCESS:
            self._counter.labels("sent").inc(len(spans))
            if self._in_trouble:
                log.info("the collector takes spans again")
            self._in_trouble = False
        else:
            self._drop(len(spans), "it is away, too slow, or refuses them")
        return result

    def give_up(self) -> None:
        """Drop what is left."""
        with self._lock:
            self._is_over, left = True, self._waiting
        self._exporter.shutdown()
        if left:
            log.warning("%d spans were not sent to %s before the end", left, self._collector)

    def _drop(self, spans: int, reason: str) -> None:
        self._counter.labels("dropped").inc(spans)
        if not self._in_trouble:
            self._in_trouble = True
            log.warning("spans for %s are dropped, since %s", self._collector, reason)


class _Queue(BatchSpanProcessor):
    """OpenTelemetry's queue and thread. What finds no room is dropped here, where it is counted."""

    def __init__(self, sender: _Sender) -> None:
        super().__init__(sender, QUEUE, SEND_EVERY_MILLISECONDS, BATCH)
        self._sender = sender

    def on_end(self, span: ReadableSpan) -> None:
        if self._sender.accept():
            super().on_end(span)


class Exporting:
    """A tracer whose spans go to a collector.

    Args:
        service: the name of this service.
        url: of the collector; without a path: `/v1/traces` there.
        counter: of spans, by what became of them.
    """

    def __init__(self, service: str, url: str, counter: Counter) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it logs each failed try; we say it once
        endpoint = url if urlsplit(url).path.strip("/") else f"{url.rstrip('/')}/v1/traces"
        collector = mask_credentials(endpoint)
        self._sender = _Sender(OTLPSpanExporter(endpoint, timeout=SEND_SECONDS), collector, counter)
        resource = Resource.create(
            {
                "service.name": f"feedmill-{service}",
                "service.namespace": "feedmill",
                "service.version": read_version(),
                "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
            }
        )
        limits = SpanLimits(max_attribute_length=CHARACTERS)
        self._provider = TracerProvider(ALWAYS_ON, resource, shutdown_on_exit=False, span_limits=limits)
        self._provider.add_span_processor(_Queue(self._sender))
        self.tracer: Tracer = JobTracer(self._provider.get_tracer("feedmill", read_version()))
        log.info("traces are sent", extra={"collector": collector})

    def close(self) -> None:
        """Send what is left, for `CLOSE_SECONDS` at most."""
        # OpenTelemetry waits for half a minute. A thread that is left behind does not keep the process from ending.
        closing = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
        if closing.is_alive():
            self._sender.give_up()
