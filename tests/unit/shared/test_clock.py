"""Services use the database's time, whatever the machine's own clock shows."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest

from services.fetcher.clock import PATIENCE_SECONDS, ClockSync
from services.scheduler.timekeeping import ClockAnnouncer
from shared.broker.port import Session
from shared.broker.topology import FETCHERS, build_topology
from shared.clock import READINGS, ServerClock, decode_clock, encode_clock
from shared.database.postgres import Database
from tests.factories import NOW
from tests.fakes.memory_broker import MemoryBroker
from tests.fakes.virtual_time import run_virtually

TOPOLOGY = build_topology(fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=1)


class Machine:
    """A machine whose clock is `ahead` of the truth, which goes on by itself."""

    def __init__(self, ahead: timedelta) -> None:
        self.ahead = ahead
        self.passed = 0.0
        self.clock = ServerClock(wall=lambda: self.truth + self.ahead, monotonic=lambda: self.passed)

    @property
    def truth(self) -> datetime:
        return NOW + timedelta(seconds=self.passed)

    def error(self) -> float:
        return (self.clock.now() - self.truth).total_seconds()


@pytest.mark.parametrize("hours", [-400.0, -1.0, 0.0, 1.0, 2.0])
def test_the_time_is_the_databases_and_stays_so_when_the_machines_is_set(hours: float) -> None:
    machine = Machine(timedelta(hours=hours))
    assert machine.error() == hours * 3600
    machine.clock.observe(machine.truth)
    machine.passed += 1000.0
    assert machine.error() == pytest.approx(0.0)
    assert machine.clock.offset_seconds() == pytest.approx(hours * 3600)
    machine.ahead = timedelta(hours=5)
    assert machine.error() == pytest.approx(0.0)


def test_the_least_late_reading_counts_and_old_ones_are_dropped() -> None:
    machine = Machine(timedelta())
    for late in (3.0, 0.1, 0.7):
        machine.passed += 1.0
        machine.clock.observe(machine.truth - timedelta(seconds=late))
    assert machine.error() == pytest.approx(-0.1)
    for _ in range(READINGS):  # another server became the primary, and its clock is behind
        machine.passed += 1.0
        machine.clock.observe(machine.truth - timedelta(minutes=1))
    assert machine.error() == pytest.approx(-60.0)


def test_a_wrong_clock_is_reported_once_and_again_when_its_offset_changes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "shared.clock")
    machine = Machine(timedelta(hours=2))
    assert machine.clock.check() is None
    for _ in range(3):
        machine.clock.observe(machine.truth)
    assert machine.clock.check() == "this machine's clock is 7200 s ahead of the database's"
    machine.ahead = timedelta(minutes=-1)
    machine.clock.observe(machine.truth)
    assert "60 s behind" in (machine.clock.check() or "")
    machine.ahead = timedelta()
    machine.clock.observe(machine.truth)
    assert machine.clock.check() is None
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "INFO"]


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"[]", b"{}", b'{"clock": 5}', b'{"clock": "noon"}', b'{"clock":"2026-11-21"}']
)
def test_a_message_without_a_time_is_ignored(body: bytes) -> None:
    assert decode_clock(body) is None
    assert decode_clock(encode_clock(NOW)) == NOW


class FakeDatabase(Database):
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def read_clock(self) -> datetime:
        return self._machine.truth


async def test_schedulers_publish_the_time_to_fetchers() -> None:
    broker, scheduler, fetcher = MemoryBroker(), Machine(timedelta(hours=-3)), Machine(timedelta(hours=2))
    sessions: list[Session] = []
    told = ClockSync(fetcher.clock)
    timekeeping = ClockAnnouncer(FakeDatabase(scheduler), scheduler.clock, lambda: sessions[0] if sessions else None)
    await timekeeping.look()
    assert scheduler.error() == pytest.approx(0.0)
    async with broker.connect(TOPOLOGY) as session:
        sessions.append(session)
        await timekeeping.look()  # nobody listens yet
        await session.listen(FETCHERS, told.receive, name="fetcher.alive.one")
        told.receive(b'{"fetcher": "another"}')
        assert fetcher.clock.offset_seconds() == 0.0  # unknown
        await timekeeping.look()
        await told.confirmed()
        assert fetcher.error() == pytest.approx(0.0)
        assert not session.lost.is_set()


def test_a_fetcher_without_any_reading_uses_its_own_clock_after_a_moment() -> None:
    async def wait() -> float:
        told = ClockSync(ServerClock())
        loop = asyncio.get_running_loop()
        started = loop.time()
        await told.confirmed()
        return loop.time() - started

    assert run_virtually(wait()) == pytest.approx(PATIENCE_SECONDS)


def test_without_a_reading_the_machines_clock_is_used() -> None:
    assert abs((ServerClock().now() - datetime.now(UTC)).total_seconds()) < 5
    assert ServerClock().offset_seconds() == 0.0
    assert FETCHERS in {exchange.name for exchange in TOPOLOGY.exchanges}
