"""Fetchers at full load: restarted one after the other, frozen, or merely too busy to be heard."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal

import pytest

from tests.e2e.fetcher.counting_server import SLOW_SECONDS, counting_server
from tests.e2e.fetcher.fetcher_bench import Queues, running_fetcher, until
from tests.e2e.fetcher.test_fetcher_shards import SETTINGS, TOPOLOGY, jobs, owned, until_shared

pytestmark = pytest.mark.e2e

BUSY = SETTINGS | {"FEEDMILL_FETCH_THREADS": "64", "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": "0.2"}


async def test_rolling_restarts_under_load_drop_no_running_job(amqp_url: str) -> None:
    queues = Queues(amqp_url, TOPOLOGY)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(counting_server())
        fetchers = [stack.enter_context(running_fetcher(amqp_url, **BUSY)) for _ in range(2)]
        await until_shared(fetchers, 6, 6)
        work = jobs(server.url, hosts=120, each=8)
        await queues.publish(*work)
        for n in range(4):
            goal = min(len(server.requests) + 100, len(work) - 100)
            await until(lambda goal=goal: len(server.requests) >= goal, "work under way")  # type: ignore[misc]
            fetchers.append(stack.enter_context(running_fetcher(amqp_url, **BUSY)))
            leaving = fetchers.pop(0)
            assert await leaving.stop() == 0
            assert not leaving.count_said("the session with the broker was lost, connecting anew")
            assert not [line for line in leaving.said if "unsettled" in line["message"]], n
            assert not [line for line in leaving.said if "were not finished" in line["message"]], n
        await queues.until_count("writer", len(work))
        assert server.most_requests() == 1
        for fetcher in fetchers:
            await fetcher.until_said("started")  # before that it may not hear a signal yet
        assert [await fetcher.stop() for fetcher in fetchers] == [0, 0]


async def test_a_fetcher_that_was_frozen_asks_no_host_that_another_owns_by_now(amqp_url: str) -> None:
    """Its jobs were called and wait for a thread when it stops; the broker misses its heartbeats meanwhile."""
    queues = Queues(amqp_url, TOPOLOGY)
    busy = SETTINGS | {"FEEDMILL_FETCH_THREADS": "4", "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": "3"}
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(counting_server())
        frozen = stack.enter_context(running_fetcher(f"{amqp_url}?heartbeat=2", **busy))
        await until_shared([frozen], 12)
        work = jobs(server.url, hosts=20, each=2)
        await queues.publish(*work)
        await until(lambda: len(server.requests) >= 6, "work under way")
        await asyncio.sleep(SLOW_SECONDS / 3)  # what has ended by now is acknowledged, and four requests are under way
        os.kill(frozen.pid, signal.SIGSTOP)
        other = stack.enter_context(running_fetcher(amqp_url, **busy | {"FEEDMILL_FETCH_THREADS": "32"}))

        async def took_over() -> bool:
            return len(await owned(other)) == 12

        await until(took_over, "all shards at the other", every=0.2)
        before = len(server.requests) + 10
        await until(lambda: len(server.requests) >= before, "the other at work")
        os.kill(frozen.pid, signal.SIGCONT)
        await queues.until_count("writer", len(work))
        assert await frozen.stop() == 0
        assert await other.stop() == 0
        # What was under way when it froze may have been asked a second time, and nothing else.
        assert sum(count - 1 for count in server.requests.values()) <= 4
        for host, times in server.arrivals.items():
            asked = sorted(times)
            assert all(after - before >= 2.5 for before, after in itertools.pairwise(asked)), (host, asked)
