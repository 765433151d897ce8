"""Feeds: the registry, and one feed."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Response

from services.admin.actor import Actor, Scope
from services.admin.errors import Invalid
from services.admin.feed_health.rule import Word
from services.admin.feeds import edits as feed_edits
from services.admin.feeds import listing as feeds
from services.admin.feeds import retries, tags
from services.admin.feeds.listing import SORTS, Filters
from services.admin.feeds.states import State
from services.api.access import Editor, Reader
from services.api.etags import IfMatch, check_match, quote
from services.api.models.feeds import Attempt, Feed, FeedChanges, FeedRow, FeedUrl, PolledFeed, RemovedFeed, TagRow
from services.api.models.texts import PLAIN
from services.api.paging import Cursor, Limit, Page, read_cursor, write_cursor
from services.api.paths import FeedId
from services.api.problems import answers
from services.api.resources import Here, Resources
from shared.observability.secrets import mask_credentials

router = APIRouter(tags=["feeds"])

Text = Annotated[
    str | None, Query(max_length=1000, pattern=PLAIN, description="Only feeds with this text in name, title or URL.")
]
Tag = Annotated[
    str | None,
    Query(
        max_length=tags.MAX_TAG_CHARACTERS,
        pattern=PLAIN,
        description="Only feeds with this tag, in upper or lower case.",
    ),
]
InState = Annotated[State | None, Query(description="Only feeds in this state.")]
OfHealth = Annotated[Word | None, Query(description="Only feeds whose health is this word.")]
Host = Annotated[
    str | None, Query(max_length=2000, pattern=PLAIN, description="Only feeds of this host (politeness group).")
]
OfType = Annotated[str | None, Query(max_length=100, pattern=PLAIN, description="Only feeds of this source type.")]
OfUrl = Annotated[
    str | None,
    Query(
        max_length=10_000, pattern=PLAIN, description="Only the feed of this URL; of one with a password see lookup."
    ),
]
Order = Annotated[
    Literal[
        "id", "-id", "name", "-name", "next_fetch_at", "-next_fetch_at", "last_attempt_at", "-last_attempt_at",
        "last_success_at", "-last_success_at", "failures", "-failures",
    ],
    Query(description="By what; with `-` the other way round. Feeds without a value come last."),
]  # fmt: skip


async def _filters(
    q: Text = None,
    tag: Tag = None,
    state: InState = None,
    host: Host = None,
    source_type: OfType = None,
    url: OfUrl = None,
    health: OfHealth = None,
) -> Filters:
    return Filters(q, tag, state, host, source_type, url, health)


Chosen = Annotated[Filters, Depends(_filters)]

MISSING = answers(HTTPStatus.NOT_FOUND)
EDITED = answers(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)
ETAG = {"ETag": {"description": "The edition that people made; polls don't change it.", "schema": {"type": "string"}}}


@router.get("/api/feeds", summary="List feeds")
async def list_feeds(
    here: Here, actor: Reader, filters: Chosen, sort: Order = "id", limit: Limit = 50, cursor: Cursor = None
) -> Page[FeedRow]:
    """Feeds that fit all that is given.

    Passwords and tokens in URLs are not searched. A feed with one is found by `url` with the scope `write` only.
    """
    filters = replace(filters, exact=actor.may(Scope.WRITE))
    order = SORTS[sort]
    key = read_cursor(cursor, [str, order.kind, int])
    if key and key[0] != sort:
        raise Invalid("cursor: it belongs to another `sort`; give both as they were", "query.cursor")
    async with AsyncExitStack() as stack:
        if order.by != "id" or not filters.has_index:
            await stack.enter_async_context(here.scan())
        connection = await stack.enter_async_context(here.database.transaction())
        rows = await feeds.list_feeds(
            connection, here.retry_rules(), filters, order, limit=limit, after=(key[1], key[2]) if key else None
        )
    last = write_cursor(sort, rows[-1]["sort_key"], rows[-1]["id"]) if len(rows) == limit else None
    return Page(items=[FeedRow(**row) for row in rows], next=last)


@router.post("/api/feeds/lookup", summary="Find a feed by its URL", responses=MISSING)
async def find_feed(here: Here, actor: Reader, body: FeedUrl) -> Feed:
    """The feed that is registered with this URL. The URL goes in the body, since it may hold a password.

    With the scope `read` a feed with a password or a token in its URL is not found.
    """
    async with here.database.transaction() as connection:
        id_ = await feeds.find_by_url(connection, body.url, exact=actor.may(Scope.WRITE))
        if id_ is None:
            raise feeds.no_feed(body.url)
        return Feed(**await feeds.read_feed(connection, here.retry_rules(), id_))


@router.get("/api/feeds/{feed:digits}", summary="Show a feed", responses=MISSING | {200: {"headers": ETAG}})
async def read_feed(here: Here, _actor: Reader, feed: FeedId, response: Response) -> Feed:
    """One feed: its state, its health over a week, when it is polled and why."""
    async with here.database.transaction() as connection:
        edition = await feed_edits.read_edition(connection, feed)  # before: an older edition does no harm
        row = await feeds.read_feed(connection, here.retry_rules(), feed)
    response.headers["ETag"] = quote(edition)
    return Feed(**row)


@router.patch("/api/feeds/{feed:digits}", summary="Change a feed", responses=EDITED | {200: {"headers": ETAG}})
async def change_feed(
    here: Here, actor: Editor, feed: FeedId, changes: FeedChanges, response: Response, if_match: IfMatch = None
) -> Feed:
    """Change how a feed is polled, its name, its tags or its settings. Only what the body has is changed."""
    return await _change(here, actor, feed, changes.given(), response, if_match)


@router.post("/api/feeds/{feed:digits}/pause", summary="Pause a feed", responses=EDITED | {200: {"headers": ETAG}})
async def pause_feed(here: Here, actor: Editor, feed: FeedId, response: Response, if_match: IfMatch = None) -> Feed:
    """The feed is not polled until somebody resumes it."""
    return await _change(here, actor, feed, {"enabled": False}, response, if_match)


@router.post("/api/feeds/{feed:digits}/resume", summary="Resume a feed", responses=EDITED | {200: {"headers": ETAG}})
async def resume_feed(here: Here, actor: Editor, feed: FeedId, response: Response, if_match: IfMatch = None) -> Feed:
    """The feed is polled again, within five minutes at first, and its failures are forgotten."""
    return await _change(here, actor, feed, {"enabled": True}, response, if_match)


async def _change(
    here: Resources, actor: Actor, id_: int, given: dict[str, Any], response: Response, if_match: str | None
) -> Feed:
    async with here.database.transaction() as connection:
        feed = await feed_edits.lock_feed(connection, id_)
        check_match(if_match, feed_edits.edition_of(feed), f"feed {id_}")
        await feed_edits.change_feed(connection, actor, feed, given, here.url_rules)
        edition = await feed_edits.read_edition(connection, id_)
        row = await feeds.read_feed(connection, here.retry_rules(), id_)
    response.headers["ETag"] = quote(edition)
    return Feed(**row)


@router.post(
    "/api/feeds/{feed:digits}/fetch",
    summary="Poll a feed now",
    responses=answers(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
)
async def fetch_feed(here: Here, actor: Editor, feed: FeedId) -> PolledFeed:
    """Poll a feed ahead of its time or of its retry. A host that asked to be left alone is left alone."""
    servers = retries.Servers(
        here.database,
        here.broker(),
        here.topology,
        here.retrying,
        here.retry_rules(),
        here.fetcher.connect_failure_seconds,
    )
    return PolledFeed(**await retries.fetch_now(servers, actor, feed))


@router.delete(
    "/api/feeds/{feed:digits}",
    summary="Remove a feed",
    responses=answers(HTTPStatus.NOT_FOUND, HTTPStatus.PRECONDITION_FAILED),
)
async def remove_feed(here: Here, actor: Editor, feed: FeedId, if_match: IfMatch = None) -> RemovedFeed:
    """Remove a feed with its log and its pending articles. Articles seen are remembered: they don't come again."""
    async with here.database.transaction() as connection:
        locked = await feed_edits.lock_feed(connection, feed)
        check_match(if_match, feed_edits.edition_of(locked), f"feed {feed}")
        return RemovedFeed(id=feed, pending_articles=await feed_edits.remove_feed(connection, actor, feed))


