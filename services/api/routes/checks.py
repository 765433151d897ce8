"""Checks of feeds: one, or many in a series."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, Response

from services.admin.feeds.checks import check_feeds, find_ids
from services.api.access import Editor
from services.api.models.checks import EXAMPLE, CheckedFeed, ChosenFeeds
from services.api.paths import FeedId
from services.api.problems import answers, problem
from services.api.resources import Here
from services.api.streams import LINES, Lines, Streamed, lines_like, lines_of
from services.api.turns import Places
from shared.errors import FeedmillError

router = APIRouter(prefix="/api/feeds", tags=["feeds"])

ONES_AT_ONCE = 16
SERIES_AT_ONCE = 2
"""In one process. Each single check has a database connection of its own, a series eight."""

TAKEN = "too many checks are under way"

_ones, _series = Places(ONES_AT_ONCE, TAKEN), Places(SERIES_AT_ONCE, TAKEN)


@router.post("/{feed:digits}/check", summary="Check a feed", responses=answers(HTTPStatus.NOT_FOUND))
async def check_feed(here: Here, _actor: Editor, feed: FeedId) -> CheckedFeed:
    """Fetch a feed once, in its host's turn, read it as the pipeline would, and write nothing."""
    database_url, settings = str(here.settings.database_url), here.fetcher

    def check() -> dict[str, Any]:
        (id_,) = find_ids(database_url, [feed])
        return next(iter(check_feeds(database_url, settings, ids=[id_])))

    with _ones.place():
        return CheckedFeed(**await anyio.to_thread.run_sync(check))


@router.post(
    "/check",
    summary="Check feeds",
    response_class=Lines,
    responses=answers(HTTPStatus.NOT_FOUND)
    | lines_like(EXAMPLE, description="A JSON object a line, as each check ends; `error` ends the answer."),
)
async def check_series(here: Here, _actor: Editor, chosen: ChosenFeeds) -> Response:
    """Check feeds, eight at a time, and those of one host one after the other.

    A client that goes away ends the series.
    """
    database_url = str(here.settings.database_url)
    with _series.place(keep=True):
        given = chosen.feeds
        ids = None if given is None else await anyio.to_thread.run_sync(find_ids, database_url, given)
        found = check_feeds(database_url, here.fetcher, ids=ids, tag=chosen.tag, source_type=chosen.source_type)

        async def end() -> None:
            try:
                await anyio.to_thread.run_sync(found.close)
            finally:
                _series.give_back()

        return Streamed(lines_of(found, _encode, _refusal), LINES, at_end=end)


def _encode(row: dict[str, Any]) -> bytes:
    return CheckedFeed(**row).model_dump_json().encode() + b"\n"


def _refusal(error: FeedmillError) -> Response:
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
