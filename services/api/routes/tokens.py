"""Tokens, and who asks."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query

from services.admin.access import tokens
from services.api.access import Admin, Known
from services.api.access.idempotency import SecretRoute
from services.api.models.access import CreatedToken, Me, NewToken, TokenRow
from services.api.models.texts import PLAIN
from services.api.paging import Cursor, Limit, Page, read_cursor, write_cursor
from services.api.problems import answers
from services.api.resources import Here

router = APIRouter(prefix="/api", tags=["access"], route_class=SecretRoute)

TokenId = Annotated[int, Path(ge=1, lt=2**63, description="A token's id.")]
Name = Annotated[str | None, Query(max_length=100, pattern=PLAIN, description="Only tokens of this name.")]


@router.get("/me", summary="Say who asks")
async def read_me(here: Here, actor: Known) -> Me:
    """Any token will do."""
    row = None
    if actor.token_id:
        async with here.database.transaction() as connection:
            row = await tokens.read_token(connection, actor.token_id)
    return Me(
        name=actor.name,
        token_id=actor.token_id or None,
        scopes=sorted(actor.scopes),
        expires_at=row["expires_at"] if row else None,
    )


@router.get("/tokens", summary="List tokens")
async def list_tokens(
    here: Here, _actor: Admin, name: Name = None, limit: Limit = 50, cursor: Cursor = None
) -> Page[TokenRow]:
    """By id; also those that were revoked or have expired, for as long as the audit log is kept."""
    after = read_cursor(cursor, [int])
    async with here.database.transaction() as connection:
        rows = await tokens.list_tokens(connection, name=name, limit=limit, after=after[0] if after else None)
    last = write_cursor(rows[-1]["id"]) if len(rows) == limit else None
    return Page(items=[TokenRow(**row) for row in rows], next=last)


@router.post("/tokens", status_code=HTTPStatus.CREATED, summary="Make a token", responses=answers(HTTPStatus.CONFLICT))
async def create_token(here: Here, actor: Admin, wanted: NewToken) -> CreatedToken:
    """The answer holds the token, which nobody can read again."""
    async with here.database.transaction() as connection:
        row = await tokens.create_token(
            connection,
            actor,
            name=wanted.name,
            scopes=set(wanted.scopes),
            lifetime_seconds=wanted.lifetime_seconds,
        )
        grant = await tokens.find_grant(connection, tokens.secret_hash(row["token"]))
    if grant:
        here.remembered.add(grant, is_session=False, is_used=False)
    return CreatedToken(**row)


@router.delete("/tokens/{token_id}", summary="Revoke a token", responses=answers(HTTPStatus.NOT_FOUND))
async def revoke_token(here: Here, actor: Admin, token_id: TokenId) -> TokenRow:
    """The token and its logins end within seconds, on every replica. Its row stays, for the audit log."""
    async with here.database.transaction() as connection:
        row = TokenRow(**await tokens.revoke_token(connection, actor, token_id))
    here.remembered.end_token(token_id)
    return row
