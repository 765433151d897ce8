"""A job's trace through the fetcher: also through fast-delay, and to a retry."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from services.fetcher.politeness.decisions import Report
from shared.observability.otlp import JobTracer
from shared.tracing import TRACE_HEADER, Tracer
from shared.wire.outcomes import Outcome
from tests.factories import make_job, make_result
from tests.unit.fetcher.harness import Harness, build
from tests.unit.fetcher.test_fetch_handler import redirect_to_b

__all__ = ["build"]


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter: InMemorySpanExporter) -> Iterator[Tracer]:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield JobTracer(provider.get_tracer("test"))
    provider.shutdown()


async def test_a_redirect_that_goes_by_fast_delay_stays_in_its_trace(
    build: Callable[..., Harness], exporter: InMemorySpanExporter, tracer: Tracer
) -> None:
    harness = build(shards=12, throttle_seconds=10.0)
    harness.reader.report = Report(0.001, succeeded=False, throttled=True)
    await harness.handle(group="b.example")
    harness.reader.report = Report(0.001)
    harness.reader.answer = redirect_to_b
    process = tracer.root("process")
    (delayed,) = await harness.handler([make_job(feed_id=2).traced(process)])
    publication = delayed.to_publication()
    publication.span.end()
    first, second, sending = exporter.get_finished_spans()
    assert [first.name, second.name, sending.name] == [
        "wait for slot",
        "wait for slot",
        f"send {harness.stage.fast_delay}",
    ]
    assert ((first.attributes or {}).get("feedmill.refusal"), (second.attributes or {}).get("feedmill.refusal")) == (
        None,
        "FastDelay",
    )
    assert sending.context is not None
    assert f"-{sending.context.span_id:016x}-" in str(publication.headers[TRACE_HEADER])


async def test_the_attempt_that_failed_says_how_and_both_of_its_messages_go_on(
    build: Callable[..., Harness], exporter: InMemorySpanExporter, tracer: Tracer
) -> None:
    harness = build()
    process = tracer.root("process")
    harness.reader.answer = lambda request: make_result(outcome=Outcome.SOFT_ERROR, error_class="timeout").traced(
        request.job.span
    )
    result, retry = await harness.handler([make_job().traced(process)])
    process.end()
    assert (result.message.span, retry.message.span) == (process, process)
    (ended,) = [span for span in exporter.get_finished_spans() if span.name == "process"]
    attributes = ended.attributes or {}
    assert (attributes["feedmill.outcome"], attributes["feedmill.final"]) == ("soft_error", False)
    assert (attributes["error.type"], ended.status.description) == ("timeout", "timeout")
