"""How full the broker's queues are, and who reads them."""

from __future__ import annotations

from collections.abc import Mapping

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
        levels = {queue.name: await _level(session, queue.name) for queue in topology.queues}
        for number in range(len(topology.fetcher.queues), MOST_SHARDS):
            level = await _level(session, shard_name(number))
            if level is None:
                break
            levels[shard_name(number)] = level
    return levels


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
