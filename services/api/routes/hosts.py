"""Hosts: who is throttled, who is down, who has a backlog."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query

from services.admin.health import hosts
from services.admin.health.diagnosis import HostState
from services.api.access import Reader
from services.api.models.hosts import Host, HostRow
from services.api.models.texts import PLAIN
from services.api.paging import Cursor, Limit, Page, read_cursor, write_cursor
from services.api.problems import answers
from services.api.resources import Here

router = APIRouter(prefix="/api/hosts", tags=["hosts"])

Text = Annotated[
    str | None, Query(max_length=1000, pattern=PLAIN, description="Only hosts with this text in their name.")
]
InState = Annotated[HostState | None, Query(description="Only hosts in this state.")]
HostName = Annotated[
    str, Path(min_length=1, max_length=2000, pattern=PLAIN, description="As `host` in the list: without a scheme.")
]


@router.get("", summary="List hosts")
async def list_hosts(
    here: Here, _actor: Reader, state: InState = None, q: Text = None, limit: Limit = 50, cursor: Cursor = None
) -> Page[HostRow]:
    """Hosts by name."""
    after = read_cursor(cursor, [str])
    async with here.database.transaction() as connection:
        rows = await hosts.list_hosts(
            connection,
            connect_failure_seconds=here.fetcher.connect_failure_seconds,
            state=state,
            text=q,
            limit=limit,
            after=after[0] if after else None,
        )
    last = write_cursor(rows[-1]["host"]) if len(rows) == limit else None
    return Page(items=[HostRow(**row) for row in rows], next=last)


@router.get("/{host:path}", summary="Show a host", responses=answers(HTTPStatus.NOT_FOUND))
async def show_host(here: Here, _actor: Reader, host: HostName) -> Host:
    """Show one host, with the freshness of its feeds' articles."""
    async with here.database.transaction() as connection:
        row = await hosts.read_host(connection, host, connect_failure_seconds=here.fetcher.connect_failure_seconds)
    return Host(**row)
