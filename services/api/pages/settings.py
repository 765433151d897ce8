"""The settings in force."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from services.admin.doctor.in_force import SERVICES, settings_in_force
from services.api.pages.frame import Visitor, render
from services.api.settings import ApiSettings
from shared.errors import ConfigurationError

router = APIRouter(include_in_schema=False)

_TITLES = {
    "Broker": "RabbitMQ and the topology",
    "Claim": "Claims",
    "Database": "PostgreSQL",
    "Telemetry": "Logs and metrics",
    "Politeness": "Politeness groups",
    "Enrich": "What the enricher looks for",
    "Api": "API",
}


@router.get("/settings")
async def settings_page(request: Request, _visitor: Visitor) -> HTMLResponse:
    """Show each setting with its value and its description."""
    trouble, groups = None, []
    try:
        groups = settings_in_force([*SERVICES, ApiSettings])
    except ConfigurationError as error:
        trouble = str(error)
    return render(request, "settings.html", groups=groups, titles=_TITLES, trouble=trouble)
