"""Fetches by hand: start one, look at it, wait for it."""

from __future__ import annotations

import math
from datetime import datetime
from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response

from services.admin.feeds import fires
from services.api.access import Editor, Reader
from services.api.access.idempotency import CreatingRoute
from services.api.models.fires import Fire, FireRequest, FireRow
from services.api.paging import Cursor, Limit, Page, made_up, read_cursor, read_moment, write_cursor
from services.api.paths import MOST_ID, FeedId
from services.api.problems import ProblemError, answers
from services.api.resources import Here

router = APIRouter(tags=["fires"], route_class=CreatingRoute)

MOST_WAIT_SECONDS = 30.0

OfFeed = Annotated[int | None, Query(ge=1, le=MOST_ID, description="Only those of this feed.")]
Wait = Annotated[
    float,
    Query(ge=0, le=MOST_WAIT_SECONDS, allow_inf_nan=False, description="Answer when it has ended, or after this time."),
]


@router.post(
    "/api/feeds/{id}/fire",
    summary="Fetch a feed now",
    status_code=HTTPStatus.ACCEPTED,
    responses=answers(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
)
async def fire_feed(
    here: Here,
    actor: Editor,
    id: FeedId,  # noqa: A002 - the name in the path
    response: Response,
    body: FireRequest | None = None,
    traceparent: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Fire:
    """It goes ahead of the backlog, but keeps to its host's limits. For real at most once a minute (429)."""
    dry_run = body is not None and body.dry_run
    spans = fires.Spans(here.settings.claim_seconds, here.settings.fire_seconds)
    try:
        task = await fires.fire(
            here.database,
            here.broker(),
            here.topology,
            actor,
            id,
            dry_run=dry_run,
            spans=spans,
            traceparent=traceparent,
        )
    except fires.TooSoon as error:
        wait = {"Retry-After": f"{max(math.ceil(error.seconds), 1)}"}
        raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, str(error), wait) from error
    response.headers["Location"] = f"/api/fires/{task}"
    async with here.database.transaction() as connection:
        return Fire(**await fires.read_fire(connection, task))


@router.get("/api/fires/{id}", summary="Look at a fetch by hand", responses=answers(HTTPStatus.NOT_FOUND))
async def get_fire(here: Here, _actor: Reader, id: UUID, wait: Wait = 0.0) -> Fire:  # noqa: A002 - the name in the path
    """With `wait` as a long poll."""
    return Fire(**await fires.await_fire(here.database, id, wait))


@router.get("/api/fires", summary="List fetches by hand")
async def list_fires(
    here: Here, _actor: Reader, feed: OfFeed = None, limit: Limit = 50, cursor: Cursor = None
) -> Page[FireRow]:
    """The latest first. Ended ones are kept for a day (FEEDMILL_FIRE_DAYS)."""
    after = _read_place(cursor)
    async with here.database.transaction() as connection:
        rows = await fires.list_fires(connection, feed, limit=limit, after=after)
    last = write_cursor(rows[-1]["queued_at"].isoformat(), rows[-1]["id"]) if len(rows) == limit else None
    return Page(items=[FireRow(**row) for row in rows], next=last)


def _read_place(cursor: str | None) -> tuple[datetime, UUID] | None:
    key = read_cursor(cursor, [str, str])
    if key is None:
        return None
    try:
        return read_moment(key[0]), UUID(key[1])
    except ValueError:
        raise made_up() from None
