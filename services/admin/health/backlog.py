"""How the backlog went lately: samples that one process took. Nothing else remembers queues' lengths."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from services.admin.health.looks import Look
from services.admin.health.queues import by_stage
from services.admin.health.scene import Scene
from shared.broker.topology import Topology

SAMPLE_SECONDS = 60.0
MOST_SAMPLES = 6 * 60
"""Six hours."""

ARTICLES = "articles"


@dataclass(frozen=True)
class Sample:
    """What waited at one moment."""

    at: datetime
    waiting: dict[str, int]
    """Messages ready by service, and `ARTICLES` that are pending; without what could not be asked."""


class Backlog:
    """Takes samples.

    Args:
        topology: the queues.
        scene: looks at queues and articles.
    """

    def __init__(self, topology: Topology, scene: Look[Scene]) -> None:
        self._topology = topology
        self._scene = scene
        self._samples: deque[Sample] = deque(maxlen=MOST_SAMPLES)

    @property
    def samples(self) -> Sequence[Sample]:
        """The last samples, the oldest first."""
        return list(self._samples)

    async def take(self) -> None:
        """Take a sample, of what can be seen now."""
        stats, now = (await self._scene.get()).stats, datetime.now(UTC)
        waiting: dict[str, int] = {}
        if stats.levels and _is_new(stats.levels_at, now):
            queues = by_stage(stats.levels, self._topology)
            waiting["fetcher"] = sum(level.ready for level in queues.shards.values() if level)
            waiting |= {service: level.ready for service, level in queues.behind.items() if level}
        if stats.counts and _is_new(stats.counts_at, now):
            waiting[ARTICLES] = stats.counts.articles["pending"]
        self._samples.append(Sample(now, waiting))


def _is_new(at: datetime | None, now: datetime) -> bool:
    return at is not None and now - at < timedelta(seconds=SAMPLE_SECONDS / 2)
