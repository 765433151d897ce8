"""Articles: those that wait for a consumer, the dead ones, and the ledger of all that came."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query

from services.admin.actor import Scope
from services.admin.articles import counts, ledger, pending, single
from services.admin.articles.pending import Filter, Labels, State, place_of, to_utc
from services.admin.errors import Invalid
from services.admin.feeds.tags import MAX_TAG_CHARACTERS
from services.api.access import ArticleReader, Reader
from services.api.models.articles import Article, ArticleCounts, DeadArticle, LedgerRow, PendingArticle
from services.api.models.claims import Md5
from services.api.models.texts import PLAIN
from services.api.moments import Moment
from services.api.paging import Cursor, Limit, Page, write_cursor
from services.api.places import read_entry_place, read_moment_place, read_place, write_place
from services.api.problems import answers
from services.api.resources import Here

router = APIRouter(tags=["articles"])

Feed = Annotated[
    str | None, Query(min_length=1, max_length=2000, pattern=PLAIN, description="Only of this feed: its id or URL.")
]


async def _labels(
    detected_language: Annotated[
        str | None, Query(max_length=50, pattern=PLAIN, description="Only texts in it; `und`: which do not tell it.")
    ] = None,
    topic: Annotated[
        str | None, Query(max_length=200, pattern=PLAIN, description="Only with this topic; `none`: without.")
    ] = None,
    duplicate_kind: Annotated[
        Literal["address", "title", "text", "any", "none"] | None,
        Query(description="Only duplicates of this kind; `any`: of each; `none`: only what is no duplicate."),
    ] = None,
) -> Labels:
    return Labels(detected_language, topic, duplicate_kind)


async def _filter(
    actor: ArticleReader,
    labels: Annotated[Labels, Depends(_labels)],
    feed: Feed = None,
    q: Annotated[
        str | None, Query(max_length=1000, pattern=PLAIN, description="Only with this text in title or URL.")
    ] = None,
    tag: Annotated[str | None, Query(max_length=MAX_TAG_CHARACTERS, description="Only of feeds with this tag.")] = None,
    language: Annotated[
        str | None,
        Query(max_length=50, pattern=PLAIN, description="Only those whose feed says this; `en` is also `en-GB`."),
    ] = None,
    md5: Annotated[str | None, Query(pattern="^[0-9a-fA-F]{4,32}$", description="The beginning of the key.")] = None,
    since: Annotated[Moment | None, Query(description="Only those that came (died) then or later.")] = None,
    until: Annotated[Moment | None, Query(description="Only those that came (died) before.")] = None,
) -> Filter:
    return Filter(
        feed, q, tag, language, md5, _given(since, "since"), _given(until, "until"), actor.may(Scope.WRITE), labels
    )


def _given(moment: datetime | None, name: str) -> datetime | None:
    try:
        return None if moment is None else to_utc(moment)
    except Invalid as error:
        raise Invalid(str(error), f"query.{name}") from error


Chosen = Annotated[Filter, Depends(_filter)]


@router.get("/api/articles", summary="List pending articles", responses=answers(HTTPStatus.NOT_FOUND))
async def list_pending_articles(
    here: Here,
    _actor: ArticleReader,
    chosen: Chosen,
    state: Annotated[State, Query(description="What they wait for; `pending`: all.")] = State.PENDING,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[PendingArticle]:
    """Pending articles in the order in which they are given out. 404: there is no feed of that URL."""
    after = read_place(cursor)
    async with here.database.transaction() as connection:
        as_of = after.as_of if after else await pending.read_clock(connection)
        rows = await pending.list_pending(connection, chosen, state, limit, as_of, after)
    last = rows[-1] if len(rows) == limit else None
    behind = last and write_place(place_of(last, as_of))
    return Page(items=[PendingArticle(**row) for row in rows], next=behind)


@router.get("/api/articles/dead", summary="List dead articles", responses=answers(HTTPStatus.NOT_FOUND))
async def list_dead_articles(
    here: Here, _actor: ArticleReader, chosen: Chosen, limit: Limit = 50, cursor: Cursor = None
) -> Page[DeadArticle]:
    """Articles that no consumer could digest, the latest first. 404: there is no feed of that URL."""
    after = read_moment_place(cursor)
    async with here.database.transaction() as connection:
        rows = await pending.list_dead(connection, chosen, limit, after)
    last = rows[-1] if len(rows) == limit else None
    behind = last and write_cursor(last["failed_at"].isoformat(), last["md5"])
    return Page(items=[DeadArticle(**row) for row in rows], next=behind)


@router.get("/api/articles/counts", summary="Count articles")
async def count_articles(here: Here, _actor: ArticleReader) -> ArticleCounts:
    """How many articles there are, by what they wait for."""
    async with here.database.transaction() as connection:
        return ArticleCounts(**await counts.count_articles(connection))


@router.get(
    "/api/articles/{md5}",
    summary="Show an article",
    response_model_exclude_unset=True,
    responses=answers(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
)
async def show_article(
    here: Here,
    _actor: ArticleReader,
    md5: Annotated[
        str, Path(max_length=100, pattern=PLAIN, description="Its key, or four or more characters of the beginning.")
    ],
) -> Article:
    """All columns of one article, pending or dead. 409: several keys begin so."""
    async with here.database.transaction() as connection:
        return Article(**await single.read_article(connection, md5))


@router.get("/api/ledger", summary="List articles that ever came", responses=answers(HTTPStatus.NOT_FOUND))
async def list_ledger(
    here: Here,
    actor: Reader,
    feed: Feed = None,
    md5: Annotated[list[Md5], Query(max_length=100, description="In place of `feed`: up to 100 keys.")] = [],  # noqa: B006 - read only
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[LedgerRow]:
    """Articles by feed or by key, pending or done long ago.

    Of articles whose entry has no id, `feed` gives those that the feed lists at present; the others are found by key.
    404: there is no feed of that URL.
    """
    if (feed is None) == (not md5):
        raise Invalid("say which: `feed` or `md5`", "query.feed")
    after = read_entry_place(cursor)
    async with here.database.transaction() as connection:
        if feed is None:
            return Page(items=[LedgerRow(**row) for row in await ledger.read_ledger(connection, md5)], next=None)
        rows = await ledger.list_ledger(connection, feed, limit, after, exact=actor.may(Scope.WRITE))
    last = rows[-1] if len(rows) == limit else None
    return Page(items=[LedgerRow(**row) for row in rows], next=last and write_cursor(last["entry_key"], last["md5"]))
