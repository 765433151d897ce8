"""The login: a token becomes a session, by POST /api/session."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from services.api.pages.frame import own_path, render

router = APIRouter(include_in_schema=False)


@router.get("/login")
async def login_page(request: Request) -> HTMLResponse:
    """Show the form."""
    return render(request, "login.html", target=own_path(request.query_params.get("next", "/")))
