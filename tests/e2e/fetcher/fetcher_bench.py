"""A fetcher process under test, its log, its scoreboard, and the queues of its broker."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import aio_pika
import httpx

from local.demo.demo import SETTINGS
from local.settings import child_environment
from shared.broker.port import Delivery, Outgoing, Session
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import Topology, fetch_routing_key
from shared.settings import BrokerSettings
from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched

TOPOLOGY = BrokerSettings(
    fast_delay_seconds=1.0, retry_delay_seconds=2.0, message_retry_seconds=1.0, fetcher_shards=1
).topology()
PATIENCE_SECONDS = 60.0
"""The time limit for expected events, long enough for a busy machine."""

PATIENT = {
    "FEEDMILL_FETCH_THREADS": "100",
    "FEEDMILL_FETCH_DEADLINE_SECONDS": "120",
    "FEEDMILL_READ_TIMEOUT_SECONDS": "120",
    "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": "0.001",
    "FEEDMILL_FETCHER_SHARDS": "1",
}
"""Requests may hang until a broker has come back. All jobs are in one shard, so that a test can count them."""


class Fetcher:
    """A fetcher process. Its log is read all the time, so that it never waits for us."""

    def __init__(self, **settings: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "services.fetcher"],
            env=child_environment(SETTINGS | PATIENT | settings),
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[dict[str, Any]] = []
        self.noise: list[str] = []
        """Lines that are no JSON: tracebacks and complaints of the interpreter."""
        self._reading = threading.Thread(target=self._read, name="fetcher's log")
        self._reading.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def count_said(self, message: str) -> int:
        return sum(line["message"] == message for line in list(self.said))

    async def until_said(self, message: str, times: int = 1) -> dict[str, Any]:
        """Wait until its log has this message so often; return the last such line."""
        await until(lambda: self.count_said(message) >= times, f"{message!r} to be said")
        return [line for line in list(self.said) if line["message"] == message][-1]

    async def get(self, page: str) -> httpx.Response:
        """Ask its telemetry server."""
        metrics: str = (await self.until_said("started"))["metrics"]
        async with httpx.AsyncClient(trust_env=False, verify=False, timeout=30) as client:
            return await client.get(metrics.replace("/metrics", page))

    async def metric(self, name: str) -> float:
        lines = (await self.get("/metrics")).text.splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))

    async def in_hand(self) -> tuple[int, int]:
        """Return how many jobs are held and how many are active."""
        summary = (await self.get("/debug/scoreboard")).json()["summary"]
        return summary["held"], summary["active"]

    async def until_idle(self) -> None:
        async def idle() -> bool:
            return await self.in_hand() == (0, 0)

        await until(idle, "an empty scoreboard")

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def resident_kilobytes(self) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait(20)

    async def stop(self) -> int:
        """Send SIGTERM, wait for the end, return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self.process.wait, PATIENCE_SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        self._reading.join(20)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def check_quiet(self) -> None:
        """Assert that the log has no traceback and nothing but JSON."""
        assert not self.noise, "".join(self.noise)
        tracebacks = [line["traceback"] for line in self.said if "traceback" in line]
        assert not tracebacks, "".join(tracebacks)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            try:
                self.said.append(json.loads(line))
            except ValueError:
                self.noise.append(line)


@contextmanager
def running_fetcher(amqp_url: str, **settings: str) -> Iterator[Fetcher]:
    fetcher = Fetcher(FEEDMILL_AMQP_URL=amqp_url, **settings)
    try:
        yield fetcher
        fetcher.check_quiet()
    except BaseException as error:
        error.add_note("\n    ".join(["the fetcher said last:", *map(str, fetcher.said[-20:])]))
        raise
    finally:
        fetcher.close()


LOOK_SECONDS = 1.0
"""Between two looks into a queue: each counts as a delivery, and after 100 the broker takes a message for poison."""


async def until(condition: Callable[[], bool | Awaitable[bool]], what: str, every: float = 0.05) -> None:
    async def wait() -> None:
        while True:
            met = condition()
            if met if isinstance(met, bool) else await met:
                return
            await asyncio.sleep(every)

    try:
        await asyncio.wait_for(wait(), PATIENCE_SECONDS)
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}") from None


