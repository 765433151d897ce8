"""Traces of whole pipelines: one job is one trace, from its claim to its row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

import httpx
import psycopg
import pytest

from local.farm import FeedKind, FeedSpec
from tests.e2e.api_process import ApiProcess
from tests.e2e.commands.test_batch import Bench, farm_of
from tests.e2e.pipeline import Pipeline, running_pipeline
from tests.fakes.collector import Collector, Taken, collecting

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

MOVED = FeedSpec("moved", "127.0.0.2", "/old", FeedKind.MOVED, moved_host="127.0.0.3", moved_path="/new")
PLAIN = FeedSpec("plain", "127.0.0.5", "/feed", FeedKind.PLAIN)
RECOVERS = FeedSpec("recovers", "127.0.0.4", "/feed", FeedKind.RECOVERS, failures=1)

ONE_SHARD = {"FEEDMILL_FETCHER_SHARDS": "1"}

WRITTEN = ("send feed.fetched.v1", ["wait in writer", ("process writer", ["write"])])
ENRICHED = ("send enricher", ["wait in enricher", ("process enricher", ["enrich", WRITTEN])])
"""What follows a fetch with entries."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


def below(trace: Sequence[Taken], parent: str = "") -> list[Any]:
    """Return the names of a trace's spans as a tree, siblings in the order of their beginnings."""
    return [
        (span.name, children) if (children := below(trace, span.id)) else span.name
        for span in trace
        if span.parent == parent
    ]


def first_job(collector: Collector, spec: FeedSpec) -> list[Taken]:
    """Return the trace of the feed's first job. It has one root, and no span whose parent is missing."""
    traces = [trace for trace in collector.traces().values() if trace[0].name == "claim"]
    trace = next(t for t in traces if str(t[0].attributes["feedmill.group"]).startswith(f"{spec.host}:"))
    assert {span.parent for span in trace[1:]} <= {span.id for span in trace}
    assert [span for span in trace if not span.parent] == trace[:1]
    return trace


def names(trace: Sequence[Taken], name: str) -> list[Taken]:
    return [span for span in trace if span.name == name]


async def test_a_job_is_one_trace_from_its_claim_to_its_row(
    amqp_url: str, database_url: str, collector: Collector
) -> None:
    also = ONE_SHARD | {"FEEDMILL_ENRICHER": "true", "FEEDMILL_TRACES_URL": collector.url}
    async with running_pipeline(amqp_url, database_url, [MOVED], enrichers=1, also=also) as pipeline:
        await pipeline.until_complete()
    trace = first_job(collector, MOVED)
    fetch = ["wait for slot", "GET", "wait for slot", "GET", "parse", ENRICHED]
    assert below(trace) == [
        ("claim", [("send feed.fetch.00.v1", ["wait in fetcher.00", ("process fetcher.00", fetch)])])
    ]
    services = {span.service.removeprefix("feedmill-") for span in trace}
    assert services == {"scheduler", "fetcher", "enricher", "writer"}
    assert [span.error for span in trace if span.error] == []

    hops = names(trace, "GET")
    assert [hop.attributes["http.response.status_code"] for hop in hops] == [301, 200]
    assert [hop.attributes["server.address"] for hop in hops] == [MOVED.host, MOVED.moved_host]
    assert {hop.kind for hop in hops} == {"client"}
    assert hops[1].events == ["resolved", "connected", "sent", "answered"]
    (fetched,) = names(trace, "process fetcher.00")
    assert fetched.attributes["feedmill.outcome"] == "fetched"
    assert fetched.attributes["feedmill.entries"] == MOVED.items
    assert {span.attributes["feedmill.settled"] for span in trace if span.kind == "consumer"} == {"acknowledged"}
    assert all(
        "://" not in str(value) and MOVED.path not in str(value) for s in trace for value in s.attributes.values()
    )

    (write,) = names(trace, "write")
    assert write.attributes["feedmill.articles.new"] == MOVED.items
    batch = next(span for span in collector.spans if [span.id] == write.links)
    assert (batch.name, batch.attributes["feedmill.articles.new"]) == ("write batch", MOVED.items)
    assert batch.links == [span.id for span in names(trace, "process writer")]


async def test_a_soft_error_and_its_retry_are_one_trace(amqp_url: str, database_url: str, collector: Collector) -> None:
    also = ONE_SHARD | {"FEEDMILL_TRACES_URL": collector.url}
    async with running_pipeline(amqp_url, database_url, [RECOVERS], also=also) as pipeline:
        await pipeline.until_complete()
    trace = first_job(collector, RECOVERS)
    first, second = names(trace, "process fetcher.00")
    assert [span.attributes["feedmill.outcome"] for span in (first, second)] == ["soft_error", "fetched"]
    assert [span.attributes["feedmill.final"] for span in (first, second)] == [False, True]
    assert (first.error, second.error) == ("http_500", None)
    (delayed,) = [span for span in trace if span.name.startswith("send fetcher.retry")]
    assert (delayed.parent, second.parent) == (first.id, delayed.id)
    assert len(names(trace, "process writer")) == 2


def test_a_run_of_batch_is_traced_too(amqp_url: str, database_url: str, collector: Collector) -> None:
    bench = Bench(amqp_url, database_url)
    with farm_of(bench, [MOVED]):
        bench.run("--writer", FEEDMILL_TRACES_URL=collector.url, FEEDMILL_ENRICHER="false")
    trace = first_job(collector, MOVED)
    assert below(trace) == [
        ("claim", [("fetch", ["wait for slot", "GET", "wait for slot", "GET", "parse", WRITTEN])]),
    ]
    (fetch,) = names(trace, "fetch")
    assert (fetch.service, fetch.attributes["feedmill.outcome"]) == ("feedmill-batch", "fetched")


async def test_a_collector_that_hangs_holds_nothing_up(amqp_url: str, database_url: str, collector: Collector) -> None:
    collector.hanging = True
    also = ONE_SHARD | {"FEEDMILL_TRACES_URL": collector.url}
    async with running_pipeline(amqp_url, database_url, [MOVED], also=also) as pipeline:
        await pipeline.until_complete()
    said = [line for _, line in pipeline.lines]
    assert sum('"message": "stopped"' in line for line in said) == 3, said[-20:]
    assert collector.requests
    assert not collector.spans


async def test_a_fire_goes_on_with_the_trace_of_who_asked(
    amqp_url: str, database_url: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (ONE_SHARD | {"FEEDMILL_TRACES_URL": collector.url}).items():
        monkeypatch.setenv(name, value)
    trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    async with running_pipeline(amqp_url, database_url, [PLAIN]) as pipeline:
        await pipeline.until_complete()
        with ApiProcess(database_url, amqp_url) as api:
            fire(api, f"00-{trace}-{caller}-01")
            await pipeline.until(lambda: is_fired(pipeline))
    fetch = ["wait for slot", "GET", WRITTEN]  # not modified
    front = "fetcher.00.front"
    assert below(collector.traces()[trace], caller) == [
        ("fire", [(f"send {front}", [f"wait in {front}", (f"process {front}", fetch)])])
    ]


def fire(api: ApiProcess, traceparent: str) -> None:
    headers = {"traceparent": traceparent}
    answer = httpx.post(f"{api.url}/api/feeds/1/fire", headers=headers, trust_env=False)
    assert answer.status_code == HTTPStatus.ACCEPTED, answer.text


def is_fired(pipeline: Pipeline) -> bool:
    with psycopg.connect(pipeline.database_url, connect_timeout=2) as connection:
        return connection.execute("SELECT FROM fire_tasks WHERE status = 'done'").fetchone() is not None
