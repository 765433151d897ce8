"""Hosts: who is throttled or down, until when and why; one host with its jobs and feeds."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse

from services.admin.feeds import listing
from services.admin.feeds.listing import SORTS, Filters
from services.admin.health import hosts
from services.admin.health.diagnosis import HostState
from services.admin.health.freshness_words import in_full
from services.admin.polling.surroundings import look_at_pipeline
from services.api.models.texts import PLAIN
from services.api.pages.feeds import EmptyIsNone, Text
from services.api.pages.frame import Visitor, render
from services.api.paging import Cursor, read_cursor, write_cursor
from services.api.resources import Here
from shared.wire.outcomes import words_of

router = APIRouter(include_in_schema=False)

PAGE_HOSTS = 50
HOST_FEEDS = 20
MOST_SHOWN = 10
"""Of what stands beside the tables: hosts that are left alone, a host's troubles and jobs."""

InState = Annotated[HostState | None, EmptyIsNone, Query()]
Host = Annotated[str, Path(min_length=1, max_length=2000, pattern=PLAIN)]


@router.get("/hosts")
async def hosts_page(
    request: Request, here: Here, _visitor: Visitor, q: Text = None, state: InState = None, cursor: Cursor = None
) -> HTMLResponse:
    """Show the scoreboard: above all those that are left alone now, then all by name."""
    after = read_cursor(cursor, [str])
    pipeline = await look_at_pipeline(here.topology, here.broker_look, here.fetcher)
    seconds = here.fetcher.connect_failure_seconds
    left_alone: dict[HostState, list[dict[str, Any]]] = {}
    async with here.database.transaction() as connection:
        found = await hosts.list_hosts(
            connection,
            connect_failure_seconds=seconds,
            state=state,
            text=q,
            limit=PAGE_HOSTS,
            after=after[0] if after else None,
        )
        if not (q or state or cursor):
            for each in (HostState.THROTTLED, HostState.DOWN):
                left_alone[each] = await hosts.list_hosts(
                    connection, connect_failure_seconds=seconds, state=each, limit=MOST_SHOWN
                )
    chosen = {name: value for name, value in (("q", q), ("state", state)) if value}
    behind = write_cursor(found[-1]["host"]) if len(found) == PAGE_HOSTS else None
    return render(
        request,
        "hosts/list.html",
        hosts=found,
        left_alone=left_alone,
        most_shown=MOST_SHOWN,
        pipeline=pipeline,
        q=q,
        state=state,
        states=list(HostState),
        is_empty=not (found or chosen or cursor),
        first_path=f"/hosts?{urlencode(chosen)}" if cursor else None,
        next_path=f"/hosts?{urlencode(chosen | {'cursor': behind})}" if behind else None,
    )


@router.get("/hosts/{host:path}")
async def host_page(request: Request, here: Here, _visitor: Visitor, host: Host, cursor: Cursor = None) -> HTMLResponse:
    """Show a host; `cursor` is where its feeds begin."""
    order = SORTS["-failures"]
    key = read_cursor(cursor, [int, int])
    pipeline = await look_at_pipeline(here.topology, here.broker_look, here.fetcher)
    async with here.scan(), here.database.transaction() as connection:
        row = await hosts.read_host(connection, host, connect_failure_seconds=here.fetcher.connect_failure_seconds)
        troubles = await hosts.list_troubles(connection, host, limit=MOST_SHOWN)
        jobs = await hosts.list_jobs(connection, host, limit=MOST_SHOWN)
        feeds = await listing.list_feeds(
            connection,
            here.retry_rules(),
            Filters(host=host),
            order,
            limit=HOST_FEEDS,
            after=(key[0], key[1]) if key else None,
        )
    return render(
        request,
        "hosts/show.html",
        host=row,
        shard=pipeline.shard_of(host),
        level=pipeline.level_of(host),
        pipeline=pipeline,
        troubles=[trouble | {"words": words_of(trouble["outcome"])} for trouble in troubles],
        jobs=jobs,
        freshness={span: in_full(found) for span, found in row["freshness"].items()},
        feeds=feeds,
        is_first=cursor is None,
        behind=write_cursor(feeds[-1]["sort_key"], feeds[-1]["id"]) if len(feeds) == HOST_FEEDS else None,
    )
