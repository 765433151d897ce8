"""What fetchers have left in their queues when they were switched off: nobody reads it, and its feeds stay claimed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from shared.broker.consumer import Arrivals, Batching
from shared.broker.port import Outgoing, Session
from shared.broker.settling import UNPUBLISHED_SECONDS, Settler
from shared.broker.shards import lock_of
from shared.broker.topology import Stage
from shared.ttl_cache import TtlCache
from shared.wire.jobs import FetchFeed

log = logging.getLogger(__name__)

BATCHING = Batching(size=200, linger_seconds=0.05)
"""Jobs of one transaction."""

PATIENCE_SECONDS = 30.0
"""A shard whose broker delivers nothing for so long is left."""


async def take_back(
    session: Session,
    stage: Stage,
    release: Callable[[Sequence[FetchFeed]], Awaitable[None]],
    *,
    max_message_bytes: int,
    stop: asyncio.Event,
) -> int:
    """Empty the shards that no fetcher owns, and release the claims of their jobs. Return how many jobs these were.

    Each shard is locked meanwhile, as by a fetcher that owns it: a living one keeps its jobs, one that starts waits. A
    job is acknowledged when its claim is released. A claim that is another's by now is left. A job that waits for its
    retry, or in a front queue, reaches its shard by itself: a later run takes it.

    Args:
        session: consumes nothing else.
        stage: the fetcher's.
        release: releases the claims of these jobs; raises Unavailable.
        max_message_bytes: the limit for unpacking.
        stop: ends it early.

    Raises:
        BrokerUnavailable: the broker went away, or refuses.
    """
    number = 0

    async def give_back(jobs: Sequence[FetchFeed]) -> Sequence[Outgoing]:
        nonlocal number
        await release(jobs)
        number += len(jobs)
        return ()

    settler = Settler(
        session,
        stop,
        stage,
        FetchFeed,
        give_back,
        failures=0,
        max_message_bytes=max_message_bytes,
        unpublished=TtlCache(UNPUBLISHED_SECONDS),
    )
    for shard in stage.queues:
        if await session.count_ready(shard) and not stop.is_set() and await session.lock(lock_of(shard)):
            await _empty(session, shard, settler, stop)
            await session.unlock(lock_of(shard))
    return number


async def _empty(session: Session, shard: str, settler: Settler[FetchFeed], stop: asyncio.Event) -> None:
    left = await session.count_ready(shard) or 0  # counted again: nobody else reads it from here on
    arrivals = Arrivals()
    closing = asyncio.create_task(arrivals.close_when(stop, session.lost))
    try:
        await session.consume(shard, prefetch=BATCHING.size, deliver=arrivals.put)
        async with asyncio.timeout(PATIENCE_SECONDS) as patience:
            while left > 0 and (batch := await arrivals.next_batch(BATCHING, most=left)):
                patience.reschedule(None)
                await settler.settle(batch)
                left -= len(batch)
                patience.reschedule(asyncio.get_running_loop().time() + PATIENCE_SECONDS)
    except TimeoutError:
        log.warning("%d jobs of a shard were not delivered", left, extra={"queue": shard})
    finally:
        closing.cancel()
    await session.stop_consuming(shard)
    for delivery in arrivals.take_rest():
        await settler.requeue(delivery)
