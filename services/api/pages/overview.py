"""The first page: what flows, what is late, and why."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from services.api.models.health import PipelineHealth
from services.api.pages.frame import Visitor, render
from services.api.resources import Here
from shared.errors import Unavailable

router = APIRouter(include_in_schema=False)


@router.get("/")
async def overview_page(request: Request, here: Here, _visitor: Visitor) -> HTMLResponse:
    """Show how things stand."""
    health = PipelineHealth.of(await here.health.look())
    try:
        stats = await here.stats.look()
    except Unavailable:
        stats = None  # the verdict says why
    return render(request, "overview.html", health=health, stats=stats)
