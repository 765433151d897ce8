"""How things stand."""

from __future__ import annotations

from fastapi import APIRouter

from services.api.access import Reader
from services.api.models.stats import StatsAnswer
from services.api.resources import Here

router = APIRouter(prefix="/api/stats", tags=["health"])


@router.get("", summary="Show queues, feeds and articles")
async def show_stats(here: Here, _actor: Reader) -> StatsAnswer:
    """Show what `feedmill status` shows, totals, and the last day by the hour."""
    return StatsAnswer.of(await here.stats.look())
