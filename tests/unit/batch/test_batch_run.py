"""The loop of a batch, with a handler and a registry that are played, in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from services.batch.results import ResultPublisher
from services.batch.runner import STAGE, Run
from services.batch.summary import Summary
from services.batch.window import Window
from services.fetcher.retries import RetryRules, decide_retry
from shared.broker.port import Outgoing
from shared.broker.prefetch import PrefetchLimit
from shared.broker.topology import build_topology
from shared.errors import BrokerUnavailable, DatabaseUnavailable, NackAndRequeue
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched
from tests.factories import NOW, make_job, make_result
from tests.fakes.memory_broker import MemoryBroker
from tests.fakes.virtual_time import run_virtually

RULES = RetryRules(max_retries=1, retry_delay_seconds=20.0, claim_seconds=3600.0)
DELAY = 20.0


class Stage:
    """Everything around a run. `answers` gives the outcomes of each feed in turn; `fetched` if it says nothing."""

    def __init__(self, feeds: int, *, size: int = 8, groups: int = 4) -> None:
        self.unclaimed = [make_job(feed_id=n, group=f"host-{n % groups}") for n in range(feeds)]
        self.answers: dict[int, list[Outcome | str]] = {}
        self.asked: list[tuple[float, int, int]] = []
        self.results: list[FeedFetched] = []
        self.released: list[tuple[float, list[FetchFeed]]] = []
        self.claims: list[int] = []
        self.seconds = 3600.0
        self.stop = asyncio.Event()
        self.prefetch_limit = PrefetchLimit(size)
        self.summary = Summary()
        self.most_in_memory = 0
        self.fetch_seconds = 1.0
        self.away = 0
        self.window = Window(size, lambda _: 2)

    async def take(self, limit: int) -> tuple[list[FetchFeed], int]:
        await asyncio.sleep(0)
        if self.away:
            self.away -= 1
            raise DatabaseUnavailable("away")
        jobs, self.unclaimed = self.unclaimed[:limit], self.unclaimed[limit:]
        self.claims.append(len(jobs))
        return jobs, len(jobs)

    async def handle(self, batch: Sequence[FetchFeed]) -> Sequence[Outgoing]:
        (job,) = batch
        self.most_in_memory = max(self.most_in_memory, len(self.window))
        answer = next(iter(self.answers.get(job.feed_id, [])), Outcome.FETCHED)
        if job.feed_id in self.answers:
            del self.answers[job.feed_id][:1]
        if answer == "nack":
            raise NackAndRequeue("no room")
        if answer == "bug":
            raise ZeroDivisionError
        if answer == "requeue":
            assert STAGE.fast_delay is not None
            return [Outgoing.into(STAGE.fast_delay, job)]
        assert isinstance(answer, Outcome)
        self.asked.append((asyncio.get_running_loop().time(), job.feed_id, job.attempt))
        await asyncio.sleep(self.fetch_seconds)
        found = make_result(feed_id=job.feed_id, claim_id=job.claim_id, outcome=answer, attempt=job.attempt)
        result, again = decide_retry(job, found, RULES, NOW)
        outgoing = [Outgoing(result, FeedFetched.KIND)]
        return outgoing if again is None else [*outgoing, Outgoing.into(STAGE.retry, again)]

    async def publish(self, result: FeedFetched, until: asyncio.Event) -> None:
        self.results.append(result)

    async def play(self) -> list[FetchFeed]:
        run = Run(
            self,
            self.handle,
            self.publish,
            self.window,
            self.prefetch_limit,
            delay_seconds=DELAY,
            drain_seconds=335.0,
            summary=self.summary,
        )
        await run.run(self.stop)
        return [job for _, jobs in self.released for job in jobs]

    async def release(self, jobs: Sequence[FetchFeed]) -> bool:
        self.released.append((asyncio.get_running_loop().time(), list(jobs)))
        return True

    def said_of(self, feed_id: int) -> list[tuple[Outcome, bool]]:
        return [(found.outcome, found.final) for found in self.results if found.feed_id == feed_id]

    def times_of(self, feed_id: int) -> list[float]:
        return [round(at, 3) for at, asked, _ in self.asked if asked == feed_id]


def test_all_is_claimed_bit_by_bit_and_fetched_once() -> None:
    stage = Stage(feeds=100)
    assert run_virtually(stage.play()) == []
    assert Counter(found.feed_id for found in stage.results) == Counter(range(100))
    assert stage.summary.claimed == 100
    assert stage.most_in_memory <= 8
    assert stage.claims[-1] == 0


def test_nothing_due_is_the_end() -> None:
    stage = Stage(feeds=0)
    assert run_virtually(stage.play()) == []
    assert (stage.summary, stage.claims) == (Summary(), [0])


def test_a_soft_error_is_tried_again_once_when_the_others_are_done() -> None:
    stage = Stage(feeds=200)
    stage.answers = {0: [Outcome.SOFT_ERROR] * 9, 1: [Outcome.SOFT_ERROR]}
    run_virtually(stage.play())
    assert stage.said_of(0) == [(Outcome.SOFT_ERROR, False), (Outcome.GAVE_UP, True)]
    assert stage.said_of(1) == [(Outcome.SOFT_ERROR, False), (Outcome.FETCHED, True)]
    assert [feed_id for _, feed_id, _ in stage.asked[200:]] == [0, 1]
    assert (stage.summary.retried, stage.summary.outcomes["soft_error"]) == (2, 2)


def test_between_a_failure_and_its_retry_there_is_a_pause_in_a_short_run_too() -> None:
    stage = Stage(feeds=1)
    stage.answers = {0: [Outcome.SOFT_ERROR]}
    run_virtually(stage.play())
    assert stage.times_of(0) == [0.0, 1.0 + DELAY]


def test_a_feed_whose_host_stays_down_is_said_to_be_skipped_and_one_that_failed_is_given_up() -> None:
    stage = Stage(feeds=2)
    stage.answers = {0: [Outcome.SKIPPED] * 2, 1: [Outcome.SOFT_ERROR, Outcome.SKIPPED]}
    run_virtually(stage.play())
    assert stage.said_of(0) == [(Outcome.SKIPPED, False), (Outcome.SKIPPED, True)]
    assert stage.said_of(1) == [(Outcome.SOFT_ERROR, False), (Outcome.GAVE_UP, True)]
    assert (stage.summary.skipped, stage.summary.retried) == (1, 0)


def test_a_feed_that_was_skipped_and_then_fails_has_its_retry_as_well() -> None:
    stage = Stage(feeds=1)
    stage.answers = {0: [Outcome.SKIPPED, Outcome.SOFT_ERROR, Outcome.SOFT_ERROR]}
    run_virtually(stage.play())
    outcomes = [outcome for outcome, _ in stage.said_of(0)]
    assert outcomes == [Outcome.SKIPPED, Outcome.SOFT_ERROR, Outcome.GAVE_UP]


def test_a_job_that_cannot_start_yet_waits_in_memory_and_comes_again() -> None:
    stage = Stage(feeds=3)
    stage.answers = {0: ["requeue", "requeue"], 1: ["nack"]}
    run_virtually(stage.play())
    assert [stage.times_of(n) for n in range(3)] == [[2 * DELAY], [0.0], [0.0]]
    assert stage.summary.outcomes == {"fetched": 3}


def test_a_long_run_does_not_let_the_claim_of_a_retry_run_out() -> None:
    stage = Stage(feeds=400, size=4, groups=1)  # at two a second: over in 200 s
    stage.seconds = 100.0
    stage.answers = {0: [Outcome.SOFT_ERROR]}
    run_virtually(stage.play())
    first, again = stage.times_of(0)
    assert first + 50.0 <= again <= first + 55.0


def test_of_very_many_retries_the_oldest_do_not_wait_for_the_end() -> None:
    stage = Stage(feeds=300, size=4)
    stage.answers = {n: [Outcome.SOFT_ERROR] for n in range(300)}
    run_virtually(stage.play())
    retries = [at for at, _, attempt in stage.asked if attempt == 1]
    firsts = [at for at, _, attempt in stage.asked if attempt == 0]
    assert (len(firsts), len(retries)) == (300, 300)
    assert min(retries) < max(firsts)


def test_a_job_that_meets_a_bug_spoils_nothing_and_its_claim_is_left_to_run_out() -> None:
    stage = Stage(feeds=5)
    stage.answers = {2: ["bug"]}
    assert run_virtually(stage.play()) == []
    assert (len(stage.results), stage.summary.broken) == (4, 1)


def test_a_database_that_is_away_is_waited_for() -> None:
    stage = Stage(feeds=20)
    stage.away = 5
    run_virtually(stage.play())
    assert len(stage.results) == 20


def test_at_a_prefetch_limit_of_zero_nothing_is_claimed() -> None:
    stage = Stage(feeds=20)

    async def play() -> None:
        stage.prefetch_limit.set("backpressure", 0)
        playing = asyncio.create_task(stage.play())
        await asyncio.sleep(100.0)
        assert (stage.claims, stage.asked) == ([], [])
        stage.prefetch_limit.set("backpressure", 8)
        assert await playing == []

    run_virtually(play())
    assert min(at for at, _, _ in stage.asked) == 100.0
    assert len(stage.results) == 20


def test_a_job_whose_time_comes_at_a_prefetch_limit_of_zero_waits_without_spinning() -> None:
    stage = Stage(feeds=1)
    stage.answers = {0: ["requeue"]}

    async def play() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(10.0, stage.prefetch_limit.set, "backpressure", 0)
        loop.call_later(100.0, stage.prefetch_limit.set, "backpressure", 8)
        await stage.play()

    run_virtually(play())  # virtual time stands still while a task spins
    assert stage.times_of(0) == [100.0]


def test_on_stop_running_jobs_finish_and_the_other_claims_are_released() -> None:
    stage = Stage(feeds=50)
    stage.answers = {0: [Outcome.SOFT_ERROR], 1: ["requeue"]}

    async def play() -> list[FetchFeed]:
        playing = asyncio.create_task(stage.play())
        await asyncio.sleep(2.5)
        stage.stop.set()
        return await playing

    left = run_virtually(play())
    answered = {found.feed_id for found in stage.results if found.final}
    assert all(at <= 2.5 for at, _, _ in stage.asked)
    assert len({found.feed_id for found in stage.results}) == len(stage.asked)
    assert {job.feed_id for job in left} == set(range(stage.summary.claimed)) - answered
    assert {0, 1} <= {job.feed_id for job in left}
    assert stage.summary.claimed < 50


def test_jobs_that_have_not_begun_are_released_before_running_ones_have_ended() -> None:
    stage = Stage(feeds=50, groups=1)
    stage.fetch_seconds = 200.0

    async def play() -> list[FetchFeed]:
        asyncio.get_running_loop().call_later(2.0, stage.stop.set)
        return await stage.play()

    left = run_virtually(play())
    ((at, jobs),) = stage.released
    assert (2.0 <= at <= 4.0, len(jobs), len(left)) == (True, 6, 6)
    assert stage.summary.outcomes == {"fetched": 2}


def test_the_claim_of_a_job_that_does_not_end_in_time_runs_out() -> None:
    stage = Stage(feeds=4)
    stage.fetch_seconds = 1000.0

    async def play() -> float:
        asyncio.get_running_loop().call_later(2.0, stage.stop.set)
        assert await stage.play() == []
        return asyncio.get_running_loop().time()

    assert 335.0 <= run_virtually(play()) <= 340.0
    assert stage.results == []


TOPOLOGY = build_topology(fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=1)


def test_a_publisher_waits_for_a_broker_that_is_away_until_its_event_is_set() -> None:
    async def play() -> None:
        broker, never, stop = MemoryBroker(), asyncio.Event(), asyncio.Event()
        publisher = ResultPublisher(broker, TOPOLOGY)
        item = Outgoing(make_result(), FeedFetched.KIND).to_publication()
        async with publisher.open(stop):
            await publisher.publish(item, until=never)
            broker.up = False
            broker.drop_connections()
            waiting = asyncio.create_task(publisher.publish(item, until=never))
            await asyncio.sleep(60.0)
            assert not waiting.done()
            assert publisher.check() == "no session with the broker"
            broker.up = True
            await waiting
            assert publisher.check() is None
            broker.up = False
            broker.drop_connections()
            enough = asyncio.Event()
            waiting = asyncio.create_task(publisher.publish(item, until=enough))
            await asyncio.sleep(1.0)
            enough.set()
            try:
                await waiting
            except BrokerUnavailable:
                pass
            else:
                raise AssertionError("it was published to nobody")
            assert not stop.is_set()
        assert len(broker.bodies("writer")) == 2

    run_virtually(play())
