"""A fetcher whose broker fails it: nothing lost, nothing leaked, no feed asked for twice without need."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from local.servers import Servers
from shared.broker.port import Publication
from tests.e2e.broker_control import BrokerControl
from tests.e2e.fetcher.counting_server import counting_server
from tests.e2e.fetcher.fetcher_bench import (
    LOOK_SECONDS,
    TOPOLOGY,
    Queues,
    hanging_jobs,
    make_job,
    running_fetcher,
    until,
)
from tests.factories import make_result

pytestmark = pytest.mark.e2e

ROOMY = {"FEEDMILL_FETCH_THREADS": "300", "FEEDMILL_MAX_ACTIVE": "300"}
"""Threads enough to fetch everything again while the first fetches still hang, if somebody were to try."""


@pytest.fixture
def control(servers: Servers) -> BrokerControl:
    return BrokerControl(servers)


async def test_connections_lost_again_and_again_repeat_no_fetch_lose_no_result_and_leak_nothing(
    amqp_url: str, control: BrokerControl
) -> None:
    queues = Queues(amqp_url)
    with counting_server() as server, running_fetcher(amqp_url, **ROOMY) as fetcher:
        await fetcher.until_said("consuming")
        threads, descriptors = fetcher.threads(), fetcher.descriptors()
        await queues.publish(*hanging_jobs(server.url, 100))
        await until(lambda: server.hanging == 100, "100 fetches under way")
        for n in range(5):
            assert await asyncio.to_thread(control.close_connections, amqp_url, kill=n % 2 == 1) >= 2
            await fetcher.until_said("consuming", 2 + n)
        server.release()
        results = await queues.results(100)
        assert sorted(result.feed_id for result in results) == list(range(100))
        await queues.until_count("fetcher.00", 0)
        await fetcher.until_idle()
        assert server.most_requests() == 1
        await until(lambda: fetcher.threads() <= threads + 2, "no thread more than before")
        await until(lambda: fetcher.descriptors() <= descriptors + 4, "no descriptor more than before")
        assert await fetcher.stop() == 0


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
async def test_a_broker_that_restarts_keeps_what_is_in_every_queue_and_the_fetcher_goes_on(
    amqp_url: str, servers: Servers, control: BrokerControl, kill: bool
) -> None:
    queues, fetcher_stage, writer_stage = Queues(amqp_url), TOPOLOGY.fetcher, TOPOLOGY.writer
    assert fetcher_stage.fast_delay is not None
    with counting_server() as server, running_fetcher(amqp_url) as fetcher:
        await fetcher.until_said("consuming")
        hanging = hanging_jobs(server.url, 100)  # as many as there are threads: what follows has to wait
        await queues.publish(*hanging)
        await until(lambda: server.hanging == 100, "100 fetches under way")
        placed = {
            name: [make_job(f"{server.url}/{name}/{n}", 100 * place + n) for n in range(5)]
            for place, name in enumerate(
                (fetcher_stage.queue, fetcher_stage.fast_delay, fetcher_stage.retry, fetcher_stage.dead), 1
            )
        }
        for name, jobs in placed.items():
            await queues.put(name, *jobs)
        await queues.put(writer_stage.queue, make_result(feed_id=1001))
        await queues.put(writer_stage.retry, make_result(feed_id=1002))
        await queues.put(writer_stage.dead, make_result(feed_id=1003))
        await asyncio.to_thread(control.save_queues)
        await asyncio.to_thread(servers.rabbitmq.kill if kill else servers.rabbitmq.stop)
        server.release()
        await fetcher.until_said("fetch ended", 100)
        await asyncio.to_thread(servers.rabbitmq.start)
        fetched = [*hanging, *(job for name, jobs in placed.items() if name != fetcher_stage.dead for job in jobs)]
        expected = {job.feed_id for job in fetched} | {1001, 1002}

        async def all_there() -> bool:
            # Out of the delay queues at least once: a broker that dies meanwhile may deliver twice.
            results = await queues.look_at_results()
            return {result.feed_id for result in results} == expected

        await until(all_there, "every result", every=LOOK_SECONDS)
        for queue in (fetcher_stage.queue, fetcher_stage.fast_delay, fetcher_stage.retry, writer_stage.retry):
            await queues.until_count(queue, 0)
        assert [job.feed_id for job in await queues.jobs(fetcher_stage.dead, 5)] == [400, 401, 402, 403, 404]
        await queues.until_count(writer_stage.dead, 1)
        await fetcher.until_idle()
        assert max(server.requests[path] for path in server.requests if path.startswith("/hang/")) == 1
        assert server.most_requests() <= 2
        assert await fetcher.stop() == 0


async def test_a_message_held_too_long_costs_the_channel_and_its_fetch_is_not_repeated(
    amqp_url: str, control: BrokerControl
) -> None:
    queues = Queues(amqp_url)
    with (
        counting_server() as server,
        control.setting(consumer_timeout=1000, channel_tick_interval=500),
        running_fetcher(amqp_url, **ROOMY) as fetcher,
    ):
        await fetcher.until_said("consuming")
        await queues.publish(*hanging_jobs(server.url, 10))
        await fetcher.until_said("consuming", 3)
        server.release()
        results = await queues.results(10)
        assert sorted(result.feed_id for result in results) == list(range(10))
        await queues.until_count("fetcher.00", 0)
        assert server.most_requests() == 1
        assert await fetcher.stop() == 0


async def test_a_channel_closed_over_a_result_that_is_too_large_costs_only_that_job(
    amqp_url: str, control: BrokerControl
) -> None:
    queues = Queues(amqp_url)
    with counting_server() as server, control.setting(max_message_size=2_000), running_fetcher(amqp_url) as fetcher:
        await fetcher.until_said("consuming")
        long = make_job(f"{server.url}/hang/{'x' * 600}", 50)
        await queues.publish(*hanging_jobs(server.url, 50), long)
        await until(lambda: server.hanging == 51, "51 fetches under way")
        server.release()
        await queues.until_count(TOPOLOGY.fetcher.dead, 1)
        await fetcher.until_idle()
        await queues.until_count("fetcher.00", 0)
        results: dict[object, int] = {}

        async def have_all_come() -> bool:
            # Of what was on the same channel nobody knows whether it arrived: the writer tells repetitions by their id.
            results.update({result.result_id: result.feed_id for result in await queues.look_at_results()})
            return len(results) >= 50

        await until(have_all_come, "a result of each other job, published again after a pause", every=0.5)
        assert sorted(results.values()) == list(range(50))
        assert server.most_requests() == 1
        assert await fetcher.stop() == 0


@pytest.mark.parametrize("queue", ["fetcher.00", "writer", TOPOLOGY.fetcher.retry])
async def test_a_queue_that_is_deleted_is_declared_anew(amqp_url: str, queue: str) -> None:
    queues = Queues(amqp_url)
    with counting_server() as server, running_fetcher(amqp_url) as fetcher:
        await fetcher.until_said("consuming")
        jobs = hanging_jobs(server.url, 20)
        broken = [make_job("http://127.0.0.1:1/refused", 100 + n) for n in range(5)]  # they go to the retry queue
        await queues.publish(*jobs)
        await until(lambda: server.hanging == 20, "20 fetches under way")
        await queues.delete(queue)
        if queue == "fetcher.00":
            await fetcher.until_said("consuming", 2)
            await queues.publish(*jobs)  # as the scheduler does once the claims have run out
        await queues.publish(*broken)
        server.release()

        async def all_there() -> bool:
            results = await queues.look_at_results()
            return {result.feed_id for result in results} >= {job.feed_id for job in [*jobs, *broken]}

        await until(all_there, "every result", every=LOOK_SECONDS)
        assert server.most_requests() == 1
        assert await fetcher.stop() == 0


async def test_under_a_memory_alarm_results_wait_and_come_exactly_once(amqp_url: str, control: BrokerControl) -> None:
    queues = Queues(amqp_url)
    with counting_server() as server, running_fetcher(amqp_url, **ROOMY) as fetcher:
        await fetcher.until_said("consuming")
        descriptors = fetcher.descriptors()
        await queues.publish(*hanging_jobs(server.url, 100))
        await until(lambda: server.hanging == 100, "100 fetches under way")
        with control.memory_alarm():
            server.release()
            await fetcher.until_said("fetch ended", 100)
            # Now the loss of the connections on top: what was fetched must not be fetched again.
            assert await asyncio.to_thread(control.close_connections, amqp_url, kill=True) >= 2
            await fetcher.until_said("consuming", 2)
            assert await queues.count("writer") == 0
        results = await queues.results(100)
        assert Counter(result.feed_id for result in results) == Counter(range(100))
        await queues.until_count("fetcher.00", 0)
        assert server.most_requests() == 1
        await until(lambda: fetcher.descriptors() <= descriptors + 4, "no descriptor more than before")
        assert await fetcher.stop() == 0


async def test_nonsense_in_the_queue_is_buried_while_fetches_go_on(amqp_url: str) -> None:
    queues = Queues(amqp_url)
    with counting_server() as server, running_fetcher(amqp_url) as fetcher:
        async with queues.session() as session:
            for body in (b"\xff", b"{}", b"[]"):
                await session.publish(Publication("fetcher.00", body, "", "nonsense"))
        await queues.publish(*hanging_jobs(server.url, 5))
        server.release()
        await queues.until_count(TOPOLOGY.fetcher.dead, 3)
        await queues.until_count("writer", 5)
        assert await fetcher.stop() == 0
