"""The consumer loop and traces: each message has a span, and hands its trace on to what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from shared import tracing
from shared.broker.consumer import Batching
from shared.broker.port import Outgoing
from shared.broker.shards import front_of
from shared.errors import NackAndRequeue, Unprocessable
from shared.observability.otlp import JobTracer
from shared.tracing import SENT_HEADER, TRACE_HEADER, Span
from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched
from tests.factories import make_job, make_result
from tests.fakes.memory_broker import MemoryBroker
from tests.unit.shared.test_consumer import DEAD, RETRY, TOPOLOGY, consuming, put, until

QUEUE = TOPOLOGY.fetcher.queues[0]


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.use(JobTracer(provider.get_tracer("test")))
    yield exporter
    tracing.use(tracing.OFF)


def finished(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def attribute(span: ReadableSpan, name: str) -> Any:
    return (span.attributes or {}).get(name)


def claim(feed_id: int) -> tuple[FetchFeed, Span]:
    span = tracing.tracer().root("claim", feed_id=feed_id)
    span.end()
    return make_job(feed_id=feed_id).traced(span), span


def trace_of(headers: Any) -> str:
    return str(headers[TRACE_HEADER]).split("-")[1]


async def test_each_message_of_a_batch_hands_its_own_trace_on(
    broker: MemoryBroker, exporter: InMemorySpanExporter
) -> None:
    jobs = [claim(feed_id) for feed_id in (1, 2)]
    await put(broker, *(job for job, _ in jobs), make_job(feed_id=3))

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        return [Outgoing(make_result(feed_id=job.feed_id).traced(job.span), FeedFetched.KIND) for job in batch]

    async with consuming(broker, handler, Batching(size=3, linger_seconds=10)):
        await until(lambda: len(broker.publications("writer")) == 3 and not broker.bodies(QUEUE))
        await until(lambda: len(finished(exporter, f"process {QUEUE}")) == 2)
    headers = {p.headers["feed_id"]: p.headers for p in broker.publications("writer")}
    assert [trace_of(headers[feed_id]) for feed_id in (1, 2)] == [trace_of(span.headers()) for _, span in jobs]
    assert {TRACE_HEADER, SENT_HEADER}.isdisjoint(headers[3])  # its claim was not traced
    assert {attribute(span, "feedmill.settled") for span in finished(exporter, f"process {QUEUE}")} == {"acknowledged"}


async def test_a_message_that_failed_keeps_its_trace_and_says_so(
    broker: MemoryBroker, exporter: InMemorySpanExporter
) -> None:
    jobs = [claim(feed_id) for feed_id in (1, 2)]
    await put(broker, *(job for job, _ in jobs))

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        raise ValueError("a bug") if batch[0].feed_id == 1 else Unprocessable("never")

    async with consuming(broker, handler):
        await until(lambda: bool(broker.publications(RETRY)) and bool(broker.publications(DEAD)))
        await until(lambda: len(finished(exporter, f"process {QUEUE}")) == 2)
    for queue, (_, span) in ((RETRY, jobs[0]), (DEAD, jobs[1])):
        (failed,) = broker.publications(queue)
        assert trace_of(failed.headers) == trace_of(span.headers())
    ends = {attribute(span, "feedmill.settled"): span for span in finished(exporter, f"process {QUEUE}")}
    assert {how: span.status.description for how, span in ends.items()} == {
        "retried": "ValueError",
        "buried": "Unprocessable",
    }


async def test_a_message_that_is_given_back_has_a_span_for_each_time(
    broker: MemoryBroker, exporter: InMemorySpanExporter
) -> None:
    job, _ = claim(1)
    await put(broker, job)
    calls = 0

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise NackAndRequeue("not now")
        return []

    async with consuming(broker, handler):
        await until(lambda: len(finished(exporter, f"process {QUEUE}")) == 2)
    ends = [attribute(span, "feedmill.settled") for span in finished(exporter, f"process {QUEUE}")]
    assert ends == ["given_back", "acknowledged"]
    assert [attribute(span, "feedmill.redelivered") for span in finished(exporter, f"process {QUEUE}")] == [False, True]


async def test_a_fired_job_is_traced_also_if_nobody_began_to(
    broker: MemoryBroker, exporter: InMemorySpanExporter
) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await session.publish(Outgoing.into(front_of(QUEUE), make_job(reason="manual")).to_publication())
    async with consuming(broker, lambda batch: []):
        await until(lambda: len(finished(exporter, f"process {front_of(QUEUE)}")) == 1)
    (root,), (process,) = finished(exporter, "fire"), finished(exporter, f"process {front_of(QUEUE)}")
    assert process.parent == root.context


async def test_a_service_without_the_setting_ignores_the_headers(
    broker: MemoryBroker, exporter: InMemorySpanExporter
) -> None:
    job, _ = claim(1)
    await put(broker, job)
    tracing.use(tracing.OFF)

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        return [Outgoing(make_result().traced(batch[0].span), FeedFetched.KIND)]

    async with consuming(broker, handler):
        await until(lambda: len(broker.publications("writer")) == 1)
    (result,) = broker.publications("writer")
    assert {TRACE_HEADER, SENT_HEADER}.isdisjoint(result.headers)
    assert not finished(exporter, f"process {QUEUE}")


def test_a_span_is_no_part_of_a_message(exporter: InMemorySpanExporter) -> None:
    job, span = claim(1)
    plain = job.model_validate_json(job.model_dump_json())
    assert (job, job.encode()) == (plain, plain.encode())
    assert job.model_copy(update={"attempt": 3}).span is span
    assert plain.span is tracing.NO_SPAN
