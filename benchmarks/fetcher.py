"""The fetcher alone: jobs wait in its queue, results pile up in the writer's; nobody else works meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from benchmarks.bare import BareLoop, Fetch
from benchmarks.bench import Bench
from benchmarks.duel import BARE_LEAST, LATENCIES, Duel, Flock, Size, error_row, fight, open_flocks
from benchmarks.laps import BenchError, Lap, check_errors, spent
from benchmarks.processes import Services, run_services
from benchmarks.rows import Row
from benchmarks.wire import open_session, publish_all, read_topology, wait_until
from shared.broker import Delivery, Session
from shared.messages import FetchFeed, Outcome
from shared.outgoing import Outgoing, encode_outgoing
from shared.politeness import politeness_group
from shared.topology import Topology, fetch_routing_key

LAP_SECONDS = 120.0
FULL = Size(still_feeds=600, busy_feeds=120, rounds=5, seconds=15.0)
QUICK = Size(still_feeds=150, busy_feeds=20, rounds=2, seconds=2.0)

OUTCOMES = {200: Outcome.FETCHED, 304: Outcome.NOT_MODIFIED}


async def run(bench: Bench) -> list[Row]:
    """Return the rows of 304s and 200s, at both latencies."""
    size = QUICK if bench.quick else FULL
    place = bench.make_place("fetcher")
    topology = read_topology()
    duels: list[Duel] = []
    async with contextlib.AsyncExitStack() as stack:
        bare = stack.enter_context(BareLoop(bench.threads))
        flocks = await stack.enter_async_context(open_flocks(size, bare))
        session = await stack.enter_async_context(open_session(place.amqp_url, topology))
        services = await stack.enter_async_context(run_services(["fetcher"], place.environment()))
        course = Course(services, session, topology, bare)
        for flock in flocks:
            await course.run_fetcher(flock.fetches[: bench.threads // 4], flock.status)  # warms up
            duels += [await course.measure(flock, latency, size) for latency in LATENCIES]
    rows = [row for duel in duels for row in (duel.rate_row(), duel.cpu_row("fetcher"))]
    return [*rows, error_row("fetcher", duels)]


class Course:
    """Runs rounds: the fetcher, and the bare loop over the same URLs."""

    def __init__(self, services: Services, session: Session, topology: Topology, bare: BareLoop) -> None:
        self._services = services
        self._session = session
        self._topology = topology
        self._bare = bare

    async def measure(self, flock: Flock, latency: float, size: Size) -> Duel:
        """Return the laps of one case."""
        await flock.farm.set_latency(latency)
        return await fight(
            f"fetcher.{flock.status}.{1000 * latency:.0f}ms",
            size,
            ours=lambda: self.run_fetcher(flock.fetches, flock.status),
            theirs=lambda: self._bare.run(flock.fetches, status=flock.status, least=BARE_LEAST),
        )

    async def run_fetcher(self, fetches: Sequence[Fetch], status: int) -> Lap:
        """Queue a job for each fetch, let the fetcher go, and wait for as many results."""
        queue = self._topology.writer.queue
        jobs = [_make_job(number, fetch) for number, fetch in enumerate(fetches, start=1)]
        with self._services.held_still("fetcher"):
            await publish_all(self._session, [encode_outgoing(_address(job)) for job in jobs])
            before = self._services.cpu_seconds()
        start = time.monotonic()

        async def done() -> bool:
            return await self._session.count_ready(queue) == len(jobs)

        end = await wait_until(done, what="the results", seconds=LAP_SECONDS, check=self._services.check)
        cpu = spent(before, self._services.cpu_seconds())
        outcomes = await self._drain(queue, len(jobs))
        errors = outcomes.pop(Outcome.GAVE_UP.value, 0)
        if outcomes != {OUTCOMES[status].value: len(jobs) - errors}:
            raise BenchError(f"expected {len(jobs)} results {OUTCOMES[status].value}, found {dict(outcomes)}")
        return check_errors(Lap(len(jobs), end - start, cpu, errors))

    async def _drain(self, queue: str, count: int) -> Counter[str]:
        """Take the results from their queue and return them by outcome."""
        arrived: asyncio.Queue[Delivery] = asyncio.Queue()
        outcomes: Counter[str] = Counter()
        await self._session.consume(queue, prefetch=1000, deliver=arrived.put_nowait)
        async with asyncio.timeout(LAP_SECONDS):
            for _ in range(count):
                delivery = await arrived.get()
                outcomes[str(delivery.headers["outcome"])] += 1
                await self._session.ack(delivery)
        await self._session.stop_consuming()
        return outcomes


def _make_job(feed_id: int, fetch: Fetch) -> FetchFeed:
    now = datetime.now(UTC)
    return FetchFeed(
        feed_id=feed_id,
        url=fetch.url,
        etag=fetch.headers.get("If-None-Match"),
        last_modified=fetch.headers.get("If-Modified-Since"),
        validators_url=fetch.url,
        group=politeness_group(fetch.url),
        claim_id=uuid4(),
        not_after=now + timedelta(hours=1),
        queued_at=now,
    )


def _address(job: FetchFeed) -> Outgoing:
    return Outgoing(job, fetch_routing_key(job.group))
