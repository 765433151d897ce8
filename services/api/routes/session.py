"""Logins of browsers."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from psycopg import errors

from services.admin.access import sessions
from services.admin.access.tokens import secret_hash
from services.admin.actor import Actor
from services.api.access import Authenticate, Known, cookies
from services.api.access.bearer import unauthorized
from services.api.models.access import Login, Session
from services.api.problems import ProblemError
from services.api.resources import Here

router = APIRouter(prefix="/api/session", tags=["access"])


@router.post("", status_code=HTTPStatus.CREATED, summary="Log in")
async def log_in(here: Here, request: Request, response: Response, login: Login) -> Session:
    """With a token; the answer sets a cookie that may do what the token may. It needs https, or this machine."""
    cookies.require_safe(request)
    authenticate: Authenticate = request.app.state.authenticate
    header = (b"authorization", f"Bearer {login.token}".encode())
    actor = await authenticate(Request({**request.scope, "headers": [header]}))
    if not actor.token_id:
        raise ProblemError(HTTPStatus.FORBIDDEN, "there is no login without a token of this API")
    try:
        async with here.database.transaction() as connection:
            secret = await sessions.begin_session(connection, actor)
            grant = await sessions.find_session(connection, secret_hash(secret))
    except errors.ForeignKeyViolation:
        raise unauthorized("the token was deleted a moment ago") from None
    if grant:
        here.remembered.add(grant, is_session=True, is_used=False)
    cookies.write(request, response, secret)
    return _shown(actor, secret)


@router.get("", summary="Read the login")
async def read_session(request: Request, actor: Known) -> Session:
    """With the CSRF token that changes by cookie need."""
    return _shown(actor, cookies.read(request))


@router.delete("", status_code=HTTPStatus.NO_CONTENT, summary="Log out")
async def log_out(here: Here, request: Request, response: Response, actor: Known) -> None:
    """The session ends, and its cookie is taken away; the token stays good."""
    secret = cookies.read(request)
    if secret:
        async with here.database.transaction() as connection:
            await sessions.end_session(connection, actor, secret)
        here.remembered.end(secret_hash(secret))
    cookies.clear(request, response)


def _shown(actor: Actor, secret: str | None) -> Session:
    csrf = sessions.csrf_token(secret) if secret else None
    return Session(name=actor.name, scopes=sorted(actor.scopes), csrf_token=csrf)
