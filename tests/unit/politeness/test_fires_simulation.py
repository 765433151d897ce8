"""A job that a person waits for goes ahead of every backlog, and keeps to its host's limits."""

from __future__ import annotations

from typing import Any

import pytest

from services.fetcher.politeness.decisions import Held, Idle, Report, Start
from services.fetcher.politeness.limits import HostPolicy, Limits
from services.fetcher.politeness.scoreboard import Scoreboard
from shared.wire.jobs import FetchFeed
from tests.unit.politeness.test_fetch_simulation import Simulation, jobs


def fired(group: str, feed_id: int, **changes: Any) -> FetchFeed:
    (job,) = jobs(group, 1, first=feed_id)
    return job.model_copy(update={"reason": "manual", **changes})


@pytest.mark.parametrize("shards", [1, 12])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_fire_starts_with_the_next_thread_in_front_of_2000_jobs_of_other_hosts(shards: int, dry_run: bool) -> None:
    simulation = Simulation(shards=shards, threads=16, latency=lambda job: 2.0, fires={5.3: fired("b", 10_000)})
    backlog = [job for n in range(200) for job in jobs(f"host{n}", 10, first=10 * n)]
    if dry_run:
        simulation.fires = {5.3: fired("b", 10_000, dry_run=True)}
    assert simulation.run(backlog) > 200.0
    assert simulation.started_at[10_000] - 5.3 <= 2.0


@pytest.mark.parametrize("shards", [1, 12])
@pytest.mark.parametrize("interval", [1.0, 5.0])
def test_a_fire_gets_the_next_slot_of_its_host_in_front_of_500_jobs(shards: int, interval: float) -> None:
    simulation = Simulation(shards=shards, limits={"host_min_interval_seconds": interval})
    simulation.fires = {100.2: fired("a", 10_000), 200.2: fired("a", 10_001)}
    simulation.run(jobs("a", 500))
    for moment, job in simulation.fires.items():
        assert simulation.started_at[job.feed_id] - moment <= interval
    assert simulation.least_gap("a") >= interval - 1e-6
    assert simulation.most_running["a"] <= 2


def test_many_fires_of_one_host_are_spaced_and_come_before_its_backlog() -> None:
    simulation = Simulation(fires={30.0 + n / 100: fired("a", 10_000 + n) for n in range(20)})
    simulation.run(jobs("a", 300))
    assert max(simulation.started_at[10_000 + n] for n in range(20)) <= 30.0 + 21.0
    assert simulation.least_gap("a") >= 1.0 - 1e-6


def test_a_fire_of_a_slow_host_waits_for_its_time() -> None:
    simulation = Simulation(limits={"policies": (HostPolicy("slow", 1, 90.0),)}, fires={100.0: fired("slow", 10_000)})
    simulation.run(jobs("slow", 5))
    assert simulation.least_gap("slow") >= 90.0 - 1e-6
    assert simulation.started_at[10_000] < 300.0, "at the second start after it, or before"


def test_a_fire_does_not_ask_a_throttled_host() -> None:
    asked: list[float] = []

    def throttle_once(job: FetchFeed, latency: float) -> Report:
        asked.append(latency)
        once = len(asked) == 1
        return Report(latency, succeeded=not once, throttled=once, retry_after_seconds=45.0 if once else None)

    simulation = Simulation(report=throttle_once, fires={10.0: fired("a", 10_000)})
    simulation.run(jobs("a", 30))
    first, second = simulation.starts["a"][:2]
    assert second - first >= 45.0
    assert simulation.started_at[10_000] <= first + 45.0 + 20.0 + 2.0


def test_a_fire_is_read_although_no_other_job_is_taken() -> None:
    simulation = Simulation(fires={50.0: fired("b", 10_000)}, prefetch=4, threads=1, latency=lambda job: 30.0)
    simulation.run([job for n in range(40) for job in jobs(f"host{n}", 1, first=n)])
    assert simulation.started_at[10_000] <= 60.0 + 1e-6


def test_what_goes_ahead_starts_first_and_only_when_its_group_may() -> None:
    board: Scoreboard[str] = Scoreboard(Limits(host_min_interval_seconds=1.0, max_active=1))
    for n in range(3):
        assert isinstance(board.admit(f"old{n}", f"old{n}", 0.0), Held)
    assert board.next_decision(0.0) == Start("old0")
    board.admit("old0", "waits", 5.0)
    board.admit("b", "b", 6.0, front=True, ahead=True)
    board.admit("old0", "ahead", 6.0, front=True, ahead=True)
    assert isinstance(board.next_decision(6.0), Idle), "no thread"
    board.sent("old0", 6.0)
    board.finish("old0", 6.1, Report(0.1))
    assert board.next_decision(6.1) == Start("b")
    board.sent("b", 6.1)
    board.finish("b", 6.2, Report(0.1))
    assert board.next_decision(6.2) == Start("old1"), "the group that is fired next has to wait"
    board.sent("old1", 6.2)
    board.finish("old1", 7.2, Report(0.1))
    assert board.next_decision(7.2) == Start("ahead")
    assert board.withdraw("old2")
    assert board.withdraw("waits")
    board.cancel_start("ahead")
    assert isinstance(board.next_decision(9.0), Idle)
    assert board.counts() == (0, 0)
