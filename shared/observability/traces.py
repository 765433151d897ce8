"""Switches traces on for a process with FEEDMILL_TRACES_URL. OpenTelemetry is not imported without it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Counter

from shared import tracing
from shared.errors import ConfigurationError

SPANS = Counter(
    "feedmill_spans_total",
    "Spans of traces: sent to the collector, or dropped (it was away or slow, or refused them).",
    ["result"],
)


@contextmanager
def exporting(service: str, url: str) -> Iterator[None]:
    """Trace within the block; at its end, spans that are not sent yet are sent, for a few seconds at most.

    Args:
        service: in each span.
        url: of the collector; empty: nothing is traced.

    Raises:
        ConfigurationError: OpenTelemetry is not installed.
    """
    if not url:
        yield
        return
    try:
        from shared.observability.collector import Exporting
    except ImportError as error:
        raise ConfigurationError(
            f"FEEDMILL_TRACES_URL needs OpenTelemetry: pip install 'feedmill[traces]' ({error})"
        ) from error
    exporter = Exporting(service, url, SPANS)
    tracing.use(exporter.tracer)
    try:
        yield
    finally:
        tracing.use(tracing.OFF)
        exporter.close()
