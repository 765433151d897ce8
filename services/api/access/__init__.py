"""Who may ask for what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Request

from services.admin.actor import Actor, Scope
from services.api.problems import ProblemError

Authenticate = Callable[[Request], Awaitable[Actor]]
"""Returns who asks. Raises ProblemError (401) if that is unknown."""


def _needs(*scopes: Scope) -> Callable[[Request], Awaitable[Actor]]:
    async def check(request: Request) -> Actor:
        authenticate: Authenticate = request.app.state.authenticate
        actor = await authenticate(request)
        if not any(map(actor.may, scopes)):
            wanted = " or ".join(f"`{scope}`" for scope in scopes)
            raise ProblemError(HTTPStatus.FORBIDDEN, f"this needs a token with the scope {wanted}")
        return actor

    return check


Reader = Annotated[Actor, Depends(_needs(Scope.READ))]
Editor = Annotated[Actor, Depends(_needs(Scope.WRITE))]
Consumer = Annotated[Actor, Depends(_needs(Scope.CONSUME))]
ArticleReader = Annotated[Actor, Depends(_needs(Scope.READ, Scope.CONSUME))]
Admin = Annotated[Actor, Depends(_needs(Scope.ADMIN))]
