"""The fetcher alone: its jobs wait in its queue, its results stay in the writer's queue.

Beside it, over the same URLs and in as many threads: a bare loop of httpx; the shared client with a large pool that one
would write without a thought; and two fetchers instead of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby

from benchmarks.bare import fetching
from benchmarks.bare.fetching import BESIDE, BareLoop, Fetch
from benchmarks.bench import Bench, open_session, read_topology
from benchmarks.farm import FeedSet, Size, open_feed_sets
from benchmarks.laps import (
    BenchError,
    Contender,
    Lap,
    check_errors,
    error_row,
    middle_cpu_ms,
    rate_row,
    run_rounds,
)
from benchmarks.messages import take_outcomes, write_jobs
from benchmarks.processes import Services, run_services
from benchmarks.rows import Row
from shared.broker.port import Session
from shared.wire.outcomes import Outcome

LAP_SECONDS = 120.0
FULL = Size(still_feeds=600, busy_feeds=120, rounds=5, seconds=16.0)
QUICK = Size(still_feeds=150, busy_feeds=20, rounds=2, seconds=2.0)
PREFETCH = 1000
PROCESS = "fetcher"

OUTCOMES = {200: Outcome.FETCHED, 304: Outcome.NOT_MODIFIED}
GOALS = {200: 0.25, 304: 0.7}

OURS, HTTPX, NAIVE, PAIR = "fetcher", "httpx", "naive", "pair"


@dataclass(frozen=True)
class Case:
    """The answers, the number of threads in a process, and the clients beside the fetcher."""

    status: int
    latency: float
    """The farm's delay of each answer, in seconds."""
    threads: int
    beside: tuple[str, ...]
    jobs: int = 1
    """Each feed is fetched so often in a lap of the fetcher."""

    @property
    def name(self) -> str:
        """The beginning of its rows' names."""
        return f"fetcher.{self.status}.{1000 * self.latency:.0f}ms.{self.threads}"


CASES = (
    Case(304, 0.0, 64, (HTTPX,), jobs=2),
    Case(304, 0.1, 64, (HTTPX, PAIR), jobs=2),
    Case(200, 0.0, 64, (HTTPX,)),
    Case(200, 0.1, 64, (HTTPX, PAIR)),
    Case(304, 0.1, 200, (HTTPX, NAIVE, PAIR), jobs=2),
)

Laps = dict[str, list[Lap]]


async def run(bench: Bench) -> list[Row]:
    """Return the rows of all cases."""
    size = QUICK if bench.quick else FULL
    rows: list[Row] = []
    ours: list[Lap] = []
    bare: list[Lap] = []
    async with AsyncExitStack() as stack:
        loop = stack.enter_context(BareLoop(bench.threads))
        feed_sets = {one.status: one for one in await stack.enter_async_context(open_feed_sets(size, loop))}
        for threads, grouped in groupby(CASES, lambda case: case.threads):
            cases = list(grouped)
            async with AsyncExitStack() as of_threads:
                names = dict.fromkeys(name for case in cases for name in (OURS, *case.beside))
                clients = {name: await _open_client(bench, name, threads, of_threads) for name in names}
                for case in cases:
                    laps = await _run_case(case, feed_sets[case.status], clients, size)
                    rows += _case_rows(case, laps)
                    ours += chain(laps[OURS], laps.get(PAIR, []))
                    bare += laps.get(HTTPX, [])
    return [*rows, error_row("fetcher", BESIDE, ours, bare)]


async def _run_case(case: Case, feed_set: FeedSet, clients: Mapping[str, Fetchers | BareLoop], size: Size) -> Laps:
    await feed_set.farm.tell(f"latency {case.latency}")
    contenders: dict[str, Contender] = {}
    for name in (OURS, *case.beside):
        times = case.jobs if name in {OURS, PAIR} else 1
        contenders[name] = partial(clients[name].run, list(feed_set.fetches) * times, feed_set.status)
    return await run_rounds(contenders, size.rounds, size.seconds)


async def _open_client(bench: Bench, name: str, threads: int, stack: AsyncExitStack) -> Fetchers | BareLoop:
    """Return a bare loop, or one or two fetchers on a vhost of their own; `stack` closes it."""
    if name in {HTTPX, NAIVE}:
        return stack.enter_context(BareLoop(threads, keep_alive=name == NAIVE))
    place, topology = bench.make_place(name), read_topology()
    names = [f"fetcher-{threads}-{name}-{number}" for number in range(2 if name == PAIR else 1)]
    services = await stack.enter_async_context(run_services(names, place.environment() | fetcher_settings(threads)))
    session = await stack.enter_async_context(open_session(place.amqp_url, topology))
    return Fetchers(services, session, topology.writer.queue)


def fetcher_settings(threads: int) -> dict[str, str]:
    """Return the settings of a fetcher that only its number of threads limits."""
    return {
        "FEEDMILL_FETCH_THREADS": str(threads),
        "FEEDMILL_MAX_ACTIVE": str(threads),
        "FEEDMILL_FETCHER_PREFETCH": str(PREFETCH),
        "FEEDMILL_WRITER_HIGH_WATER": "100000",
    }


class Fetchers:
    """The fetchers of one vhost. Their results go to the queue `results`."""

    def __init__(self, services: Services, session: Session, results: str) -> None:
        self._services = services
        self._session = session
        self._results = results
        self._is_warm = False

    async def run(self, fetches: Sequence[Fetch], status: int) -> Lap:
        """Queue a job for each fetch while the fetchers are stopped, continue them, and wait for as many results."""
        if not self._is_warm:
            self._is_warm = True
            await self.run(fetches[:20], status)
        count = len(fetches)

        async def done() -> bool:
            return await self._session.count_ready(self._results) == count

        seconds, cpu = await self._services.work_off(
            self._session, write_jobs(fetches), done, what="the results", seconds=LAP_SECONDS
        )
        outcomes = await take_outcomes(self._session, self._results, count, seconds=LAP_SECONDS)
        errors = outcomes.pop(Outcome.GAVE_UP.value, 0)
        if outcomes != {OUTCOMES[status].value: count - errors}:
            raise BenchError(f"expected {count} results {OUTCOMES[status].value}, found {dict(outcomes)}")
        return check_errors(Lap(count, seconds, {PROCESS: sum(cpu.values())}, errors))


def _case_rows(case: Case, laps: Laps) -> list[Row]:
    rows: list[Row] = []

    def add(what: str, name: str, other: str, beside: str, goal: float | None = None) -> None:
        rows.append(rate_row(f"{case.name}.{what}", "feeds/s", beside, laps[name], laps[other], goal))

    if HTTPX in laps:
        add("feeds", OURS, HTTPX, BESIDE, GOALS[case.status])
        cost, other = middle_cpu_ms(laps[OURS], PROCESS), middle_cpu_ms(laps[HTTPX], fetching.PROCESS)
        rows.append(Row(f"{case.name}.cpu", cost, "CPU-ms/feed", BESIDE, other))
    if NAIVE in laps:
        add("feeds_to_naive", OURS, NAIVE, "naive shared client", 5.0)
    if PAIR in laps:
        add("two_fetchers", PAIR, OURS, "one fetcher", 1.6)
        cost, other = (middle_cpu_ms(laps[name], PROCESS) for name in (PAIR, OURS))
        rows.append(Row(f"{case.name}.two_fetchers_cpu", cost, "CPU-ms/feed", "one fetcher", other))
    return rows
