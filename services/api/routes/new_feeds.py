"""Adding a feed, or the feed of a page."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from services.admin import adding, feed_edits, feeds
from services.admin.adding import How, Looked, SeveralFeeds
from services.admin.discovery import Found
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
        looked = await _look(here, feed, body)
    except SeveralFeeds as found:
        return _several(found)
    feed, fetched = adding.found_feed(feed, looked.found)
    async with here.database.transaction() as connection:
        id_, is_new = await feed_edits.create_feed(
            connection, actor, feed, here.url_rules, fetched.claim_id if fetched else None
        )
    if is_new and fetched:
        await asyncio.to_thread(adding.write_first_poll, str(here.settings.database_url), id_, fetched)
    async with here.database.transaction() as connection:
        edition = await feed_edits.read_edition(connection, id_)
        row = await feeds.read_feed(connection, here.retry_rules(), id_)
    response.status_code = HTTPStatus.CREATED if is_new else HTTPStatus.OK
    response.headers["ETag"] = quote(edition)
    if is_new:
        response.headers["Location"] = f"/api/feeds/{id_}"
    return AddedFeed(**row, is_new=is_new, notes=list(looked.notes))


async def _look(here: Resources, feed: Feed, body: NewFeed) -> Looked:
    if not adding.needs_look(feed, body.check):
        return Looked(Found(feed.url))
    how = How(unless_registered=body.check is None, ask=body.choose == "ask")
    url = str(here.settings.database_url)
    return await here.searches.run(here.url_rules.group_of(feed.url), adding.look, url, feed, here.fetcher, how)


def _several(found: SeveralFeeds) -> Response:
    """Return the problem. URLs of candidates stand as they are, since one of them comes back in the next request."""
    candidates = [{"url": one.url, "title": safe_to_show(one.title, TITLE_CHARACTERS)} for one in found.feeds]
    shared = Problem(type=SEVERAL, title=CONFLICT.phrase, status=CONFLICT, detail=mask_credentials(str(found)))
    return JSONResponse(shared.model_dump() | {"candidates": candidates}, CONFLICT, media_type=MEDIA_TYPE)
