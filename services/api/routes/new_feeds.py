"""Adding a feed, or the feed of a page."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from services.admin.actor import Actor
from services.admin.feeds import adding
from services.admin.feeds import edits as feed_edits
from services.admin.feeds import listing as feeds
from services.admin.feeds.adding import How, SeveralFeeds
from services.admin.registry import NewFeed as Feed
from services.api.access import Editor
from services.api.access.idempotency import CreatingRoute
from services.api.etags import quote
from services.api.models.feeds import AddedFeed, NewFeed
from services.api.problems import MEDIA_TYPE, Problem, answers
from services.api.resources import Here, Resources
from services.api.routes.feeds import ETAG
from shared.observability.display import safe_to_show
from shared.observability.secrets import mask_credentials
from shared.wire.results import FeedFetched

router = APIRouter(tags=["feeds"], route_class=CreatingRoute)

CONFLICT = HTTPStatus.CONFLICT
SEVERAL = "urn:feedmill:problem:several-feeds"
TITLE_CHARACTERS = 200

_CANDIDATE: dict[str, Any] = {
    "type": "object",
    "required": ["url", "title"],
    "properties": {"url": {"type": "string"}, "title": {"type": "string"}},
}
_SEVERAL_SCHEMA: dict[str, Any] = {
    "allOf": [
        {"$ref": "#/components/schemas/Problem"},
        {"type": "object", "properties": {"candidates": {"type": "array", "items": _CANDIDATE}}},
    ]
}
_SEVERAL_EXAMPLE = {
    "type": SEVERAL,
    "title": "Conflict",
    "status": 409,
    "detail": "https://news.example/: this page links to 2 feeds. Choose one of `candidates`, and …",
    "errors": [],
    "candidates": [{"url": "https://news.example/feed", "title": "Posts"}],
}


def _responses() -> dict[int | str, dict[str, Any]]:
    created = {"Location": {"description": "Where the feed is.", "schema": {"type": "string"}}, **ETAG}
    conflict = answers(HTTPStatus.CONFLICT)[409]
    conflict["content"][MEDIA_TYPE] = {"schema": _SEVERAL_SCHEMA, "example": _SEVERAL_EXAMPLE}
    there = {"description": "It was there already, and is unchanged.", "model": AddedFeed, "headers": ETAG}
    return {201: {"headers": created}, 200: there, 409: conflict}


@router.post(
    "/api/feeds",
    summary="Add a feed",
    status_code=HTTPStatus.CREATED,
    response_model=AddedFeed,
    responses=_responses(),
)
async def create_feed(here: Here, actor: Editor, body: NewFeed, response: Response) -> AddedFeed | Response:
    """Register a feed, or the feed that a page links to; it is due at once, unless the look for it was its first poll.

    Only a URL that does not look like a feed's is requested, within its host's limits; that may take a minute.
    """
    given = body.model_dump(exclude={"check", "choose", "found_at"})
    feed = adding.check_feed(given, here.url_rules, body.found_at)
    try:
        added, notes = await _add(here, actor, feed, body)
    except SeveralFeeds as found:
        return _several(found)
    response.status_code = HTTPStatus.CREATED if added.is_new else HTTPStatus.OK
    response.headers["ETag"] = quote(added.edition)
    if added.is_new:
        response.headers["Location"] = f"/api/feeds/{added.row['id']}"
    return AddedFeed(**added.row, is_new=added.is_new, notes=list(notes))


class _Added(NamedTuple):
    row: dict[str, Any]
    is_new: bool
    edition: str


async def _add(here: Resources, actor: Actor, feed: Feed, body: NewFeed) -> tuple[_Added, tuple[str, ...]]:
    """Return the feed that is registered now, and what a person should know."""
    if not adding.needs_look(feed, body.check):
        return await _register(here, actor, feed, None), ()
    how = How(unless_registered=body.check is None, ask=body.choose == "ask")
    url = str(here.settings.database_url)
    # The turn lasts until the feed is registered: those who wait with the same URL then make no request.
    async with here.searches.turn(here.url_rules.group_of(feed.url)) as turn:
        looked = await turn.run(adding.look, url, feed, here.fetcher, how)
        feed, fetched = adding.found_feed(feed, looked.found)
        added = await _register(here, actor, feed, fetched)
        if not (added.is_new and fetched):
            return added, looked.notes
        id_ = added.row["id"]
        await turn.run(adding.write_first_poll, url, id_, fetched)
    async with here.database.transaction() as connection:
        return added._replace(row=await feeds.read_feed(connection, here.retry_rules(), id_)), looked.notes


async def _register(here: Resources, actor: Actor, feed: Feed, fetched: FeedFetched | None) -> _Added:
    claim_id = fetched.claim_id if fetched else None
    async with here.database.transaction() as connection:
        id_, is_new = await feed_edits.create_feed(connection, actor, feed, here.url_rules, claim_id)
        edition = await feed_edits.read_edition(connection, id_)
        return _Added(await feeds.read_feed(connection, here.retry_rules(), id_), is_new, edition)


def _several(found: SeveralFeeds) -> Response:
    """Return the problem. URLs of candidates stand as they are, since one of them comes back in the next request."""
    candidates = [{"url": one.url, "title": safe_to_show(one.title, TITLE_CHARACTERS)} for one in found.feeds]
    shared = Problem(type=SEVERAL, title=CONFLICT.phrase, status=CONFLICT, detail=mask_credentials(str(found)))
    return JSONResponse(shared.model_dump() | {"candidates": candidates}, CONFLICT, media_type=MEDIA_TYPE)
