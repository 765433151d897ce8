"""The fetcher alone: jobs wait in its queue, results pile up in the writer's; nobody else works meanwhile.

Beside it, over the same URLs and in as many threads: bare loops of httpx, of `http.client` and of our own client; the
shared client of httpx with a large pool that one would write without a thought; and two fetchers instead of one.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import chain, groupby
from uuid import uuid4

from benchmarks.bare import fetching
from benchmarks.bare.fetching import BareLoop, ClientLoop, Fetch, Loop, StandardLoop
from benchmarks.bench import Bench, open_session, publish_all, read_topology, wait_until
from benchmarks.contest import BARE_LEAST, BESIDE, Flock, Size, contest, error_row, open_flocks
from benchmarks.laps import BenchError, Lap, check_errors, middle_cpu_ms, middle_rate, spent
from benchmarks.processes import Services, run_services
from benchmarks.rows import Row
from shared.broker.port import Delivery, Outgoing, Session
from shared.broker.topology import Stage, Topology
from shared.politeness import politeness_group
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome

LAP_SECONDS = 120.0
FULL = Size(still_feeds=600, busy_feeds=120, rounds=5, seconds=16.0)
QUICK = Size(still_feeds=150, busy_feeds=20, rounds=2, seconds=2.0)
PREFETCH = 1000
PROCESS = "fetcher"

OUTCOMES = {200: Outcome.FETCHED, 304: Outcome.NOT_MODIFIED}
GOALS = {200: 0.25, 304: 0.7}

OURS, HTTPX, STANDARD, CLIENT, NAIVE, PAIR = "fetcher", "httpx", "http.client", "client", "naive", "pair"


@dataclass(frozen=True)
class Case:
    """What is fetched, with how many threads in a process, and who does it besides the fetcher."""

    status: int
    latency: float
    """Seconds that the farm waits before each answer."""
    threads: int
    beside: tuple[str, ...]
    jobs: int = 1
    """Each feed is fetched so often in a lap of the fetcher."""

    @property
    def name(self) -> str:
        """The beginning of its rows' names."""
        return f"fetcher.{self.status}.{1000 * self.latency:.0f}ms.{self.threads}"


CASES = (
    Case(304, 0.0, 64, (HTTPX, STANDARD, CLIENT), jobs=2),
    Case(304, 0.1, 64, (HTTPX,), jobs=2),
    Case(200, 0.0, 64, (HTTPX, STANDARD, CLIENT)),
    Case(200, 0.1, 64, (HTTPX,)),
    Case(304, 0.1, 200, (HTTPX, STANDARD, CLIENT, NAIVE, PAIR), jobs=2),
    Case(200, 0.1, 200, (HTTPX, NAIVE), jobs=2),
    Case(304, 0.1, 16, (PAIR,)),
)

Contender = Callable[[], Awaitable[Lap]]
Laps = dict[str, list[Lap]]


async def run(bench: Bench) -> list[Row]:
    """Return the rows of all cases."""
    size = QUICK if bench.quick else FULL
    rows: list[Row] = []
    ours: list[Lap] = []
    theirs: list[Lap] = []
    async with contextlib.AsyncExitStack() as stack:
        loop = stack.enter_context(BareLoop(bench.threads))
        flocks = {flock.status: flock for flock in await stack.enter_async_context(open_flocks(size, loop))}
        for threads, cases in groupby(CASES, lambda case: case.threads):
            async with AsyncExitStack() as of_threads:
                stable = Stable(bench, threads, of_threads)
                for case in cases:
                    laps = await _run_case(case, flocks[case.status], stable, size)
                    rows += _case_rows(case, laps)
                    ours += chain(laps[OURS], laps.get(PAIR, []))
                    theirs += laps.get(HTTPX, [])
    return [*rows, error_row("fetcher", ours, theirs)]


async def _run_case(case: Case, flock: Flock, stable: Stable, size: Size) -> Laps:
    await flock.farm.set_latency(case.latency)
    contenders: dict[str, Contender] = {}
    for name in (OURS, *case.beside):
        if name in {OURS, PAIR}:
            contenders[name] = partial(
                (await stable.course(name)).run_fetcher, list(flock.fetches) * case.jobs, flock.status
            )
        else:
            contenders[name] = partial(stable.loop(name).run, flock.fetches, status=flock.status, least=BARE_LEAST)
    return await contest(contenders, size)


