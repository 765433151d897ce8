"""Fetchers that share shards, on a clock that jumps: they come, go, fall silent, and are mistaken about each other."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import pytest

from services.fetcher.politeness.decisions import Report
from services.fetcher.politeness.limits import Limits
from services.fetcher.politeness.scoreboard import Scoreboard
from services.fetcher.politeness.slot_request import SlotRequest
from services.fetcher.politeness.slots import Slots
from services.fetcher.shards.lease import Lease
from services.fetcher.shards.ownership import Shards
from shared.broker.port import Publication, Session
from shared.broker.prefetch import PrefetchLimit
from shared.broker.topology import FETCHERS, build_topology
from tests.fakes.memory_broker import MemoryBroker, MemorySession
from tests.fakes.virtual_time import VirtualTimeLoop, run_virtually

TOPOLOGY = build_topology(fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=12)
ALL = list(TOPOLOGY.fetcher.queues)


class HeldThreads:
    """Worker threads whose requests end when a test says so."""

    def __init__(self) -> None:
        self.running: list[SlotRequest[Any]] = []

    def submit(self, label: str, task: SlotRequest[Any]) -> None:
        if task.begin():
            self.running.append(task)


class Fetcher:
    """A fetcher without its work: its prefetch limit is followed at once."""

    def __init__(self, broker: MemoryBroker, drain_seconds: float = 60.0) -> None:
        self.stop, self.end = asyncio.Event(), asyncio.Event()
        self.prefetch_limit, self.threads = PrefetchLimit(400), HeldThreads()
        clock = asyncio.get_running_loop().time
        board = Scoreboard[SlotRequest[Any]](Limits(host_min_interval_seconds=0.001))
        self.slots = Slots(
            board, self.threads, self.prefetch_limit, threads=200, clock=clock, shard_of=lambda group: group
        )
        self.jobs: list[asyncio.Task[Any]] = []
        self.session: Session | None = None
        self.lease = Lease(15.0)
        self.shards = Shards(
            broker,
            TOPOLOGY.fetcher,
            self.prefetch_limit,
            self.slots,
            stop=self.stop,
            drain_seconds=drain_seconds,
            clock=asyncio.get_running_loop().time,
            lease=self.lease,
            uptime=asyncio.get_running_loop().time,
        )
        self.tasks = [asyncio.create_task(self._live()), asyncio.create_task(self._follow())]

    async def _live(self) -> None:
        async with self.shards.connect(TOPOLOGY) as session:
            self.session = session
            await self.end.wait()

    async def _follow(self) -> None:
        while True:
            self.prefetch_limit.note_applied()
            await self.prefetch_limit.wait_changed()

    def run_job(self, queue: str) -> None:
        """Have a request of this shard under way."""
        self.jobs.append(asyncio.create_task(self.slots.run(queue, "a job", lambda sent: (None, Report(0.1)))))

    def end_jobs(self) -> None:
        assert len(self.threads.running) == len(self.jobs), "a job was nacked, or has not begun"
        while self.threads.running:
            self.threads.running.pop().end(None, Report(0.1))
        self.jobs.clear()

    async def lose_connection(self, seconds: float = 0.0) -> None:
        """Connect anew, as a consumer does, after so many seconds."""
        self.end.set()
        await self.tasks[0]
        self.end.clear()
        await asyncio.sleep(seconds)
        self.tasks[0] = asyncio.create_task(self._live())

    async def gone(self) -> None:
        """End as a process that is killed does: its connection ends, and nobody is told."""
        self.end.set()
        await self.tasks[0]
        self.tasks[1].cancel()

    @property
    def owned(self) -> list[str]:
        return self.shards.owned()


def shares(*fetchers: Fetcher) -> list[int]:
    """Return how many shards each owns, the least first; each shard has one owner."""
    every = sorted(itertools.chain(*(fetcher.owned for fetcher in fetchers)))
    assert every == ALL
    for fetcher in fetchers:
        assert list(fetcher.prefetch_limit.queues or ()) == fetcher.owned, "it consumes what it owns"
    return sorted(len(fetcher.owned) for fetcher in fetchers)


def test_one_alone_owns_all_and_what_it_owned_is_lost_with_its_session() -> None:
    async def play() -> None:
        fetcher = Fetcher(MemoryBroker())
        assert not fetcher.owned
        assert fetcher.prefetch_limit.queues == ()
        await asyncio.sleep(1.0)
        assert shares(fetcher) == [12]
        assert set(fetcher.slots._opened_at) == set(ALL)
        await fetcher.gone()
        assert not fetcher.owned
        assert fetcher.prefetch_limit.queues == ()

    run_virtually(play())


@pytest.mark.parametrize("number", [2, 3, 5, 12])
def test_those_that_start_together_share_at_once(number: int) -> None:
    async def play() -> None:
        broker = MemoryBroker()
        fetchers = [Fetcher(broker) for _ in range(number)]
        await asyncio.sleep(1.0)
        found = shares(*fetchers)
        assert found[-1] - found[0] <= 1
        for fetcher in fetchers:
            await fetcher.gone()

    run_virtually(play())


def test_one_that_is_killed_is_replaced_and_one_that_comes_gets_its_share() -> None:
    async def play() -> None:
        broker = MemoryBroker()
        fetchers = [Fetcher(broker) for _ in range(3)]
        await asyncio.sleep(1.0)
        kept = [set(fetcher.owned) for fetcher in fetchers[1:]]
        await fetchers[0].gone()
        await asyncio.sleep(5.0)
        assert shares(*fetchers[1:]) == [6, 6]
        assert all(before <= set(fetcher.owned) for before, fetcher in zip(kept, fetchers[1:], strict=True))
        fetchers.append(Fetcher(broker))
        await asyncio.sleep(1.0)
        assert shares(*fetchers[1:]) == [4, 4, 4]
        for fetcher in fetchers[1:]:
            await fetcher.gone()

    run_virtually(play())


def test_of_more_than_there_are_shards_some_stand_by_and_step_in(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def play() -> None:
        broker = MemoryBroker()
        fetchers = [Fetcher(broker) for _ in range(13)]
        await asyncio.sleep(2.5)
        assert shares(*fetchers) == [0] + [1] * 12
        assert caplog.text.count("standing by") == 1
        busy = next(fetcher for fetcher in fetchers if fetcher.owned)
        await busy.gone()
        await asyncio.sleep(5.0)
        fetchers.remove(busy)
        assert shares(*fetchers) == [1] * 12
        for fetcher in fetchers:
            await fetcher.gone()

    run_virtually(play())


def test_a_shard_is_handed_over_only_when_nothing_of_it_runs_any_more() -> None:
    async def play() -> None:
        broker = MemoryBroker()
        first = Fetcher(broker)
        await asyncio.sleep(1.0)
        for queue in ALL[6:8]:
            first.run_job(queue)
        second = Fetcher(broker)
        await asyncio.sleep(30.0)
        assert first.owned == ALL[:8]
        assert second.owned == ALL[8:]
        assert first.prefetch_limit.queues == tuple(ALL[:6]), "no more is taken of what is given up"
        first.end_jobs()
        await asyncio.sleep(0.2)
        assert shares(first, second) == [6, 6]
        await first.gone()
        await second.gone()

    run_virtually(play())


def test_what_never_ends_is_waited_for_as_long_as_a_fetch_can_take() -> None:
    async def play() -> None:
        broker = MemoryBroker()
        first = Fetcher(broker, drain_seconds=20.0)
        await asyncio.sleep(1.0)
        first.run_job(ALL[-1])
        second = Fetcher(broker)
        await asyncio.sleep(20.0)
        assert ALL[-1] in first.owned
        await asyncio.sleep(1.5)
        assert shares(first, second) == [6, 6]
        await first.gone()
        await second.gone()

    run_virtually(play())


def test_what_a_fetcher_still_runs_after_its_connection_was_lost_is_left_to_it() -> None:
    async def play() -> None:
        broker = MemoryBroker()
        first, second = Fetcher(broker), Fetcher(broker)
        await asyncio.sleep(1.0)
        mine = first.owned
        running = mine[:2]
        for queue in running:
            first.run_job(queue)
        await first.lose_connection()
        assert first.owned == []
        for _ in range(100):
            await asyncio.sleep(0.1)
            assert not set(second.owned) & set(running), "two would ask the same host"
        assert shares(first, second) == [6, 6]
        assert first.owned == mine
        await first.gone()
        await second.gone()

    run_virtually(play())


@pytest.mark.parametrize("waits", list(itertools.permutations((0.0, 1.2, 5.0))))
def test_after_a_restart_of_the_broker_each_takes_what_it_had(waits: tuple[float, ...]) -> None:
    """Each has the results of jobs that the broker hands out again."""

    async def play() -> None:
        broker = MemoryBroker()
        fetchers = [Fetcher(broker) for _ in range(3)]
        await asyncio.sleep(1.0)
        before = [fetcher.owned for fetcher in fetchers]
        restart = asyncio.gather(*map(Fetcher.lose_connection, fetchers, waits))
        for _ in range(70):
            await asyncio.sleep(0.1)
            assert all(set(fetcher.owned) <= set(mine) for fetcher, mine in zip(fetchers, before, strict=True))
        await restart
        assert [fetcher.owned for fetcher in fetchers] == before
        for fetcher in fetchers:
            await fetcher.gone()

    run_virtually(play())


def test_who_does_not_come_back_after_a_restart_of_the_broker_is_replaced() -> None:
    async def play() -> None:
        broker = MemoryBroker()
        first, second = Fetcher(broker), Fetcher(broker)
        await asyncio.sleep(1.0)
        await second.gone()
        await first.lose_connection()
        await asyncio.sleep(12.0)
        assert shares(first) == [12]
        await first.gone()

    run_virtually(play())


def test_what_runs_without_a_lock_that_another_has_by_now_keeps_nobody_from_their_share() -> None:
    async def play() -> None:
        broker = MemoryBroker()
        first = Fetcher(broker)
        await asyncio.sleep(1.0)
        second = Fetcher(broker)
        second.run_job(ALL[0])
        await asyncio.sleep(3.0)
        assert len(first.owned) + len(second.owned) == 12
        second.end_jobs()
        await asyncio.sleep(3.0)
        assert shares(first, second) == [6, 6]
        await first.gone()
        await second.gone()

    run_virtually(play())


def test_who_stops_gives_each_shard_up_as_soon_as_it_is_idle() -> None:
    async def play() -> None:
        broker = MemoryBroker()
        first, second = Fetcher(broker), Fetcher(broker)
        await asyncio.sleep(1.0)
        busy = first.owned[0]
        first.run_job(busy)
        first.stop.set()
        await asyncio.sleep(0.5)
        assert first.owned == [busy]
        assert second.owned == [queue for queue in ALL if queue != busy]
        first.end_jobs()
        await asyncio.sleep(0.5)
        assert not first.owned
        assert second.owned == ALL
        await first.gone()
        await second.gone()

    run_virtually(play())


def make_mute(fetcher: Fetcher) -> None:
    """Have it say nothing any more, as if its event loop starved; its session stands."""

    async def publish(publication: Publication) -> None:
        await asyncio.Event().wait()

    assert isinstance(fetcher.session, MemorySession)
    fetcher.session.publish = publish  # type: ignore[method-assign]


def test_who_is_silent_keeps_its_shards_for_as_long_as_its_session_stands(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def play() -> None:
        broker = MemoryBroker()
        first, second = Fetcher(broker), Fetcher(broker)
        await asyncio.sleep(1.0)
        asked = count_locks(second)
        make_mute(first)
        await asyncio.sleep(60.0)
        assert shares(first, second) == [6, 6]
        assert not [name for name in asked if name.endswith(".owner")], "no lock is tried that can't be had"
        assert "is gone" not in caplog.text
        await first.gone()
        await asyncio.sleep(6.0)
        assert shares(second) == [12]
        await second.gone()

    run_virtually(play())


def count_locks(fetcher: Fetcher) -> list[str]:
    """Return a list of the locks that it asks for from now on."""
    assert isinstance(fetcher.session, MemorySession)
    lock, asked = fetcher.session.lock, list[str]()

    async def counting(name: str) -> bool:
        asked.append(name)
        return await lock(name)

    fetcher.session.lock = counting  # type: ignore[method-assign]
    return asked


def test_a_fetcher_of_an_earlier_version_is_gone_when_it_is_silent() -> None:
    """Its queue does not bear its name; fields of a later version are left out."""

    async def play() -> None:
        broker = MemoryBroker()
        fetcher = Fetcher(broker)
        await asyncio.sleep(1.0)
        assert fetcher.session is not None
        said = b'{"fetcher": "0123abcd", "owned": [], "shards": 12, "more": 1}'
        for _ in range(5):
            await fetcher.session.publish(Publication("", said, FETCHERS, "fetcher.hello"))
            await asyncio.sleep(1.0)
        assert len(fetcher.owned) == 6
        await asyncio.sleep(6.0)
        assert shares(fetcher) == [12]
        await fetcher.gone()

    run_virtually(play())


def test_a_fetcher_whose_last_session_the_broker_still_has_waits_for_its_end() -> None:
    async def play() -> None:
        broker = MemoryBroker()
        async with broker.connect(TOPOLOGY) as before:
            fetcher = Fetcher(broker)
            assert await before.lock(fetcher.shards.name)
            await asyncio.sleep(10.0)
            assert fetcher.owned == []
        await asyncio.sleep(3.0)
        assert shares(fetcher) == [12]
        await fetcher.gone()

    run_virtually(play())


def test_the_lease_is_renewed_with_each_beat_and_runs_out_when_the_process_stands_still() -> None:
    async def play() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        broker = MemoryBroker()
        fetcher = Fetcher(broker)
        assert not fetcher.shards.may_leave(ALL[0]), "it owns nothing yet"
        for _ in range(100):
            await asyncio.sleep(1.0)
            assert fetcher.lease.is_certain(loop.time())
            assert fetcher.shards.may_leave(ALL[0])
        loop.jump(14.0)
        assert not fetcher.lease.is_certain(loop.time() + 1.0)
        loop.jump(1.1)
        assert not fetcher.lease.is_certain(loop.time())
        asking = Asking(fetcher)
        assert asking.waits()
        while not fetcher.lease.is_certain(loop.time()):
            await asyncio.sleep(0.1)
        assert asking.answer(), "the broker has answered: the locks stand"
        loop.jump(16.0)
        asking = Asking(fetcher)
        assert asking.waits()
        broker.drop_connections()
        await fetcher.gone()
        assert not asking.answer(), "the locks were lost meanwhile"

    run_virtually(play())


class Asking:
    """A worker thread that asks whether a request may leave."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._answers: list[bool] = []
        self._thread = threading.Thread(target=lambda: self._answers.append(fetcher.shards.may_leave(ALL[0])))
        self._thread.start()

    def answer(self) -> bool:
        self._thread.join(5)
        return self._answers[0]

    def waits(self) -> bool:
        self._thread.join(0.1)
        return self._thread.is_alive()


