"""What consumers do over HTTP; docs/how-to/consume.md has the promises. Every call may be repeated."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request

from services.admin.actor import Actor
from services.admin.articles import claims
from services.api.access import Admin, Consumer
from services.api.models.claims import (
    Acked,
    AckRequest,
    Buried,
    BuryRequest,
    Claimed,
    ClaimedArticle,
    ClaimRequest,
    Failed,
    FailRequest,
    Failure,
    Released,
    ReleaseRequest,
    Renewed,
    RenewRequest,
    Revived,
    ReviveRequest,
)
from services.api.resources import Here

router = APIRouter(prefix="/api/articles", tags=["consumers"])

MOST_SECONDS = 30.0
"""The longest wait of a claim: shorter than what proxies cut."""


@router.post("/claim", summary="Claim articles")
async def claim_articles(
    request: Request,
    here: Here,
    actor: Consumer,
    body: Annotated[ClaimRequest, Body(default_factory=ClaimRequest)],
    wait: Annotated[
        float, Query(ge=0, le=MOST_SECONDS, allow_inf_nan=False, description="Seconds to wait while there is none.")
    ] = 0.0,
) -> Claimed:
    """Get articles that nobody else is given until the lease is over.

    With `wait` the answer comes as soon as there are some. Fewer than `max` doesn't mean that there are no more.
    """
    lease = timedelta(seconds=body.lease_seconds)

    async def look() -> list[dict[str, Any]]:
        async with here.database.transaction() as connection:
            await claims.call_as(connection, actor)
            return await claims.claim(connection, body.max, lease, body.max_expiries)

    gone = asyncio.create_task(_until_gone(request))
    try:
        rows = await here.arrivals.wait_for(look, wait, gone)
        if rows and gone.done():
            await _give_back(here, actor, rows)
    finally:
        gone.cancel()
    return Claimed(articles=[ClaimedArticle(**row) for row in rows])


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _give_back(here: Here, actor: Actor, rows: list[dict[str, Any]]) -> None:
    """Release what was claimed for somebody who has gone away: nobody has to wait for the end of the lease."""
    async with here.database.transaction() as connection:
        await claims.call_as(connection, actor)
        await claims.release(connection, [row["md5"] for row in rows], [rows[0]["lease_id"]])
    here.arrivals.wake()


@router.post("/ack", summary="Acknowledge articles")
async def ack_articles(here: Here, actor: Consumer, body: AckRequest) -> Acked:
    """Remove articles that are done, also those that another consumer holds by now."""
    md5s = [article.md5 for article in body.articles]
    async with here.database.transaction() as connection:
        await claims.call_as(connection, actor)
        hashes = [article.content_hash for article in body.articles]
        removed, left = await claims.acknowledge(connection, md5s, hashes)
        if body.reason is not None:
            await claims.audit_articles(connection, actor, "article.ack", md5s, done=removed, reason=body.reason)
    return Acked(acknowledged=removed, still_pending=left)


@router.post("/fail", summary="Report failures")
async def fail_articles(here: Here, actor: Consumer, body: FailRequest) -> Failed:
    """Count a failure: the articles come again after a pause, or are dead."""
    pause = None if body.retry_after_seconds is None else timedelta(seconds=body.retry_after_seconds)
    async with here.database.transaction() as connection:
        await claims.call_as(connection, actor)
        rows = await claims.fail(
            connection, body.md5s, body.leases, body.error, max_failures=body.max_failures, retry_after=pause
        )
    return Failed(failed=[Failure(**row) for row in rows])


@router.post("/renew", summary="Renew leases")
async def renew_articles(here: Here, _actor: Consumer, body: RenewRequest) -> Renewed:
    """Let the leases run from now."""
    async with here.database.transaction() as connection:
        held = await claims.renew(connection, body.md5s, body.leases, timedelta(seconds=body.lease_seconds))
    return Renewed(held=held)


@router.post("/release", summary="Release articles")
async def release_articles(here: Here, actor: Consumer, body: ReleaseRequest) -> Released:
    """Let others have the articles at once; nothing is counted."""
    async with here.database.transaction() as connection:
        await claims.call_as(connection, actor)
        released = await claims.release(connection, body.md5s, body.leases)
        if body.reason is not None:
            details = {"done": released, "reason": body.reason}
            await claims.audit_articles(connection, actor, "article.release", body.md5s, **details)
    here.arrivals.wake()
    return Released(released=released)


@router.post("/bury", summary="Move articles to the dead ones")
async def bury_articles(here: Here, actor: Consumer, body: BuryRequest) -> Buried:
    """Give the articles to no consumer any more; `revive` brings them back."""
    async with here.database.transaction() as connection:
        buried = await claims.bury(connection, body.md5s, body.reason)
        await claims.audit_articles(connection, actor, "article.bury", body.md5s, done=buried, reason=body.reason)
    return Buried(buried=buried)


@router.post("/revive", summary="Revive dead articles")
async def revive_articles(here: Here, actor: Admin, body: ReviveRequest) -> Revived:
    """Make dead articles pending again, with nothing counted against them."""
    if body.all:
        return Revived(revived=await claims.revive_all(here.database, actor))
    async with here.database.transaction() as connection:
        return Revived(revived=await claims.revive(connection, actor, body.md5s))