class Stable:
    """All who fetch with a certain number of threads; made when they are needed, kept until the stack ends."""

    def __init__(self, bench: Bench, threads: int, stack: AsyncExitStack) -> None:
        self._bench = bench
        self._threads = threads
        self._stack = stack
        self._loops: dict[str, Loop] = {}
        self._courses: dict[str, Course] = {}

    def loop(self, name: str) -> Loop:
        """Return a bare loop."""
        if name not in self._loops:
            self._loops[name] = self._make_loop(name)
        return self._loops[name]

    async def course(self, name: str) -> Course:
        """Return one fetcher, or two, on a vhost of their own, warmed up."""
        if name not in self._courses:
            place = self._bench.make_place(name)
            names = [f"fetcher-{self._threads}-{name}-{number}" for number in range(2 if name == PAIR else 1)]
            environment = place.environment() | fetcher_settings(self._threads)
            services = await self._stack.enter_async_context(run_services(names, environment))
            topology = read_topology()
            session = await self._stack.enter_async_context(open_session(place.amqp_url, topology))
            self._courses[name] = Course(services, session, topology)
        return self._courses[name]

    def _make_loop(self, name: str) -> Loop:
        match name:
            case "http.client":
                return StandardLoop(self._threads)
            case "client":
                return self._stack.enter_context(ClientLoop(self._threads))
            case _:
                return self._stack.enter_context(BareLoop(self._threads, keep_alive=name == NAIVE))


def fetcher_settings(threads: int) -> dict[str, str]:
    """Return the settings of a fetcher with so many threads that nothing else holds back."""
    return {
        "FEEDMILL_FETCH_THREADS": str(threads),
        "FEEDMILL_MAX_ACTIVE": str(threads),
        "FEEDMILL_FETCHER_PREFETCH": str(PREFETCH),
        "FEEDMILL_WRITER_HIGH_WATER": "100000",
    }


class Course:
    """Lets the fetchers of one vhost do a lap."""

    def __init__(self, services: Services, session: Session, topology: Topology) -> None:
        self._services = services
        self._session = session
        self._topology = topology
        self._warm = False

    async def run_fetcher(self, fetches: Sequence[Fetch], status: int) -> Lap:
        """Queue a job for each fetch, let the fetchers go, and wait for as many results."""
        if not self._warm:
            self._warm = True
            await self.run_fetcher(fetches[:20], status)
        queue = self._topology.writer.queue
        jobs = [make_job(number, fetch) for number, fetch in enumerate(fetches, start=1)]
        with self._services.held_still():
            await publish_all(self._session, [address(job).to_publication() for job in jobs])
            before = self._services.cpu_seconds()
        start = time.monotonic()

        async def done() -> bool:
            return await self._session.count_ready(queue) == len(jobs)

        end = await wait_until(done, what="the results", seconds=LAP_SECONDS, check=self._services.check)
        cpu = {PROCESS: sum(spent(before, self._services.cpu_seconds()).values())}
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


def _case_rows(case: Case, laps: Laps) -> list[Row]:
    rate, unit = partial(_rate, laps), "feeds/s"
    rows: list[Row] = []
    if HTTPX in laps:
        rows.append(Row(f"{case.name}.feeds", rate(OURS), unit, BESIDE, rate(HTTPX), GOALS[case.status]))
        rows.append(_cpu_row(f"{case.name}.cpu", laps, OURS, HTTPX, BESIDE))
    if STANDARD in laps:
        rows.append(Row(f"{case.name}.feeds_to_fastest", rate(OURS), unit, "bare http.client", rate(STANDARD)))
        rows.append(Row(f"{case.name}.feeds_to_client", rate(OURS), unit, "bare feed client", rate(CLIENT)))
        rows.append(Row(f"{case.name}.client_feeds", rate(CLIENT), unit, BESIDE, rate(HTTPX)))
        rows.append(_cpu_row(f"{case.name}.client_cpu", laps, CLIENT, STANDARD, "bare http.client"))
    if NAIVE in laps:
        rows.append(Row(f"{case.name}.feeds_to_naive", rate(OURS), unit, "naive shared client", rate(NAIVE), 5.0))
    if NAIVE in laps and CLIENT in laps:
        rows.append(Row(f"{case.name}.client_to_naive", rate(CLIENT), unit, "naive shared client", rate(NAIVE)))
    if PAIR in laps:
        rows.append(Row(f"{case.name}.two_fetchers", rate(PAIR), unit, "one fetcher", rate(OURS), 1.6))
    return rows


def _rate(laps: Laps, name: str) -> float:
    return middle_rate(laps[name])


def _cpu_row(name: str, laps: Laps, ours: str, theirs: str, beside: str) -> Row:
    cost = [middle_cpu_ms(laps[who], PROCESS if who == OURS else fetching.PROCESS) for who in (ours, theirs)]
    return Row(name, cost[0], "CPU-ms/feed", beside, cost[1])


def make_job(feed_id: int, fetch: Fetch) -> FetchFeed:
    """Return the job of one fetch."""
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


def address(job: FetchFeed) -> Outgoing:
    """Return a job as it goes into the fetchers' queue."""
    return Outgoing.into(_stage().queue_of(job.group), job)


@cache
def _stage() -> Stage:
    return read_topology().fetcher
