"""Who may ask for what.

`Authenticated` closes every path that is not open, before a body is read or a route is looked for. A handler names the
scope that it needs by the type of a parameter: `Reader`, `Editor`, `Consumer`, `Admin`, or `Known` for anybody with a
token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyCookie, HTTPBearer
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from services.admin.actor import Actor, Scope
from services.api.access.bodies import LOGIN
from services.api.access.cookies import CSRF_HEADER, SECURE_NAME
from services.api.problems import ProblemError, answer_error

Authenticate = Callable[[Request], Awaitable[Actor]]
"""Returns who asks. Raises ProblemError (401) if that is unknown."""

OPEN = frozenset({LOGIN, ("GET", "/login")})
"""What needs no token ..."""

OPEN_FILES = "/static/"
"""... and neither do style and scripts, which the page of the login has, too."""

_BEARER = HTTPBearer(
    scheme_name="token",
    bearerFormat="fm_…",
    auto_error=False,
    description="A token. `security` of an operation names the scope that the token needs: `read`; `write`, which"
    " includes `read`; `consume`, to drain articles and nothing else; `admin`, which includes all.",
)
_COOKIE = APIKeyCookie(
    name=SECURE_NAME,
    scheme_name="session",
    auto_error=False,
    description=f"A login (`POST /api/session`), for pages. Changes need the header `{CSRF_HEADER}`, too.",
)


class Authenticated:
    """ASGI: finds out who asks, for `request.state.actor`; answers those whom nobody knows."""

    def __init__(self, app: ASGIApp, authenticate: Authenticate) -> None:
        self._app = app
        self._authenticate = authenticate

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Let those through whom `authenticate` knows, and all to what is open."""
        if scope["type"] == "http" and not _is_open(scope["method"], scope["path"]):
            request = Request(scope)
            try:
                request.state.actor = await self._authenticate(request)
            except Exception as error:  # noqa: BLE001 - raised again unless it is one of ours
                await answer_error(error, scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_open(method: str, path: str) -> bool:
    return (method, path) in OPEN or (method == "GET" and path.startswith(OPEN_FILES))


async def _known(
    request: Request, _bearer: Annotated[object, Depends(_BEARER)], _cookie: Annotated[object, Depends(_COOKIE)]
) -> Actor:
    actor: Actor = request.state.actor
    return actor


def _needs(*scopes: Scope) -> Callable[[Actor], Awaitable[Actor]]:
    async def check(actor: Annotated[Actor, Security(_known)]) -> Actor:
        if not any(map(actor.may, scopes)):
            wanted = " or ".join(f"`{scope}`" for scope in scopes)
            has = ", ".join(f"`{own}`" for own in sorted(actor.scopes))
            raise ProblemError(HTTPStatus.FORBIDDEN, f"this needs a token with the scope {wanted}; this one has {has}")
        return actor

    return check


Known = Annotated[Actor, Security(_known)]
Reader = Annotated[Actor, Security(_needs(Scope.READ), scopes=[Scope.READ])]
Editor = Annotated[Actor, Security(_needs(Scope.WRITE), scopes=[Scope.WRITE])]
Consumer = Annotated[Actor, Security(_needs(Scope.CONSUME), scopes=[Scope.CONSUME])]
ArticleReader = Annotated[Actor, Security(_needs(Scope.READ, Scope.CONSUME), scopes=[Scope.READ, Scope.CONSUME])]
"""Either of the two scopes will do."""
Admin = Annotated[Actor, Security(_needs(Scope.ADMIN), scopes=[Scope.ADMIN])]