def make_deaf(fetcher: Fetcher) -> None:
    assert isinstance(fetcher.session, MemorySession)
    fetcher.session.listening[FETCHERS] = [lambda body: None]


def test_who_does_not_hear_the_others_takes_nothing_of_theirs_and_finds_in_when_it_does() -> None:
    async def play() -> None:
        broker = MemoryBroker()
        first = Fetcher(broker)
        await asyncio.sleep(1.0)
        make_deaf(first)
        deaf = Fetcher(broker)
        await asyncio.sleep(0.1)
        make_deaf(deaf)
        await asyncio.sleep(20.0)
        assert (first.owned, deaf.owned) == (ALL, [])
        await deaf.gone()
        second = Fetcher(broker)
        await asyncio.sleep(1.0)
        assert second.owned == []
        await first.gone()
        await asyncio.sleep(6.0)
        assert shares(second) == [12]
        await second.gone()

    run_virtually(play())


def test_what_is_said_in_another_tongue_is_passed_over_and_another_number_of_shards_is_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play() -> None:
        broker = MemoryBroker()
        fetcher = Fetcher(broker)
        await asyncio.sleep(1.0)
        assert fetcher.session is not None
        for said in (
            b"\xff",
            b"[]",
            b"{}",
            b'{"fetcher": "x", "owned": 7}',
        ):
            await fetcher.session.publish(Publication("", said, FETCHERS, "fetcher.hello"))
        assert shares(fetcher) == [12]
        other = b'{"fetcher": "x", "owned": [], "leaving": true, "is_new": true, "shards": 16}'
        await fetcher.session.publish(Publication("", other, FETCHERS, "fetcher.hello"))
        assert "another fetcher counts 16 shards and this one 12" in caplog.text
        await asyncio.sleep(1.0)
        assert shares(fetcher) == [12], "who leaves gets nothing"
        await fetcher.gone()

    run_virtually(play())
