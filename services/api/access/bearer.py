"""Authentication by a token or by the cookie of a session."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hmac import compare_digest
from http import HTTPStatus

from fastapi import Request

from services.admin.access import sessions, tokens
from services.admin.access.tokens import Grant
from services.admin.actor import Actor, Scope
from services.api.access import cookies
from services.api.access.checks import READING
from services.api.access.failures import Failures
from services.api.problems import ProblemError
from shared.database.postgres import Connection, Database

TRUSTED_SECONDS = 5.0
"""For so long a process takes a token or a session for good without asking the database: a revoked one ends then."""

MOST_REMEMBERED = 1000

Find = Callable[[Connection, bytes], Awaitable[Grant | None]]


@dataclass
class _Remembered:
    grant: Grant
    until: float
    is_session: bool
    is_used: bool = True
    """Since the last round of `note_uses`."""


class TokenAccess:
    """Tells who asks, by the token or the session's cookie in a request.

    Args:
        database: where tokens are.
        is_open: whether anybody may do everything without one. Only on loopback.
        clock: monotonic seconds.
    """

    def __init__(
        self, database: Database, *, is_open: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._is_open = is_open
        self._clock = clock
        self._failures = Failures(clock)
        self._remembered: OrderedDict[bytes, _Remembered] = OrderedDict()

    async def authenticate(self, request: Request) -> Actor:
        """Return who asks.

        Raises:
            ProblemError: 401 if there is no good token; 403 if a change by cookie has no CSRF token; 429 after too many
                wrong ones from one address.
        """
        address = request.client.host if request.client else None
        given = request.headers.getlist("authorization")
        if given:
            grant = await self.check_token(given[0] if len(given) == 1 else "", address)
        elif secret := cookies.read(request):
            grant = await self._check(secret, sessions.find_session, address, is_session=True)
            _check_csrf(request, secret)
        elif self._is_open and not _is_forwarded(request):
            return Actor("anybody", frozenset({Scope.ADMIN}), address=address)
        else:
            raise unauthorized(
                "this needs a token, in the header Authorization after the word Bearer (commands: FEEDMILL_API_TOKEN);"
                " `feedmill token create`, beside the database, makes one"
            )
        return Actor(grant.name, grant.scopes, grant.token_id, address)

    async def check_token(self, authorization: str, address: str | None) -> Grant:
        """Return what the token in an Authorization header allows. Raises as `authenticate`."""
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not tokens.TOKEN.fullmatch(token):
            self._refuse_if_failing(address)
            self._failures.note(address)
            raise unauthorized("the header Authorization holds no token of ours: send it once, `Bearer` and the token")
        return await self._check(token, tokens.find_grant, address, is_session=False)

    async def _check(self, secret: str, find: Find, address: str | None, *, is_session: bool) -> Grant:
        hashed = tokens.secret_hash(secret)
        known = self._remembered.get(hashed)
        if known and self._clock() < known.until:
            known.is_used = True
            return known.grant
        if not known:
            # A token that was good before is not refused because others behind its address fail.
            self._refuse_if_failing(address)
        async with self._database.transaction() as connection:
            grant = await find(connection, hashed)
        if grant is None or not compare_digest(grant.secret_hash, hashed):
            self._remembered.pop(hashed, None)
            self._failures.note(address)
            raise unauthorized(
                "the login has ended: log in again"
                if is_session
                else "the token is unknown, revoked or expired: see `feedmill token list`"
            )
        self._remember(hashed, grant, is_session=is_session)
        return grant

    def _remember(self, hashed: bytes, grant: Grant, *, is_session: bool) -> None:
        left = math.inf if grant.seconds_left is None else grant.seconds_left
        until = self._clock() + min(TRUSTED_SECONDS, left)
        self._remembered.pop(hashed, None)
        self._remembered[hashed] = _Remembered(grant, until, is_session)
        if len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)

    def _refuse_if_failing(self, address: str | None) -> None:
        wait = self._failures.wait_seconds(address)
        if wait > 0:
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"too many wrong tokens from this address: try again in {math.ceil(wait)} s",
                {"Retry-After": f"{math.ceil(wait)}"},
            )

    async def note_uses(self) -> None:
        """Write which tokens were used, and move the ends of sessions; requests don't wait for it."""
        used = [(hashed, known) for hashed, known in self._remembered.items() if known.is_used]
        if not used:
            return
        for _, known in used:
            known.is_used = False
        try:
            async with self._database.transaction() as connection:
                await tokens.note_uses(connection, {known.grant.token_id for _, known in used})
                await sessions.extend_sessions(connection, [hashed for hashed, known in used if known.is_session])
        except Exception:
            for _, known in used:
                known.is_used = True
            raise


def unauthorized(detail: str) -> ProblemError:
    """Return the answer 401."""
    return ProblemError(HTTPStatus.UNAUTHORIZED, detail, {"WWW-Authenticate": 'Bearer realm="feedmill"'})


def _check_csrf(request: Request, secret: str) -> None:
    if request.method in READING:
        return
    given = request.headers.get(cookies.CSRF_HEADER, "")
    if not compare_digest(given.encode(), sessions.csrf_token(secret).encode()):
        raise ProblemError(
            HTTPStatus.FORBIDDEN,
            f"a change by cookie needs the header {cookies.CSRF_HEADER}: GET /api/session returns its value",
        )


def _is_forwarded(request: Request) -> bool:
    """Return whether a proxy sent the request: it may have come from anywhere."""
    return any(name in request.headers for name in ("forwarded", "x-forwarded-for", "x-real-ip", "via"))
