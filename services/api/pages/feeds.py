"""The table of feeds: searched, filtered and sorted by the server; changed through the API, feed by feed."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BeforeValidator, Field

from services.admin.actor import Actor, Scope
from services.admin.errors import Invalid
from services.admin.feed_health.rule import Word
from services.admin.feeds import listing
from services.admin.feeds.listing import SORTS, Filters
from services.admin.feeds.states import State
from services.admin.feeds.tags import MAX_TAG_CHARACTERS
from services.api.models.texts import PLAIN
from services.api.pages.frame import Visitor, render
from services.api.paging import Cursor, read_cursor, write_cursor
from services.api.resources import Here, Resources

router = APIRouter(include_in_schema=False)

PAGE_FEEDS = 50

RECENT = timedelta(minutes=1)
"""An older count of feeds is not shown."""

COLUMNS = {
    "name": "Feed",
    "health": "Health",
    "next_fetch_at": "Next poll",
    "last_success_at": "Last success",
    "failures": "Failures",
}
"""The columns that tell how a feed fares. All but `health` can be sorted by."""


EmptyIsNone = BeforeValidator(lambda value: None if value == "" else value)
"""A form sends its empty fields, too."""

_Text = Annotated[str, Field(max_length=1000, pattern=PLAIN)]
_Tag = Annotated[str, Field(max_length=MAX_TAG_CHARACTERS, pattern=PLAIN)]
Text = Annotated[_Text | None, EmptyIsNone, Query()]
Tag = Annotated[_Tag | None, EmptyIsNone, Query()]
InState = Annotated[State | None, EmptyIsNone, Query()]


OfHealth = Annotated[Word | None, EmptyIsNone, Query()]


@dataclass(frozen=True)
class Shown:
    """What a person wants to see of the table."""

    filters: Filters
    sort: str

    def path(self, **changes: str | None) -> str:
        """Return the address of the table with some of it changed, from its first page on."""
        names = {"text": "q", "tag": "tag", "host": "host", "state": "state", "health": "health"}
        given = {short: getattr(self.filters, name) for name, short in names.items()} | {"sort": self.sort}
        query = {name: value for name, value in (given | changes).items() if value}
        if query.get("sort") == "id":
            del query["sort"]
        return f"/feeds?{urlencode(query)}" if query else "/feeds"

    def sorted_by(self, column: str) -> str | None:
        """Return how the table is sorted by a column, as `aria-sort` has it."""
        return {column: "ascending", f"-{column}": "descending"}.get(self.sort)

    def sort_path(self, column: str) -> str:
        """Return the address of the table sorted by a column; the other way round if it is."""
        return self.path(sort=f"-{column}" if self.sort == column else column)

    @property
    def is_filtered(self) -> bool:
        """Whether not all feeds are shown."""
        return replace(self.filters, exact=False) != Filters()


async def _shown(
    q: Text = None,
    tag: Tag = None,
    host: Text = None,
    state: InState = None,
    health: OfHealth = None,
    sort: Annotated[str, Query(max_length=30)] = "id",
) -> Shown:
    if sort not in SORTS:
        raise Invalid(f"sort: give one of {', '.join(SORTS)}", "query.sort")
    return Shown(Filters(text=q, tag=tag, state=state, host=host, health=health), sort)


@router.get("/feeds")
async def feeds_page(
    request: Request, here: Here, visitor: Visitor, shown: Annotated[Shown, Depends(_shown)], cursor: Cursor = None
) -> HTMLResponse:
    """Show the table."""
    rows, after = await _read(here, visitor, shown, cursor)
    return render(
        request,
        "feeds/list.html",
        shown=shown,
        feeds=rows,
        columns=COLUMNS,
        states=list(State),
        words=list(Word),
        total=_total(here, shown) if cursor or after else len(rows),
        is_first=cursor is None,
        next_path=shown.path(cursor=after) if after else None,
        is_empty=not rows and cursor is None and not shown.is_filtered,
    )


def _total(here: Resources, shown: Shown) -> int | None:
    """Return how many feeds the table has, as they were last counted; None: nobody has counted these."""
    found, at = here.scene.last, here.scene.last_at
    counts = found.stats.counts if found else None
    if counts is None or at is None or datetime.now(UTC) - at > RECENT:
        return None
    if not shown.is_filtered:
        return counts.feeds.feeds
    only = Filters(health=shown.filters.health, exact=shown.filters.exact)
    return counts.health.get(only.health) if only.health and shown.filters == only else None


async def _read(
    here: Resources, visitor: Actor, shown: Shown, cursor: str | None
) -> tuple[list[dict[str, Any]], str | None]:
    """Return a page of feeds, and the cursor of the next one."""
    order = SORTS[shown.sort]
    key = read_cursor(cursor, [str, order.kind, int])
    if key and key[0] != shown.sort:
        raise Invalid("cursor: it belongs to another `sort`; begin at the first page", "query.cursor")
    filters = replace(shown.filters, exact=visitor.may(Scope.WRITE))
    async with AsyncExitStack() as stack:
        if order.by != "id" or not filters.has_index:
            await stack.enter_async_context(here.scan())
        connection = await stack.enter_async_context(here.database.transaction())
        rows = await listing.list_feeds(
            connection,
            here.retry_rules(),
            filters,
            order,
            limit=PAGE_FEEDS,
            after=(key[1], key[2]) if key else None,
        )
    is_full = len(rows) == PAGE_FEEDS
    return rows, write_cursor(shown.sort, rows[-1]["sort_key"], rows[-1]["id"]) if is_full else None
