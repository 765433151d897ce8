"""Sending spans to a collector: one that works, one that refuses, hangs or is away. And what is imported without."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus

import pytest

import shared.observability.collector
from local.settings import child_environment
from shared.observability.collector import QUEUE
from shared.observability.traces import SPANS, exporting
from shared.tracing import NO_SPAN, tracer
from tests.fakes.collector import Collector, collecting


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared.observability.collector, "SEND_SECONDS", 0.3)
    monkeypatch.setattr(shared.observability.collector, "CLOSE_SECONDS", 0.5)
    monkeypatch.setattr(shared.observability.collector, "SEND_EVERY_MILLISECONDS", 20.0)


def wait_for(condition: Callable[[], bool]) -> None:
    pausing = threading.Event()
    for _ in range(3000):
        if condition():
            return
        pausing.wait(0.01)
    raise AssertionError("it never came true")


def count(result: str) -> float:
    return float(SPANS.labels(result)._value.get())


def test_spans_arrive_at_the_end_at_the_latest(collector: Collector) -> None:
    with (
        exporting("writer", collector.url.replace("://", "://user:secret@")),
        tracer().root("claim", feed_id=7, status=None) as claim,
        claim.start("send", "producer") as sending,
    ):
        sending.event("sent")
        sending.fail("timeout")
    child, root = collector.spans
    assert (root.service, root.name, root.parent, root.attributes) == (
        "feedmill-writer",
        "claim",
        "",
        {"feedmill.feed_id": 7},
    )
    assert (child.parent, child.trace, child.kind, child.events) == (root.id, root.trace, "producer", ["sent"])
    assert (child.error, child.attributes) == ("timeout", {"error.type": "timeout"})
    assert collector.authorization == "Basic dXNlcjpzZWNyZXQ="


def test_a_message_carries_the_span_to_another_process_and_rubbish_is_no_span(collector: Collector) -> None:
    with exporting("fetcher", collector.url):
        root = tracer().root("claim")
        headers = root.headers()
        tracer().resume(headers).start("process").end()
        root.end()
        root.end("again")
        for rubbish in ({}, {"traceparent": "rubbish"}, {"traceparent": 7}, {"traceparent": f"00-{'0' * 32}-1-01"}):
            assert not tracer().resume(rubbish)
    process, claim = collector.spans
    assert (process.trace, process.parent, claim.error) == (claim.trace, claim.id, None)


@pytest.mark.usefixtures("impatient")
def test_what_the_collector_refuses_is_counted_and_said_once(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    collector.status = HTTPStatus.SERVICE_UNAVAILABLE
    dropped, sent = count("dropped"), count("sent")
    with exporting("fetcher", collector.url):
        for number in (1, 2):
            tracer().root("claim").end()
            wait_for(lambda number=number: count("dropped") == dropped + number)  # type: ignore[misc]
        collector.status = HTTPStatus.OK
        tracer().root("claim").end()
        wait_for(lambda: count("sent") == sent + 1)
        wait_for(lambda: "the collector takes spans again" in caplog.text)
    assert [record.message.split(",")[0] for record in caplog.records] == [
        "traces are sent",
        f"spans for {collector.url}/v1/traces are dropped",
        "the collector takes spans again",
    ]


@pytest.mark.usefixtures("impatient")
def test_a_collector_that_is_away_is_said_without_its_password(caplog: pytest.LogCaptureFixture) -> None:
    dropped = count("dropped")
    with exporting("fetcher", "http://user:secret@127.0.0.1:1"):
        tracer().root("claim").end()
        wait_for(lambda: count("dropped") == dropped + 1)
    assert "http://***@127.0.0.1:1/v1/traces" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.usefixtures("impatient")
def test_while_the_collector_hangs_nothing_waits_and_the_memory_is_bounded(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shared.observability.collector, "SEND_SECONDS", 60.0)
    collector.hanging = True
    dropped = count("dropped")
    with exporting("fetcher", collector.url):
        for _ in range(QUEUE + 100):
            tracer().root("claim").end()
        assert count("dropped") == dropped + 100
    # It still hangs: the end did not wait for it.
    assert not collector.let_go.is_set()
    assert f"{QUEUE} spans were not sent" in caplog.text


def test_without_the_setting_nothing_is_traced() -> None:
    with exporting("fetcher", ""):
        assert tracer().root("claim") is NO_SPAN
        assert tracer().resume({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}) is NO_SPAN
        assert list(tracer().pick(1000)) == []
    assert not NO_SPAN.headers()
    assert not NO_SPAN.start("GET", "client")


def test_without_the_setting_opentelemetry_is_not_imported() -> None:
    others = "services.scheduler.__main__", "services.enricher.__main__", "services.writer.__main__"
    assert [name for name in run_until_stopped("fetcher", *others) if name.startswith("opentelemetry")] == []
    # FastAPI imports OpenTelemetry's interface, but nothing that would do anything.
    ours = ("opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.proto", "google.protobuf")
    assert [name for name in run_until_stopped("api") if name.startswith(ours)] == []


def test_with_the_setting_it_is(collector: Collector) -> None:
    assert "opentelemetry.sdk.trace" in run_until_stopped("fetcher", FEEDMILL_TRACES_URL=collector.url)


def run_until_stopped(service: str, *others: str, **settings: str) -> list[str]:
    """Return the names of the modules that a service has imported when it has stopped; `others` are imported before."""
    program = f"""
import runpy, sys, {", ".join(["asyncio", *others])}
try:
    runpy.run_module("services.{service}", run_name="__main__")
finally:
    print(*sys.modules)
"""
    servers = {
        "FEEDMILL_AMQP_URL": "amqp://guest:guest@127.0.0.1:1/",
        "FEEDMILL_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "FEEDMILL_API_PORT": "0",
    }
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=child_environment(servers | settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "started" in line:
                break
        process.send_signal(signal.SIGTERM)
        said, complaint = process.communicate(timeout=60)
        assert process.returncode == 0, complaint
    return said.split()


@pytest.mark.parametrize("url", ["collector:4318", "ftp://collector", "http:///v1/traces", "http://u:p@ss@collector"])
def test_a_url_that_is_none_is_refused_without_showing_it(url: str) -> None:
    environment = child_environment({"FEEDMILL_TRACES_URL": url})
    done = subprocess.run(
        [sys.executable, "-m", "services.writer"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 78
    assert "FEEDMILL_TRACES_URL" in done.stderr
    assert url not in done.stderr
