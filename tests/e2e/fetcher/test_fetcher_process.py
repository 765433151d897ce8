"""A fetcher process: it is stopped, killed, slowed down by the next stage, looked into, and it works for long."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter

import pytest

from local.servers import Servers
from services.fetcher.http.network import RESOLVERS
from shared.wire.outcomes import Outcome
from tests.e2e.broker_control import BrokerControl
from tests.e2e.fetcher.counting_server import counting_server
from tests.e2e.fetcher.fetcher_bench import Queues, hanging_jobs, make_job, running_fetcher, until

pytestmark = pytest.mark.e2e


async def test_on_sigterm_what_runs_is_finished_and_what_waits_goes_back(amqp_url: str) -> None:
    queues = Queues(amqp_url)
    with counting_server() as server, running_fetcher(amqp_url) as fetcher:
        jobs = hanging_jobs(server.url, 500)
        await queues.publish(*jobs)
        await until(lambda: server.hanging == 100, "100 fetches under way")
        fetcher.process.send_signal(signal.SIGTERM)
        await queues.until_count("fetcher.00", 400)
        server.release()
        assert await asyncio.to_thread(fetcher.process.wait, 60) == 0
        results = await queues.results(100)
        asked = {f"{server.url}{path}" for path in server.requests}
        assert (len(asked), server.most_requests()) == (100, 1)
        assert Counter(result.url for result in results) == Counter(asked)
        assert {result.outcome for result in results} == {Outcome.FETCHED}
        left = await queues.jobs("fetcher.00", 400)
        assert sorted([job.url for job in left] + [result.url for result in results]) == sorted(job.url for job in jobs)


async def test_a_fetcher_that_is_killed_leaves_its_jobs_to_the_next(amqp_url: str) -> None:
    queues = Queues(amqp_url)
    with counting_server() as server:
        with running_fetcher(amqp_url) as fetcher:
            await queues.publish(*hanging_jobs(server.url, 300))
            await until(lambda: server.hanging == 100, "100 fetches under way")
            fetcher.kill()
        server.release()
        with running_fetcher(amqp_url) as successor:
            results = await queues.results(300)
            assert sorted(result.feed_id for result in results) == list(range(300))
            await queues.until_count("fetcher.00", 0)
            await successor.until_idle()
            assert Counter(server.requests.values()) == {1: 200, 2: 100}
            assert await successor.stop() == 0
        await queues.until_count("fetcher.00", 0)


async def test_while_the_next_stage_has_a_backlog_no_jobs_are_taken(amqp_url: str) -> None:
    queues = Queues(amqp_url)
    settings = {"FEEDMILL_WRITER_HIGH_WATER": "40", "FEEDMILL_FETCHER_PREFETCH": "20", "FEEDMILL_FETCH_THREADS": "20"}
    with counting_server() as server, running_fetcher(amqp_url, **settings) as fetcher:
        first = [make_job(f"{server.url}/first/{n}", n) for n in range(40)]
        await queues.publish(*first)
        said = await fetcher.until_said("taking no jobs until the next stage has caught up")
        assert (said["queue"], said["high_water"]) == ("enricher, writer", 40)
        await fetcher.until_said("taking no more for now")
        assert await fetcher.metric("feedmill_backpressure") == 1
        await queues.publish(*hanging_jobs(server.url, 100, first=40))
        await asyncio.sleep(2.5)  # two looks at the next stage
        assert await queues.count("fetcher.00") == 100
        assert not server.hanging

        await queues.take("writer", 10)
        await asyncio.sleep(1.5)
        assert await fetcher.metric("feedmill_backpressure") == 1, "30 are more than half"
        await queues.take("writer", 10)
        await fetcher.until_said("taking jobs again")
        await until(lambda: server.hanging == 20, "20 fetches under way")
        assert await fetcher.metric("feedmill_backpressure") == 0

        filler = [make_job(f"{server.url}/filler/{n}", n) for n in range(40)]
        await queues.put("writer", *filler)  # nobody reads it
        await fetcher.until_said("taking no more for now", 2)
        server.release()  # what was in hand still comes
        await queues.until_count("writer", 20 + 20 + 40)
        await queues.until_count("fetcher.00", 80)
        await fetcher.until_idle()
        assert server.most_requests() == 1
        assert await fetcher.stop() == 0, "while shut"
        await queues.until_count("fetcher.00", 80)


async def test_backpressure_stands_after_a_loss_of_the_connection_and_ends_all_the_same(
    amqp_url: str, servers: Servers
) -> None:
    queues, control = Queues(amqp_url), BrokerControl(servers)
    with counting_server() as server, running_fetcher(amqp_url, FEEDMILL_WRITER_HIGH_WATER="10") as fetcher:
        await fetcher.until_said("consuming")
        await queues.put("writer", *(make_job(f"{server.url}/filler/{n}", n) for n in range(10)))
        await fetcher.until_said("taking no more for now")
        assert await asyncio.to_thread(control.close_connections, amqp_url, kill=True) >= 2
        await fetcher.until_said("the session with the broker was lost, connecting anew")
        await queues.publish(*(make_job(f"{server.url}/{n}", n) for n in range(5)))
        await queues.take("writer", 10)
        await queues.until_count("writer", 5)
        assert await fetcher.stop() == 0


async def test_the_board_is_shown_while_fetches_hang_and_shows_no_credentials(amqp_url: str) -> None:
    queues = Queues(amqp_url)
    with counting_server() as server, running_fetcher(amqp_url) as fetcher:
        await fetcher.until_said("consuming")
        url = server.url.replace("http://", "http://user:secret@")
        await queues.publish(*(make_job(f"{url}/hang/{n}?token=secret", n, f"host-{n % 25}") for n in range(50)))
        await until(lambda: server.hanging == 50, "50 fetches under way")
        shown = (await fetcher.get("/debug/scoreboard")).text
        fetcher.process.send_signal(signal.SIGUSR1)
        dumped = await fetcher.until_said("scoreboard dump")
        page = json.loads(shown)
        for dump in (page, dumped):
            assert (dump["summary"]["active"], dump["summary"]["held"]) == (50, 0)
            assert {"lock_waited_ms", "lock_longest_ms"} <= dump["summary"].keys()
            assert {(group["group"], group["active"]) for group in dump["groups"]} == {
                (f"host-{n}", 2) for n in range(25)
            }
            tasks = [thread["task"] for thread in dump["threads"]]
            bare = server.url.removeprefix("http://")
            assert sorted(tasks) == sorted(f"feed {n} http://***@{bare}/hang/{n}?token=***" for n in range(50))
        assert set(page) <= set(dumped)
        assert "secret" not in shown + str(fetcher.said)
        server.release()
        await queues.until_count("writer", 50)
        assert await fetcher.stop() == 0
        assert "secret" not in str(fetcher.said)


async def test_thousands_of_fetches_half_of_them_failing_leave_nothing_behind(amqp_url: str) -> None:
    queues = Queues(amqp_url)
    settings = {"FEEDMILL_MAX_RETRIES": "0", "FEEDMILL_CONNECT_FAILURE_SECONDS": "0.1"}
    with counting_server() as server, running_fetcher(amqp_url, **settings) as fetcher:
        urls = [
            *[f"{server.url}/good/{{}}"] * 4,
            "http://127.0.0.1:1/refused/{}",
            f"{server.url}/garbage/{{}}",
            f"{server.url}/mute/{{}}",
            "http://nowhere.invalid/{}",
        ]
        # Only who is never answered is waited for a second: the others have the time that a busy machine takes.
        limits = {url: {"timeout_seconds": 1} if "/mute/" in url else {} for url in urls}
        held: list[tuple[int, int, int]] = []
        for first, last in ((0, 500), (500, 2000)):
            await queues.publish(
                *(
                    make_job(urls[n % 8].format(n), n, f"group-{n % 200}", source_config=limits[urls[n % 8]])
                    for n in range(first, last)
                )
            )
            await queues.until_count("writer", last)
            await fetcher.until_idle()
            held.append((fetcher.threads(), fetcher.descriptors(), fetcher.resident_kilobytes()))
        (threads, descriptors, kilobytes), (later_threads, later_descriptors, later_kilobytes) = held
        assert later_threads <= threads + RESOLVERS  # they are started when they are needed
        assert later_descriptors <= descriptors + 4
        assert later_kilobytes <= kilobytes + 30_000
        outcomes = Counter(result.outcome for result in await queues.look_at_results())
        assert outcomes[Outcome.FETCHED] == 1000
        assert outcomes.total() == 2000
        assert await fetcher.stop() == 0
