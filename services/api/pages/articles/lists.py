"""Lists of articles: those that wait for a consumer, the dead ones, and all that ever came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from services.admin.actor import Actor, Scope
from services.admin.articles import ledger, pending
from services.admin.articles.names import name_feeds
from services.admin.articles.pending import Filter, Labels, Place, State
from services.admin.errors import NotFound
from services.api.models.texts import PLAIN
from services.api.pages.articles.words import KINDS, STATES, is_md5, why_unsure
from services.api.pages.frame import Visitor, render
from services.api.paging import write_cursor
from services.api.places import read_entry_place, read_moment_place, read_place, write_place
from services.api.resources import Here, Resources
from shared.errors import FeedmillError

router = APIRouter(include_in_schema=False)

ROWS = 50

TABS = {
    "pending": "Pending",
    "claimable": "Claimable",
    "claimed": "Claimed",
    "waiting": "Waiting for retry",
    "dead": "Dead",
    "ledger": "All that came",
}

Text = Annotated[str, Field(max_length=1000, pattern=PLAIN)]


class Asked(BaseModel):
    """What the form asks for; an empty text is no filter."""

    model_config = ConfigDict(str_strip_whitespace=True, extra="forbid")

    tab: Literal["pending", "claimable", "claimed", "waiting", "dead", "ledger"] = "pending"
    feed: Annotated[str, Field(max_length=2000, pattern=PLAIN)] = ""
    q: Text = ""
    language: Annotated[str, Field(max_length=50, pattern=PLAIN)] = ""
    topic: Annotated[str, Field(max_length=200, pattern=PLAIN)] = ""
    duplicates: Literal["", "any", "address", "title", "text", "none"] = ""
    cursor: Annotated[str, Field(max_length=2000)] = ""

    @property
    def is_search(self) -> bool:
        """Whether it takes a look at each article, for there is no index."""
        return bool(self.q or self.language or self.topic or self.duplicates)

    def path(self, **changes: str | None) -> str:
        """Return the path of this list with other values."""
        values = self.model_dump() | changes
        given = {name: value for name, value in values.items() if value and (name, value) != ("tab", "pending")}
        return f"/articles?{urlencode(given)}" if given else "/articles"

    def filter(self, actor: Actor) -> Filter:
        """Return the filter of `services.admin.articles`."""
        labels = Labels(self.language or None, self.topic or None, self.duplicates or None)
        return Filter(self.feed or None, self.q or None, exact=actor.may(Scope.WRITE), labels=labels)


@dataclass(frozen=True)
class Listed:
    """One page of a list."""

    rows: list[dict[str, Any]]
    behind: str | None = None
    """The cursor of the next page."""
    searched: int | None = None
    """So many articles were looked at, and there are more; None: all that there are."""
    trouble: str | None = None


@router.get("/articles")
async def articles_page(request: Request, here: Here, visitor: Visitor, asked: Annotated[Asked, Query()]) -> Response:
    """Show a list."""
    if is_md5(asked.q.lower()):
        return RedirectResponse(f"/articles/{asked.q.lower()}", 303)
    listed = await _read(here, asked, visitor)
    async with here.database.transaction() as connection:
        names = await name_feeds(connection, (row["feed_id"] for row in listed.rows))
    return _page(request, asked, listed, names, await _counts(here))


def _page(
    request: Request, asked: Asked, listed: Listed, names: Mapping[int, str], counts: Mapping[str, int]
) -> HTMLResponse:
    return render(
        request,
        "articles/list.html",
        asked=asked,
        tabs=TABS,
        listed=listed,
        names=names,
        counts=counts,
        kinds=KINDS,
        states=STATES,
        why_unsure=why_unsure,
        topics=sorted({topic for row in listed.rows if (topic := row.get("topic") or "").isprintable() and topic}),
    )


async def _read(here: Resources, asked: Asked, actor: Actor) -> Listed:
    try:
        match asked.tab:
            case "ledger":
                return await _read_ledger(here, asked, actor)
            case "dead":
                return await _read_dead(here, asked, actor)
            case tab:
                return await _read_pending(here, asked, actor, State(tab))
    except NotFound as error:
        return Listed([], trouble=str(error))


async def _read_pending(here: Resources, asked: Asked, actor: Actor, state: State) -> Listed:
    after = read_place(asked.cursor or None)
    chosen = asked.filter(actor)
    async with here.database.transaction() as connection:
        as_of = after.as_of if after else await pending.read_clock(connection)
        if asked.is_search and not asked.feed:
            rows, behind = await pending.search_pending(connection, chosen, state, ROWS, as_of, after)
            searched = pending.MOST_SEARCHED if behind and len(rows) < ROWS else None
            return Listed(rows, _cursor(behind), searched)
        rows = await pending.list_pending(connection, chosen, state, ROWS, as_of, after)
    return Listed(rows, _cursor(pending.place_of(rows[-1], as_of)) if len(rows) == ROWS else None)


def _cursor(place: Place | None) -> str | None:
    return None if place is None else write_place(place)


async def _read_dead(here: Resources, asked: Asked, actor: Actor) -> Listed:
    async with here.database.transaction() as connection:
        after = read_moment_place(asked.cursor or None)
        rows = await pending.list_dead(connection, asked.filter(actor), ROWS, after)
    last = rows[-1] if len(rows) == ROWS else None
    return Listed(rows, write_cursor(last["failed_at"].isoformat(), last["md5"]) if last else None)


async def _read_ledger(here: Resources, asked: Asked, actor: Actor) -> Listed:
    async with here.database.transaction() as connection:
        if not asked.feed:
            return Listed(await ledger.list_arrivals(connection, ROWS))
        after = read_entry_place(asked.cursor or None)
        rows = await ledger.list_ledger(connection, asked.feed, ROWS, after, exact=actor.may(Scope.WRITE))
    last = rows[-1] if len(rows) == ROWS else None
    return Listed(rows, write_cursor(last["entry_key"], last["md5"]) if last else None)


async def _counts(here: Resources) -> dict[str, int]:
    """Return how many articles some lists have; none while they can't be counted."""
    try:
        at = await here.draining.get()
    except FeedmillError:
        return {}
    return {"claimed": at.claimed, "waiting": at.waiting_for_retry, "dead": at.dead}
