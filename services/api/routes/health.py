"""Whether the pipeline works."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Response

from services.api.access import Reader
from services.api.models.health import EXAMPLE, PipelineHealth
from services.api.problems import answers
from services.api.resources import Here

router = APIRouter(prefix="/api/health", tags=["health"])

_AWAY = HTTPStatus.SERVICE_UNAVAILABLE


def _of_down() -> dict[int | str, dict[str, Any]]:
    """Return the description of 503: the same answer, or a problem where nobody can tell who asks."""
    problem = answers(_AWAY)[_AWAY]["content"]
    example = EXAMPLE | {"status": "down", "reasons": ["RabbitMQ can't be asked: RabbitMQ does not answer within 2 s"]}
    content = {"application/json": {"example": example}, **problem}
    return {int(_AWAY): {"description": "The pipeline is down", "model": PipelineHealth, "content": content}}


@router.get("/pipeline", summary="Show whether each stage of the pipeline works", responses=_of_down())
async def show_pipeline_health(here: Here, _actor: Reader, response: Response) -> PipelineHealth:
    """Show a verdict on each stage, with its reasons and figures. The status is 503 if the pipeline is down."""
    found = PipelineHealth.of(await here.health.look())
    if found.status == "down":
        response.status_code = _AWAY
    return found
