"""How the backlog went lately: samples that one process took. Nothing else remembers queues' lengths."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from services.admin.health.looks import Look
from services.admin.health.queues import Levels, by_stage
from services.admin.health.stats import StatsWatch
from shared.broker.topology import Topology
from shared.errors import FeedmillError

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
        levels: looks at the queues.
        stats: counts articles.
    """

    def __init__(self, topology: Topology, levels: Look[Levels], stats: StatsWatch) -> None:
        self._topology = topology
        self._levels = levels
        self._stats = stats
        self._samples: deque[Sample] = deque(maxlen=MOST_SAMPLES)

    @property
    def samples(self) -> Sequence[Sample]:
        """The last samples, the oldest first."""
        return list(self._samples)

    async def take(self) -> None:
        """Take a sample, of what can be asked."""
        waiting: dict[str, int] = {}
        with suppress(FeedmillError):
            queues = by_stage(await self._levels.get(), self._topology)
            waiting["fetcher"] = sum(level.ready for level in queues.shards.values() if level)
            waiting |= {service: level.ready for service, level in queues.behind.items() if level}
        with suppress(FeedmillError):
            waiting[ARTICLES] = (await self._stats.look()).counts.articles["pending"]
        self._samples.append(Sample(datetime.now(UTC), waiting))
