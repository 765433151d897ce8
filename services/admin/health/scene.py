"""All that the overview shows, found together."""

from __future__ import annotations

from dataclasses import dataclass

from services.admin.health.looks import Look
from services.admin.health.pipeline.picture import Picture
from services.admin.health.pipeline.watch import HealthWatch
from services.admin.health.stats import Stats, StatsWatch
from services.admin.health.worst import WorstHost
from shared.errors import FeedmillError

KEEP_SECONDS = 5.0
PATIENCE_SECONDS = 30.0


@dataclass(frozen=True)
class Scene:
    """How things stand."""

    picture: Picture
    stats: Stats
    worst: list[WorstHost] | None
    """None: not known."""


def watch_scene(health: HealthWatch, stats: StatsWatch, worst: Look[list[WorstHost]]) -> Look[Scene]:
    """Return what finds it once for all that ask."""

    async def find() -> Scene:
        picture = await health.look()
        try:
            hosts = await worst.get() if picture.state is not None else None
        except FeedmillError:
            hosts = None
        return Scene(picture, await stats.look(), hosts)

    return Look(find, what="the pipeline", keep_seconds=KEEP_SECONDS, patience_seconds=PATIENCE_SECONDS)
