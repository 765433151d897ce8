"""Who drains pending articles, and how fast."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from services.admin.articles.draining_words import counted, describe_draining
from services.api.pages.frame import Visitor, render
from services.api.resources import Here

router = APIRouter(include_in_schema=False)


@router.get("/consumers")
async def consumers_page(request: Request, here: Here, _visitor: Visitor) -> HTMLResponse:
    """Show how pending articles are drained."""
    at = await here.draining.get()
    return render(
        request,
        "articles/consumers.html",
        at=at,
        findings=describe_draining(at),
        counted=counted,
        waiting=here.arrivals.waiting,
        highest=max((minute.acknowledged + minute.failed for minute in at.minutes), default=0),
    )
