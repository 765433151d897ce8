"""Freshness: how long articles took from their publication to their row."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from services.admin.errors import Invalid
from services.admin.health.freshness import read_freshness, require
from services.api.access import Reader
from services.api.models.freshness import Freshness
from services.api.models.texts import PLAIN
from services.api.problems import answers
from services.api.resources import Here

router = APIRouter(prefix="/api/freshness", tags=["health"])

OfFeed = Annotated[int | None, Query(ge=1, le=2**63 - 1, description="Only articles of this feed.")]
OfHost = Annotated[
    str | None, Query(min_length=1, max_length=2000, pattern=PLAIN, description="Only articles of this host's feeds.")
]


@router.get("", summary="Show how fresh articles are", responses=answers(HTTPStatus.NOT_FOUND))
async def show_freshness(here: Here, _actor: Reader, feed: OfFeed = None, host: OfHost = None) -> Freshness:
    """From an article's publication to its row: 50th, 95th and 99th percentile of a feed, of a host, or of all."""
    if feed is not None and host is not None:
        raise Invalid("host: give `feed` or `host`, not both", "query.host")
    async with here.database.transaction() as connection:
        await require(connection, feed=feed, host=host)
        found = await read_freshness(connection, feed=feed, host=host)
    return Freshness.model_validate(found)
