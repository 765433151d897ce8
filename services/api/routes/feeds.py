"""Feeds: the registry, and one feed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from services.admin import feeds
from services.api.access import Reader
from services.api.models.feeds import FeedRow
from services.api.paging import Cursor, Limit, Page, read_cursor, write_cursor
from services.api.resources import Here

router = APIRouter(prefix="/api/feeds", tags=["feeds"])

Text = Annotated[str | None, Query(max_length=1000, description="Only feeds with this text in name, title or URL.")]
Tag = Annotated[str | None, Query(max_length=200, description="Only feeds with this tag, in upper or lower case.")]


@router.get("", summary="List feeds")
async def list_feeds(
    here: Here, _actor: Reader, q: Text = None, tag: Tag = None, limit: Limit = 50, cursor: Cursor = None
) -> Page[FeedRow]:
    """Feeds by id."""
    after = read_cursor(cursor, [int])
    async with here.database.transaction() as connection:
        rows = await feeds.list_feeds(
            connection, here.retry_rules(), text=q, tag=tag, limit=limit, after=after[0] if after else None
        )
    last = write_cursor(rows[-1]["id"]) if len(rows) == limit else None
    return Page(items=[FeedRow(**row) for row in rows], next=last)
