"""How full the broker's queues are, who reads them, and whether the broker takes messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

from services.admin.health.alarms.measured import BrokerState
from services.admin.health.diagnosis import QueueLevel
from services.admin.health.pipeline.picture import Queues
from shared.broker.port import Broker, Session
from shared.broker.shards import MOST_SHARDS, is_shard, shard_name
from shared.broker.topology import Topology

Levels = Mapping[str, QueueLevel | None]
"""By queue; None: it is not declared."""


async def read_levels(broker: Broker, topology: Topology) -> Levels:
    """Return the levels of all queues of the topology, and of shards beyond those that the topology names.

    Raises:
        BrokerUnavailable: the broker is away, or refuses us.
    """
    async with broker.connect(None) as session:
        return await _read_levels(session, topology)


async def _read_levels(session: Session, topology: Topology) -> Levels:
    levels = {queue.name: await _level(session, queue.name) for queue in topology.queues}
    for number in range(len(topology.fetcher.queues), MOST_SHARDS):
        level = await _level(session, shard_name(number))
        if level is None:
            break
        levels[shard_name(number)] = level
    return levels


class BrokerLook:
    """Looks at a broker; the connections of a look end with it.

    Unless the broker is under an alarm: it does not notice the end of a connection that it blocks, so the next look
    takes the same one, and not one connection more each time.

    Args:
        connect: makes the broker.
        topology: the queues.
    """

    def __init__(self, connect: Callable[[], Broker], topology: Topology) -> None:
        self._connect = connect
        self._topology = topology
        self._kept = AsyncExitStack()
        self._session: Session | None = None

    async def find(self) -> BrokerState:
        """Return what the broker says. One look at a time.

        Raises:
            BrokerUnavailable: the broker is away, or refuses us.
        """
        async with AsyncExitStack() as stack:
            kept, self._kept = self._kept, AsyncExitStack()
            session, self._session = self._session, None
            await stack.enter_async_context(kept)
            if session is None or session.lost.is_set():
                session = await stack.enter_async_context(self._connect().connect(None))
            state = BrokerState(await _read_levels(session, self._topology), await session.find_alarm())
            if state.alarm:
                self._kept, self._session = stack.pop_all(), session
            return state


async def _level(session: Session, queue: str) -> QueueLevel | None:
    ready = await session.count_ready(queue)
    return None if ready is None else QueueLevel(ready, await session.count_consumers(queue))


def by_stage(levels: Levels, topology: Topology) -> Queues:
    """Return the levels by the stages that the queues belong to."""
    fetcher = topology.fetcher

    def ready(*queues: str | None) -> int:
        return sum(level.ready for queue in queues if queue and (level := levels.get(queue)))

    return Queues(
        shards={name: level for name, level in levels.items() if is_shard(name)},
        behind={stage.service: levels[stage.queue] for stage in topology.behind(fetcher)},
        retry={stage.service: ready(stage.retry, stage.fast_delay) for stage in topology.stages},
        dead={stage.service: ready(stage.dead) for stage in topology.stages},
    )
