"""Several fetcher processes: together as polite as one, whatever becomes of one of them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter

import pytest

from shared.settings import BrokerSettings
from shared.wire.jobs import FetchFeed
from tests.e2e.fetcher.counting_server import SLOW_SECONDS, CountingServer, counting_server
from tests.e2e.fetcher.fetcher_bench import Fetcher, Queues, make_job, running_fetcher, until

pytestmark = pytest.mark.e2e

SHARDS = 12
TOPOLOGY = BrokerSettings(
    fast_delay_seconds=5.0, retry_delay_seconds=2.0, message_retry_seconds=1.0, fetcher_shards=SHARDS
).topology()
INTERVAL_SECONDS = 1.0
TOLERANCE_SECONDS = 0.25
"""For the way from where a request leaves to where its arrival is noted, on a machine that is busy."""

SETTINGS = {
    "FEEDMILL_FETCHER_SHARDS": str(SHARDS),
    "FEEDMILL_FAST_DELAY_SECONDS": "5",
    "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": str(INTERVAL_SECONDS),
    "FEEDMILL_HOST_CONCURRENCY": "2",
    "FEEDMILL_FETCH_THREADS": "16",
}


def jobs(server_url: str, hosts: int, each: int) -> list[FetchFeed]:
    return [
        make_job(f"{server_url}/host/h{host}/{n}", 1000 * host + n, f"h{host}.example")
        for n in range(each)
        for host in range(hosts)
    ]


async def owned(fetcher: Fetcher) -> list[str]:
    page = await fetcher.get("/debug/scoreboard")
    if page.status_code == 404:  # it is not put together yet
        return []
    shards: list[str] = page.json()["shards"]
    return shards


async def until_shared(fetchers: list[Fetcher], *shares: int) -> None:
    """Wait until each shard has one owner, in shares of this size."""

    async def shared() -> bool:
        held = [await owned(fetcher) for fetcher in fetchers]
        every = sorted(itertools.chain(*held))
        return sorted(map(len, held)) == sorted(shares) and every == sorted(TOPOLOGY.fetcher.queues)

    await until(shared, f"shares of {shares}", every=0.2)


def check_manners(server: CountingServer) -> None:
    least = INTERVAL_SECONDS - TOLERANCE_SECONDS
    first = min(itertools.chain(*server.arrivals.values()))
    too_soon = [
        (host, f"{after - before:.3f} s apart, {after - first:.1f} s after the first of all")
        for host, times in server.arrivals.items()
        for before, after in itertools.pairwise(sorted(times))
        if after - before < least
    ]
    assert not too_soon
    assert max(server.most_at_once.values()) <= 2


async def test_three_fetchers_are_as_polite_as_one_while_one_is_killed_and_another_comes(amqp_url: str) -> None:
    queues, work = Queues(amqp_url, TOPOLOGY), list[FetchFeed]()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(counting_server())
        fetchers = [stack.enter_context(running_fetcher(amqp_url, **SETTINGS)) for _ in range(3)]
        await until_shared(fetchers, 4, 4, 4)
        work = jobs(server.url, hosts=8, each=20)
        await queues.publish(*work)
        await until(lambda: len(server.requests) >= 32, "a fifth of the work")
        fetchers[0].kill()
        await until_shared(fetchers[1:], 6, 6)
        await until(lambda: len(server.requests) >= 80, "half of the work")
        fetchers.append(stack.enter_context(running_fetcher(amqp_url, **SETTINGS)))
        await until_shared(fetchers[1:], 4, 4, 4)

        async def ended() -> bool:
            return await queues.count("writer") >= len(work)

        await until(ended, "all results", every=0.5)
        for fetcher in fetchers[1:]:
            await fetcher.until_idle()
        check_manners(server)
        results = {result.feed_id: result.outcome for result in await queues.look_at_results()}
        assert results.keys() == {job.feed_id for job in work}
        asked = Counter(server.requests.values())
        # Only what the one that was killed had under way is asked for a second time: two of each of its hosts at most.
        assert asked[1] + asked[2] == len(work)
        assert asked[2] <= 2 * 8
        for queue in (*TOPOLOGY.fetcher.queues, TOPOLOGY.fetcher.fast_delay, TOPOLOGY.fetcher.dead):
            assert queue is not None
            await queues.until_count(queue, 0)
        assert [await fetcher.stop() for fetcher in fetchers[1:]] == [0, 0, 0]


async def test_a_fetcher_that_stops_leaves_its_shards_one_by_one_and_its_work_to_the_others(amqp_url: str) -> None:
    queues = Queues(amqp_url, TOPOLOGY)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(counting_server())
        fetchers = [stack.enter_context(running_fetcher(amqp_url, **SETTINGS)) for _ in range(2)]
        await until_shared(fetchers, 6, 6)
        work = jobs(server.url, hosts=5, each=10)
        busy = {TOPOLOGY.fetcher.queue_of(job.group) for job in work}
        mine = next(shard for shard in await owned(fetchers[0]) if shard not in busy)
        hanging = next(f"g{n}" for n in range(1000) if TOPOLOGY.fetcher.queue_of(f"g{n}") == mine)
        await queues.publish(make_job(f"{server.url}/hang/1", 99_999, hanging))
        await until(lambda: server.hanging == 1, "a fetch that hangs")
        await queues.publish(*work)
        await until(lambda: len(server.requests) >= 15, "the middle of the work")
        stopping = asyncio.create_task(fetchers[0].stop())

        async def all_but_one() -> bool:
            return len(await owned(fetchers[1])) == SHARDS - 1

        await until(all_but_one, "all shards but that of the fetch that hangs")
        await queues.until_count("writer", len(work))
        assert not stopping.done()
        server.release()
        assert await stopping == 0
        await until_shared(fetchers[1:], SHARDS)
        results = Counter(result.feed_id for result in await queues.look_at_results())
        assert results == Counter([*(job.feed_id for job in work), 99_999])
        check_manners(server)
        assert server.most_requests() == 1
        assert await fetchers[1].stop() == 0


async def test_a_redirect_goes_on_at_the_fetcher_that_owns_the_host_it_leads_to(amqp_url: str) -> None:
    queues = Queues(amqp_url, TOPOLOGY)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(counting_server())
        fetchers = [stack.enter_context(running_fetcher(amqp_url, **SETTINGS)) for _ in range(3)]
        await until_shared(fetchers, 4, 4, 4)
        target = f"{server.url}/host/hub/feed"  # all of one group: the server's own address
        await queues.publish(
            *(make_job(f"{server.url}/from/f{n}/to/{target}?{n}", n, f"from{n}.example") for n in range(12))
        )
        results = await queues.results(12)
        assert {result.final_url for result in results} == {f"{target}?{n}" for n in range(12)}
        assert server.most_requests() == 1
        check_manners(server)
        moved = [await fetcher.metric("feedmill_jobs_moved_on_total") for fetcher in fetchers]
        hub = TOPOLOGY.fetcher.queue_of(server.url.removeprefix("http://"))
        owners = {queue: n for n, fetcher in enumerate(fetchers) for queue in await owned(fetcher)}
        starts = [owners[TOPOLOGY.fetcher.queue_of(f"from{n}.example")] for n in range(12)]
        assert sum(moved) == sum(start != owners[hub] for start in starts) > 0
        assert [await fetcher.stop() for fetcher in fetchers] == [0, 0, 0]


async def test_more_fetchers_than_shards_stand_by_and_step_in(amqp_url: str) -> None:
    settings = {**SETTINGS, "FEEDMILL_FETCHER_SHARDS": "1"}
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(running_fetcher(amqp_url, **settings))
        await first.until_said("consuming")
        second = stack.enter_context(running_fetcher(amqp_url, **settings))
        await second.until_said("standing by: there are as many fetchers as shards without this one")
        assert (await second.get("/readyz")).status_code == 200
        assert await second.metric("feedmill_shards_owned") == 0
        first.kill()
        await second.until_said("consuming")
        assert await second.metric("feedmill_shards_owned") == 1
        assert await second.stop() == 0


def test_the_slow_answers_of_this_test_overlap() -> None:
    """Or else the cap on concurrency would not be met at all."""
    assert SLOW_SECONDS > INTERVAL_SECONDS
