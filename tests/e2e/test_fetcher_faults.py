"""A fetcher whose broker fails it: nothing lost, nothing leaked, no feed asked for more often than need be."""

from __future__ import annotations

import asyncio

import pytest

from services.cli.servers import Servers
from tests.e2e.broker_control import BrokerControl
from tests.e2e.counting_server import counting_server
from tests.e2e.fetcher_bench import Queues, hanging_jobs, running_fetcher, until

pytestmark = pytest.mark.e2e


@pytest.fixture
def control(servers: Servers) -> BrokerControl:
    return BrokerControl(servers)


async def test_connections_lost_again_and_again_lose_no_result_and_leak_nothing(
    amqp_url: str, control: BrokerControl
) -> None:
    queues = Queues(amqp_url)
    with counting_server() as server, running_fetcher(amqp_url) as fetcher:
        await fetcher.until_said("consuming")
        threads, descriptors = fetcher.threads(), fetcher.descriptors()
        await queues.publish(*hanging_jobs(server.url, 100))
        await until(lambda: server.hanging == 100, "100 fetches under way")
        for n in range(5):
            assert await asyncio.to_thread(control.close_connections, amqp_url, kill=n % 2 == 1) == 2
            await fetcher.until_said("consuming", 2 + n)
        server.release()
        results = await queues.results(100)
        assert sorted(result.feed_id for result in results) == list(range(100))
        await queues.until_count("fetcher", 0)
        await fetcher.until_idle()
        assert server.most_requests() == 1
        await until(lambda: fetcher.threads() <= threads + 2, "no thread more than before")
        await until(lambda: fetcher.descriptors() <= descriptors + 4, "no descriptor more than before")
        assert await fetcher.stop() == 0