def make_job(url: str, feed_id: int, group: str | None = None, **changes: Any) -> FetchFeed:
    """Return a job. Without `group` each feed has a politeness group of its own."""
    now = datetime.now(UTC)
    fields = {
        "feed_id": feed_id,
        "url": url,
        "group": group or f"group-{feed_id}",
        "claim_id": uuid4(),
        "not_after": now + timedelta(minutes=30),
        "queued_at": now,
    }
    return FetchFeed(**(fields | changes))


def hanging_jobs(server_url: str, number: int, first: int = 0) -> list[FetchFeed]:
    return [make_job(f"{server_url}/hang/{n}", n) for n in range(first, first + number)]


class Queues:
    """The queues of one virtual host, over a session of our own each time: the broker may have gone in between."""

    def __init__(self, amqp_url: str, topology: Topology = TOPOLOGY) -> None:
        self._amqp_url = amqp_url
        self._topology = topology
        self._broker = RabbitMQ(amqp_url, name="test", max_message_bytes=10**6)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        async with self._broker.connect(self._topology) as session:
            yield session

    async def publish(self, *jobs: FetchFeed) -> None:
        shards = len(self._topology.fetcher.queues)
        async with self.session() as session:
            messages = [Outgoing(job, fetch_routing_key(job.group, shards)).to_publication() for job in jobs]
            await asyncio.gather(*map(session.publish, messages))

    async def put(self, queue: str, *messages: FetchFeed | FeedFetched) -> None:
        """Put messages into a queue; from one with a delay they go on to the (first) queue of its service."""
        stage = self._topology.writer if queue.startswith("writer") else self._topology.fetcher
        async with self.session() as session:
            for message in messages:
                delayed = Outgoing.after(queue, message, then=stage.queues[0])
                outgoing = delayed if queue in {stage.fast_delay, stage.retry} else Outgoing.into(queue, message)
                await session.publish(outgoing.to_publication())

    async def declare(self) -> None:
        """Declare the queues that are missing, as every service does when it connects."""
        async with self.session():
            pass

    async def delete(self, queue: str) -> None:
        connection = await aio_pika.connect(self._amqp_url)
        async with connection:
            await (await connection.channel()).queue_delete(queue)

    async def count(self, queue: str) -> int:
        async with self.session() as session:
            return await session.count_ready(queue) or 0

    async def until_count(self, queue: str, number: int) -> None:
        """Wait until so many messages are ready in `queue`."""
        async with self.session() as session:

            async def reached() -> bool:
                return await session.count_ready(queue) == number

            await until(reached, f"{number} messages in {queue}")

    async def take(self, queue: str, number: int) -> None:
        """Take so many messages out of `queue`."""
        got: list[Delivery] = []
        async with self.session() as session:
            await session.consume(queue, prefetch=number, deliver=got.append)
            await until(lambda: len(got) >= number, f"{number} messages of {queue}")
            await session.stop_consuming()
            for delivery in got[:number]:
                await session.ack(delivery)

    async def look(self, queue: str) -> list[Delivery]:
        """Return all that is ready in `queue`; it stays there."""
        got: list[Delivery] = []
        async with self.session() as session:
            number = await session.count_ready(queue) or 0
            await session.consume(queue, prefetch=10_000, deliver=got.append)
            await until(lambda: len(got) >= number, f"{number} messages of {queue}")
            return list(got)

    async def look_at_results(self) -> list[FeedFetched]:
        """Return all results that are there at the moment."""
        return [FeedFetched.decode(d.body, d.content_encoding) for d in await self.look("writer")]

    async def results(self, number: int) -> list[FeedFetched]:
        """Wait for so many results, and return all that are there."""
        await self.until_count("writer", number)
        return await self.look_at_results()

    async def jobs(self, queue: str, number: int) -> list[FetchFeed]:
        """Wait for so many jobs, and return all that are there."""
        await self.until_count(queue, number)
        return [FetchFeed.decode(d.body, d.content_encoding) for d in await self.look(queue)]
