"""The fetcher from its queue to the wire on a clock that jumps: hours of backlog, every second of it exact.

Real: consumer loop, handler, slots, scoreboard, intake. Simulated: the broker (in memory, with ticking delay queues),
the threads and the servers.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from services.fetcher.clock import Clock
from services.fetcher.handler import FetchFeeds
from services.fetcher.http.redirects import RedirectChain
from services.fetcher.politeness.decisions import Report
from services.fetcher.politeness.limits import HostPolicy, Limits
from services.fetcher.politeness.scoreboard import Scoreboard
from services.fetcher.politeness.slots import Slots
from services.fetcher.request import FeedRequest
from services.fetcher.retries import RetryRules
from shared.broker.consumer import Consumer
from shared.broker.port import Outgoing, Publication
from shared.broker.prefetch import PrefetchLimit
from shared.broker.shards import front_of
from shared.broker.topology import EXCHANGE, Topology, build_topology, fetch_routing_key
from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched
from tests.factories import NOW, make_job, make_result
from tests.fakes.memory_broker import MemoryBroker, Stored
from tests.fakes.virtual_time import VirtualTimeLoop, run_virtually


def make_topology(shards: int) -> Topology:
    return build_topology(
        fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=shards
    )


TOPOLOGY = make_topology(1)


class CountingBroker(MemoryBroker):
    """Knows what went where."""

    def __init__(self) -> None:
        super().__init__(ticking=True)
        self.published: Counter[str] = Counter()
        self.nacked: Counter[str] = Counter()
        self.ended: set[int] = set()
        """Feeds with a final result."""
        self.awaited = 0
        self.all_ended = asyncio.Event()

    def take_back(self, queue: str, stored: Stored) -> None:
        super().take_back(queue, stored)
        self.nacked[stored.publication.message_id] += 1

    def accept(self, publication: Publication) -> None:
        super().accept(publication)
        self.published[publication.routing_key if publication.exchange in {"", EXCHANGE} else publication.exchange] += 1
        if publication.type == FeedFetched.KIND:
            result = FeedFetched.decode(publication.body, publication.content_encoding)
            self.ended |= {result.feed_id} if result.final else set()
            if len(self.ended) == self.awaited:
                self.all_ended.set()


@dataclass
class Simulation:
    """One fetcher, its queue, and the world."""

    latency: Callable[[FetchFeed], float] = lambda job: 0.3
    report: Callable[[FetchFeed, float], Report] = lambda job, latency: Report(latency)
    threads: int = 64
    prefetch: int = 400
    shards: int = 1
    limits: dict[str, Any] = field(default_factory=dict)
    starts: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    running: Counter[str] = field(default_factory=Counter)
    most_running: Counter[str] = field(default_factory=Counter)
    broker: CountingBroker = field(default_factory=CountingBroker)
    longest_hold: float = 0.0
    stall_at: float | None = None
    """When the process stands still, as under SIGSTOP."""
    stall_seconds: float = 0.0
    losses: tuple[float, ...] = ()
    """When all connections are lost."""
    fires: dict[float, FetchFeed] = field(default_factory=dict)
    """Jobs that somebody waits for, and when they are published."""
    started_at: dict[int, float] = field(default_factory=dict)
    """By feed: its last start."""

    def run(self, jobs: Iterable[FetchFeed]) -> float:
        """Fetch all jobs; return the seconds that it took."""
        return run_virtually(self._run(list(jobs)))

    async def _run(self, jobs: list[FetchFeed]) -> float:
        topology = make_topology(self.shards)
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        prefetch_limit = PrefetchLimit(self.prefetch)
        prefetch_limit.read_from(topology.fetcher.queues)
        fields = {"max_held_per_group": self.prefetch // 4, "max_active": self.threads, **self.limits}
        board: Scoreboard[Any] = Scoreboard(Limits(**fields))
        slots = Slots(
            board,
            self,
            prefetch_limit,
            threads=self.threads,
            clock=loop.time,
            shard_of=topology.fetcher.queue_of,
        )
        clock = Clock(now=lambda: NOW + timedelta(seconds=loop.time()), monotonic=loop.time)
        rules = RetryRules(retry_delay_seconds=3600.0)
        handler = FetchFeeds(self, slots, topology.fetcher, rules=rules, clock=clock)  # type: ignore[arg-type]
        async with self.broker.connect(topology) as session:
            for job in jobs:
                await session.publish(Outgoing(job, fetch_routing_key(job.group, self.shards)).to_publication())
        consumer = Consumer(
            self.broker, topology, topology.fetcher, FetchFeed, handler, prefetch=prefetch_limit, failures=0
        )
        beside = asyncio.create_task(slots.stop_when(stop))
        consuming = asyncio.create_task(consumer.run(stop))
        self.board, self.broker.awaited = board, len(jobs) + len(self.fires)
        firing = asyncio.create_task(self._fire(topology))
        if self.stall_at is not None:
            loop.call_later(self.stall_at, self._stall)
        for moment in self.losses:
            loop.call_later(moment, self.broker.drop_connections)
        await self.broker.all_ended.wait()
        end = loop.time()
        stop.set()
        await consuming
        await beside
        await firing
        held, active = board.counts()
        assert (held, active) == (0, 0)
        return end

    async def _fire(self, topology: Topology) -> None:
        for moment, job in sorted(self.fires.items()):
            await asyncio.sleep(moment - asyncio.get_running_loop().time())
            queue = front_of(topology.fetcher.queue_of(job.group))
            async with self.broker.connect(None) as session:
                await session.publish(Outgoing.into(queue, job).to_publication())

    def _stall(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.jump(self.stall_seconds)

    # ---- the reader and the threads ----

    def make_request(self, request: FeedRequest, sent: Callable[[], None]) -> tuple[FeedFetched | FeedRequest, Report]:
        sent()
        job = request.job
        self.started_at[job.feed_id] = asyncio.get_running_loop().time()
        self.starts[job.group].append(self.started_at[job.feed_id])
        self.longest_hold = max(self.longest_hold, self._oldest_held())
        self.running[job.group] += 1
        self.most_running[job.group] = max(self.most_running[job.group], self.running[job.group])
        return make_result(feed_id=job.feed_id), self.report(job, self.latency(job))

    def submit(self, label: str, request: Any) -> None:
        asyncio.get_running_loop().call_soon(self._run_request, request)

    def _run_request(self, request: Any) -> None:
        if not request.begin():
            return
        result, report = request.work(request.note_sent)

        def end() -> None:
            self.running[request.group] -= 1
            request.end(result, report)

        asyncio.get_running_loop().call_later(report.latency_seconds, end)

    def _oldest_held(self) -> float:
        until = min((job.until for job in self.board._by_age if not job.has_left), default=None)
        return 0.0 if until is None else asyncio.get_running_loop().time() - (until - self.board.max_hold_seconds)

    # ---- what came of it ----

    @property
    def requeues(self) -> int:
        assert TOPOLOGY.fetcher.fast_delay is not None
        return self.broker.published[TOPOLOGY.fetcher.fast_delay]

    def least_gap(self, group: str) -> float:
        starts = self.starts[group]
        return min(b - a for a, b in itertools.pairwise(starts))


def jobs(group: str, number: int, first: int = 0) -> list[FetchFeed]:
    until = NOW + timedelta(days=2)
    return [make_job(feed_id=first + n, group=group, not_after=until) for n in range(number)]


@pytest.mark.parametrize(
    ("interval", "latency", "threads", "prefetch"),
    [
        pytest.param(1.0, 0.3, 16, 64, id="one a second, 16 threads"),
        pytest.param(1.0, 0.3, 64, 400, id="one a second"),
        pytest.param(5.0, 0.3, 64, 400, id="one in five seconds"),
        pytest.param(0.02, 0.01, 64, 400, id="fifty a second"),
        pytest.param(1.0, 2.0, 64, 400, id="as slow as the concurrency bears"),
        pytest.param(1.0, 8.0, 64, 400, id="slower than the interval"),
    ],
)
@pytest.mark.parametrize("shards", [1, 12])
def test_a_thousand_jobs_of_one_host_take_the_ideal_time_without_a_storm(
    interval: float, latency: float, threads: int, prefetch: int, shards: int
) -> None:
    simulation = Simulation(
        shards=shards,
        latency=lambda job: latency,
        threads=threads,
        prefetch=prefetch,
        limits={"host_min_interval_seconds": interval},
    )
    ideal = 999 * max(interval, latency / 2) + latency
    assert simulation.run(jobs("a", 1000)) <= 1.05 * ideal
    assert simulation.requeues <= 100
    assert simulation.least_gap("a") >= interval - 1e-6
    assert simulation.most_running["a"] <= 2
    assert simulation.longest_hold <= 20.0
    assert len(simulation.starts["a"]) == 1000, "a job was fetched twice"
    # Each time counts as a delivery, and after 100 the broker takes a message for poison.
    assert max(simulation.broker.nacked.values(), default=0) <= 10


@pytest.mark.parametrize("shards", [1, 4, 12])
@pytest.mark.parametrize(("backlog", "others"), [(200, 50), (300, 300)])
def test_a_backlog_of_one_host_does_not_keep_others_waiting(backlog: int, others: int, shards: int) -> None:
    simulation = Simulation(shards=shards)
    behind = [job for n in range(others) for job in jobs(f"other{n}", 1, first=1000 + n)]
    took = simulation.run([*jobs("a", backlog), *behind])
    assert max(simulation.starts[f"other{n}"][0] for n in range(others)) < 2.0
    assert took <= 1.06 * (backlog - 0.7)


@pytest.mark.parametrize("shards", [1, 12])
def test_hosts_that_come_in_turns_all_go_at_their_own_pace(shards: int) -> None:
    simulation = Simulation(shards=shards)
    rows = zip(*(jobs(f"host{n}", 100, first=1000 * n) for n in range(10)), strict=True)
    assert simulation.run([job for row in rows for job in row]) <= 1.05 * 99.3
    assert all(simulation.least_gap(f"host{n}") >= 1.0 - 1e-6 for n in range(10))


@pytest.mark.parametrize(("shards", "factor"), [(1, 1.05), (12, 1.15)])
def test_with_all_threads_busy_no_more_is_taken_than_can_be_started(shards: int, factor: float) -> None:
    simulation = Simulation(threads=16, latency=lambda job: 20.0, shards=shards)
    every = [job for n in range(200) for job in jobs(f"slow{n}", 1, first=n)]
    assert simulation.run(every) <= factor * 20.0 * 200 / 16
    assert simulation.requeues <= 20


def test_after_a_stall_of_the_process_the_distance_still_holds() -> None:
    simulation = Simulation(limits={"host_min_interval_seconds": 5.0}, stall_at=30.0, stall_seconds=60.0)
    simulation.run(jobs("a", 20))
    assert simulation.least_gap("a") >= 5.0 - 1e-6


def test_a_host_that_is_down_costs_one_connection_and_then_one_probe() -> None:
    def refuse(job: FetchFeed, latency: float) -> Report:
        return Report(latency, connected=False, succeeded=False)

    simulation = Simulation(report=refuse)
    simulation.run(jobs("a", 50))
    first, second = simulation.starts["a"][0], simulation.starts["a"][1]
    assert second - first >= 3600.0 - 20.0, "the jobs that were skipped came back before their hour"
    assert simulation.broker.published["feed.fetched.v1"] >= 50
    assert simulation.broker.published[TOPOLOGY.fetcher.retry] >= 49


def test_a_throttled_host_is_left_alone_for_as_long_as_it_asked() -> None:
    asked: list[float] = []

    def throttle_once(job: FetchFeed, latency: float) -> Report:
        asked.append(latency)
        once = len(asked) == 1
        return Report(latency, succeeded=not once, throttled=once, retry_after_seconds=45.0 if once else None)

    simulation = Simulation(report=throttle_once)
    simulation.run(jobs("a", 30))
    first, second = simulation.starts["a"][:2]
    assert second - first >= 45.0
    assert second - first <= 45.0 + 20.0 + 0.3


@pytest.mark.parametrize("hosts", [1, 10, 200])
def test_whenever_connections_are_lost_every_job_is_fetched_once_and_the_board_returns_to_zero(hosts: int) -> None:
    simulation = Simulation(latency=lambda job: 2.0, threads=32, losses=tuple(0.5 + 7.3 * n for n in range(25)))
    rows = zip(*(jobs(f"host{n}", 200 // hosts, first=1000 * n) for n in range(hosts)), strict=True)
    took = simulation.run([job for row in rows for job in row])
    assert sum(len(starts) for starts in simulation.starts.values()) == 200
    pauses = 3.0 * len(simulation.losses)  # before connecting anew, at most
    assert took <= 1.3 * max(199.0 / hosts, 200 * 2.0 / 32) + pauses
    assert all(simulation.least_gap(group) >= 1.0 - 1e-6 for group in simulation.starts if hosts < 200)


@pytest.mark.parametrize(("hosts", "interval", "latency"), [(2, 5.0, 0.3), (5, 10.0, 0.3), (5, 1.0, 29.0)])
def test_several_slow_backlogs_do_not_pay_for_each_other(hosts: int, interval: float, latency: float) -> None:
    simulation = Simulation(latency=lambda job: latency, limits={"host_min_interval_seconds": interval})
    rows = zip(*(jobs(f"host{n}", 100, first=1000 * n) for n in range(hosts)), strict=True)
    simulation.run([job for row in rows for job in row])
    # Each is a find once, which pays for a look at a whole window.
    assert simulation.requeues <= 400 * (hosts - 1) + 100


@pytest.mark.parametrize("shards", [1, 12])
def test_a_host_that_is_asked_once_a_minute_does_not_stop_the_others(shards: int) -> None:
    simulation = Simulation(limits={"policies": (HostPolicy("slow", 1, 60.0),)}, shards=shards)
    others = [job for n in range(50) for job in jobs(f"other{n}", 1, first=1000 + n)]
    simulation.run([*jobs("slow", 60), *others])
    assert max(simulation.starts[f"other{n}"][0] for n in range(50)) < 5.0
    assert simulation.least_gap("slow") >= 60.0 - 1e-6


class LeadingToOneHost(Simulation):
    """Every feed redirects to the same host."""

    def __init__(self, **limits: Any) -> None:
        super().__init__(limits=limits)
        self.first_hops: Counter[int] = Counter()

    def make_request(self, request: FeedRequest, sent: Callable[[], None]) -> tuple[FeedFetched | FeedRequest, Report]:
        job = request.job
        if request.is_redirected:
            at_hub = replace(request, job=job.model_copy(update={"group": request.group}))
            return super().make_request(at_hub, sent)
        self.first_hops[job.feed_id] += 1
        self.running[job.group] += 1
        sent()
        chain = RedirectChain(f"http://hub/{job.feed_id}", (job.url,))
        return replace(request, chain=chain, group="hub", started_at=NOW, spent_seconds=0.3), Report(0.3)


@pytest.mark.parametrize("interval", [1.0, 5.0, 20.0])
def test_feeds_that_lead_to_one_host_wait_there_and_their_own_hosts_are_asked_once(interval: float) -> None:
    simulation = LeadingToOneHost(policies=(HostPolicy("hub", 1, interval),))
    simulation.run([job for n in range(100) for job in jobs(f"host{n}", 1, first=n)])
    assert set(simulation.first_hops.values()) == {1}
    assert simulation.least_gap("hub") >= interval - 1e-6
    assert len(simulation.starts["hub"]) == 100
    assert max(simulation.broker.nacked.values(), default=0) <= 20
