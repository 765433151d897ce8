"""Who changed what."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from services.admin.access import audit_rows
from services.api.access import Admin
from services.api.models.access import AuditRow
from services.api.models.texts import PLAIN
from services.api.moments import Moment
from services.api.paging import Cursor, Limit, Page, read_cursor, read_moment, write_cursor
from services.api.resources import Here

router = APIRouter(prefix="/api/audit", tags=["access"])

By = Annotated[
    str | None, Query(max_length=300, pattern=PLAIN, description="Only what this actor did: the whole name.")
]
Action = Annotated[str | None, Query(max_length=100, pattern=PLAIN, description="Only this, such as `feed.update`.")]
Target = Annotated[str | None, Query(max_length=300, pattern=PLAIN, description="Only what was done to this id.")]
Since = Annotated[Moment | None, Query(description="Only later rows.")]


@router.get("", summary="List changes")
async def list_audit(
    here: Here,
    _actor: Admin,
    actor: By = None,
    action: Action = None,
    target: Target = None,
    since: Since = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[AuditRow]:
    """The latest first. Secrets are masked."""
    key = read_cursor(cursor, [str, int])
    after = (read_moment(key[0]), key[1]) if key else None
    async with here.database.transaction() as connection:
        rows = await audit_rows.list_rows(
            connection, actor=actor, action=action, target=target, since=since, limit=limit, after=after
        )
    last = write_cursor(rows[-1]["at"].isoformat(), rows[-1]["id"]) if len(rows) == limit else None
    return Page(items=[AuditRow(**row) for row in rows], next=last)