@router.get("/api/feeds/{feed:digits}/fetches", summary="List a feed's fetches", responses=MISSING)
async def list_fetches(
    here: Here, _actor: Reader, feed: FeedId, limit: Limit = 50, cursor: Cursor = None
) -> Page[Attempt]:
    """The fetches of a feed, the latest first, as far back as the log is kept."""
    key = read_cursor(cursor, [int, int])
    async with here.database.transaction() as connection:
        rows = await feeds.read_attempts(connection, feed, limit, (key[0], key[1]) if key else None)
    last = write_cursor(feeds.micros(rows[-1]["started_at"]), rows[-1]["id"]) if len(rows) == limit else None
    return Page(items=[Attempt(**row) for row in rows], next=last)


@router.get("/api/tags", summary="List tags")
async def list_tags(here: Here, _actor: Reader, limit: Limit = 50, cursor: Cursor = None) -> Page[TagRow]:
    """The tags in use, with how many feeds have them; in upper and lower case they are the same."""
    key = read_cursor(cursor, [str])
    async with here.scan(), here.database.transaction() as connection:
        rows = await tags.list_tags(connection, limit=limit, after=key[0] if key else None)
    last = write_cursor(rows[-1]["tag_key"]) if len(rows) == limit else None
    return Page(items=[TagRow(**row | {"tag": mask_credentials(row["tag"])}) for row in rows], next=last)
