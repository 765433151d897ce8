"""Source types: how what a URL gives is read."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path

from services.admin.feeds import sources
from services.api.access import Reader
from services.api.models.sources import SourceTypeRow
from services.api.paging import Page
from services.api.problems import answers

router = APIRouter(prefix="/api/sources", tags=["sources"])


@router.get("", summary="List source types")
async def list_source_types(_actor: Reader) -> Page[SourceTypeRow]:
    """All that are installed, by name, on one page."""
    return Page(items=[SourceTypeRow(**row) for row in sources.list_source_types()], next=None)


@router.get("/{name}", summary="Show a source type", responses=answers(HTTPStatus.NOT_FOUND))
async def show_source_type(name: Annotated[str, Path(max_length=200)], _actor: Reader) -> SourceTypeRow:
    """One of them."""
    return SourceTypeRow(**sources.show_source_type(name))
