"""Straight to the queues: many messages published at once, and a look at how many have come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from benchmarks.laps import BenchError
from shared.broker.port import Publication, Session
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import Topology
from shared.settings import BrokerSettings, read_settings

IN_FLIGHT = 100
LOOK_SECONDS = 0.03


def read_topology() -> Topology:
    """Return the map that the services of this environment stand on."""
    return read_settings(BrokerSettings).topology()


@asynccontextmanager
async def open_session(amqp_url: str, topology: Topology) -> AsyncIterator[Session]:
    """Yield a session with everything declared."""
    broker = RabbitMQ(amqp_url, name="feedmill bench", max_message_bytes=15 * 1024 * 1024)
    async with broker.connect(topology) as session:
        yield session


async def publish_all(session: Session, publications: Sequence[Publication]) -> None:
    """Publish with confirms, many in flight."""
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def publish(publication: Publication) -> None:
        async with slots:
            await session.publish(publication)

    await asyncio.gather(*map(publish, publications))


async def wait_until(
    done: Callable[[], Awaitable[bool]], *, what: str, seconds: float, check: Callable[[], None]
) -> float:
    """Look until `done`; return the moment (monotonic seconds) at which it was.

    Raises:
        BenchError: it was not within `seconds`; or what `check` raises.
    """
    deadline = time.monotonic() + seconds
    while not await done():
        if time.monotonic() > deadline:
            raise BenchError(f"{what}: not within {seconds:.0f} s")
        check()
        await asyncio.sleep(LOOK_SECONDS)
    return time.monotonic()
