"""Dead letters: messages that could not be handled. Each request opens a session of its own with the broker."""

from __future__ import annotations

import logging
from collections import Counter
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from services.admin.actor import Actor, Scope, audit
from services.admin.articles.claims import NAMED
from services.admin.articles.pending import find_feed
from services.admin.dead_letters import letters as dead
from services.admin.dead_letters.ids import choose_letters, read_letter
from services.api.access import Admin, Reader
from services.api.models.dead_letters import (
    Letter,
    Letters,
    LettersRequest,
    Look,
    MessageId,
    Purged,
    PurgeRequest,
    Requeued,
    Service,
    WholeLetter,
)
from services.api.models.texts import PLAIN
from services.api.problems import answers
from services.api.resources import Here
from shared.errors import DatabaseUnavailable
from shared.observability.display import safe_to_show

log = logging.getLogger(__name__)

router = APIRouter(prefix="/api/dead-letters", tags=["dead letters"])

UNCLEAR = answers(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)


@router.get("", summary="List dead letters", responses=answers(HTTPStatus.NOT_FOUND))
async def list_dead_letters(
    here: Here,
    actor: Reader,
    service: Annotated[Service | None, Query()] = None,
    feed: Annotated[
        str | None, Query(min_length=1, max_length=2000, pattern=PLAIN, description="Only of this feed: id or URL.")
    ] = None,
    q: Annotated[str | None, Query(max_length=1000, description="Only with this text in one of the fields.")] = None,
    limit: Annotated[Look, Query()] = 100,
) -> Letters:
    """The oldest dead letters of each queue, which stay there. 404: there is no feed of that URL."""
    stages = dead.select_stages(here.topology, service)
    rows = [letter.summary() for letter in await dead.read_letters(here.broker(), here.topology, stages, limit)]
    more = max(Counter(row["queue"] for row in rows).values(), default=0) >= limit
    if feed is not None:
        id_ = await _feed_id(here, actor, feed)
        rows = [row for row in rows if str(row["feed_id"]) == str(id_)]
    if q is not None:
        rows = [row for row in rows if q.lower() in " ".join(map(str, row.values())).lower()]
    return Letters(items=[Letter(**row) for row in rows], more=more)


async def _feed_id(here: Here, actor: Actor, feed: str) -> int:
    if feed.isascii() and feed.isdecimal():
        return int(feed)
    async with here.database.transaction() as connection:
        return await find_feed(connection, feed, exact=actor.may(Scope.WRITE))


@router.get("/{message_id}", summary="Show a dead letter", responses=UNCLEAR)
async def show_dead_letter(
    here: Here,
    _actor: Reader,
    message_id: Annotated[MessageId, Path(description="Its id, or the beginning.")],
    service: Annotated[Service | None, Query()] = None,
    limit: Annotated[Look, Query()] = 1000,
) -> WholeLetter:
    """A letter with its headers and its body, without secrets. 409: several ids begin so."""
    stages = dead.select_stages(here.topology, service)
    letter = await read_letter(here.broker(), here.topology, stages, message_id, limit)
    headers = {safe_to_show(name): safe_to_show(value) for name, value in sorted(letter.delivery.headers.items())}
    return WholeLetter(**letter.summary(), headers=headers, body=letter.body())


@router.post("/requeue", summary="Requeue dead letters", responses=UNCLEAR)
async def requeue_dead_letters(here: Here, actor: Admin, body: LettersRequest) -> Requeued:
    """Send letters back to the queue where they failed, to be handled as if for the first time.

    404: an id fits none of those that were looked at; 409: it fits several. Then none is sent.
    """
    stages = dead.select_stages(here.topology, body.service)
    broker, topology = here.broker(), here.topology
    chosen = None if body.all else await choose_letters(broker, topology, stages, body.ids, body.limit)
    await _audit(here, actor, "dead_letter.requeue", chosen, body)
    ids = None if chosen is None else set(chosen)
    return Requeued(requeued=await dead.requeue_letters(broker, topology, stages, ids, body.limit))


@router.post("/purge", summary="Purge dead letters", responses=UNCLEAR)
async def purge_dead_letters(here: Here, actor: Admin, body: PurgeRequest) -> Purged:
    """Throw letters away for good. 404: an id fits none of those that were looked at; 409: it fits several."""
    stages = dead.select_stages(here.topology, body.service)
    broker, topology = here.broker(), here.topology
    chosen = await choose_letters(broker, topology, stages, body.ids, body.limit)
    if body.dry_run or not chosen:
        return Purged(purged=len(chosen), ids=chosen)
    await _audit(here, actor, "dead_letter.purge", chosen, body)
    return Purged(purged=await dead.purge_letters(broker, topology, stages, set(chosen), body.limit), ids=chosen)


async def _audit(here: Here, actor: Actor, action: str, ids: list[str] | None, body: LettersRequest) -> None:
    """Write the audit row, before anything is done: the broker has no transactions with the database.

    Who works at the servers themselves may do so while the database is away.
    """
    details: dict[str, Any] = {"service": body.service, "letters": "all" if ids is None else len(ids)}
    try:
        async with here.database.transaction() as connection:
            await audit(connection, actor, action, None, {**details, "ids": (ids or [])[:NAMED]})
    except DatabaseUnavailable as error:
        if actor.token_id:
            raise
        log.warning("not in the audit log, since the database is away: %s", error, extra={"action": action} | details)
