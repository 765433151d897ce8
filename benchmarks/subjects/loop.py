"""Messages per second through the consumer loop, with a handler that does nothing, beside bare aio-pika.

Both take the same results of a feed that has not changed (about 800 bytes) from a quorum queue with the same prefetch.
Ours decodes and validates them, forms batches and acknowledges. The bare one only acknowledges.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from uuid import uuid4

import aio_pika
from aio_pika.abc import AbstractIncomingMessage

from benchmarks.bench import Bench, open_session, publish_all, read_topology
from benchmarks.laps import BenchError, Lap, rate_row, run_rounds
from benchmarks.messages import new_results
from benchmarks.rows import Row
from services.writer.settings import WriterSettings
from shared.broker.consumer import Batching, Consumer
from shared.broker.port import Outgoing, Session
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import Topology
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched

PATIENCE_SECONDS = 60.0


async def run(bench: Bench) -> list[Row]:
    """Return the row."""
    messages, most = (1_500, 2) if bench.quick else (6_000, 5)
    place, topology = bench.make_place("loop"), read_topology()
    async with open_session(place.amqp_url, topology) as session:

        async def lap(take: Callable[[str, Topology, int], Awaitable[None]]) -> Lap:
            await _fill(session, topology, messages)
            start = time.monotonic()
            await take(place.amqp_url, topology, messages)
            return Lap(messages, time.monotonic() - start)

        contenders = {"ours": partial(lap, _take), "bare": partial(lap, _take_barely)}
        laps = await run_rounds(contenders, most, 60.0, warm_up=True)
    return [rate_row("loop.results", "messages/s", "bare aio-pika", laps["ours"], laps["bare"], goal=0.7)]


async def _fill(session: Session, topology: Topology, messages: int) -> None:
    (result,) = new_results(1, edition="loop", claim_id=uuid4())
    result = result.model_copy(update={"outcome": Outcome.NOT_MODIFIED, "status": 304, "entries": ()})
    publications = [
        Outgoing.into(topology.writer.queue, result.model_copy(update={"result_id": uuid4()})).to_publication()
        for _ in range(messages)
    ]
    await publish_all(session, publications)


async def _take(amqp_url: str, topology: Topology, messages: int) -> None:
    settings = WriterSettings()
    stop, taken = asyncio.Event(), 0

    async def handle(batch: Sequence[FeedFetched]) -> Sequence[Outgoing]:
        nonlocal taken
        taken += len(batch)
        if taken >= messages:
            stop.set()
        return ()

    consumer = Consumer(
        RabbitMQ(amqp_url, name="feedmill bench", max_message_bytes=1_000_000),
        topology,
        topology.writer,
        FeedFetched,
        handle,
        prefetch=settings.writer_prefetch,
        failures=1,
        batching=Batching(size=settings.writer_batch, linger_seconds=settings.writer_linger_seconds, concurrency=2),
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        await consumer.run(stop)
    if taken != messages:
        raise BenchError(f"{taken} of {messages} messages were handled")


async def _take_barely(amqp_url: str, topology: Topology, messages: int) -> None:
    taken, done = 0, asyncio.Event()

    async def acknowledge(message: AbstractIncomingMessage) -> None:
        nonlocal taken
        await message.ack()
        taken += 1
        if taken >= messages:
            done.set()

    connection = await aio_pika.connect(amqp_url)
    async with connection, asyncio.timeout(PATIENCE_SECONDS):
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=WriterSettings().writer_prefetch)
        queue = await channel.get_queue(topology.writer.queue, ensure=False)
        await queue.consume(acknowledge)
        await done.wait()
