"""Authentication by a token or by the cookie of a session."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from hmac import compare_digest
from http import HTTPStatus

from fastapi import Request

from services.admin.access import sessions, tokens
from services.admin.access.remembered import Remembered
from services.admin.access.tokens import Grant
from services.admin.actor import Actor, Scope
from services.api.access import cookies
from services.api.access.asking import Asking, Find
from services.api.access.checks import READING
from services.api.access.failures import Failures
from services.api.problems import ProblemError
from shared.database.postgres import Database
from shared.errors import Unavailable


class TokenAccess:
    """Tells who asks, by the token or the session's cookie in a request.

    Args:
        database: where tokens are.
        remembered: `Resources.remembered`, so that what the API itself makes or ends counts at once.
        is_open: whether anybody may do everything without one. Only on loopback.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        database: Database,
        remembered: Remembered | None = None,
        *,
        is_open: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._asking = Asking(database)
        self._remembered = remembered or Remembered(clock)
        self._is_open = is_open
        self._failures = Failures(clock)
        self._lost_cookies = Failures(clock)
        """Of their own: pages that nobody looks after ask with ended sessions, and must not shut others out."""

    async def authenticate(self, request: Request) -> Actor:
        """Return who asks.

        Raises:
            ProblemError: 401 if there is no good token; 403 if a change by cookie has no CSRF token; 429 after too many
                wrong ones from one address.
        """
        address = request.client.host if request.client else None
        given = request.headers.getlist("authorization")
        if given:
            is_reading = request.method in READING
            grant = await self.check_token(given[0] if len(given) == 1 else "", address, is_reading=is_reading)
        elif secret := cookies.read(request):
            is_reading = request.method in READING
            grant = await self._check(secret, sessions.find_session, address, is_session=True, is_reading=is_reading)
            _check_csrf(request, secret)
        elif self._is_open and not _is_forwarded(request):
            return Actor("anybody", frozenset({Scope.ADMIN}), address=address)
        else:
            raise unauthorized(
                "this needs a token, in the header Authorization after the word Bearer (commands: FEEDMILL_API_TOKEN);"
                " `feedmill token create`, beside the database, makes one"
            )
        return Actor(grant.name, grant.scopes, grant.token_id, address)

    async def check_token(self, authorization: str, address: str | None, *, is_reading: bool = False) -> Grant:
        """Return what the token in an Authorization header allows. Raises as `authenticate`."""
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not tokens.TOKEN.fullmatch(token):
            if wait := self._failures.wait_seconds(address):
                raise _limited(wait)
            self._failures.note(address)
            raise unauthorized("the header Authorization holds no token of ours: send it once, `Bearer` and the token")
        return await self._check(token, tokens.find_grant, address, is_session=False, is_reading=is_reading)

    async def _check(
        self, secret: str, find: Find, address: str | None, *, is_session: bool, is_reading: bool
    ) -> Grant:
        hashed = tokens.secret_hash(secret)
        if known := self._remembered.read(hashed):
            return known
        failures = self._lost_cookies if is_session else self._failures
        # A token that was good before is not refused because others behind its address fail.
        is_limited = hashed not in self._remembered and failures.wait_seconds(address) > 0
        if is_limited:
            self._limit(failures, hashed, address, is_session=is_session)
        endings = self._remembered.endings
        before = self._remembered.read_while_away(hashed) if is_reading else None
        try:
            grant = await self._asking.find(find, hashed, patiently=before is None)
        except Unavailable:
            if before is None:
                raise
            return before
        if grant is None or not compare_digest(grant.secret_hash, hashed):
            self._remembered.refuse(hashed)
            if not is_limited:  # else those that are let through would make the wait longer and longer
                failures.note(address)
            raise _refused(is_session=is_session)
        if self._remembered.endings == endings:
            self._remembered.add(grant, is_session=is_session, is_used=True)
        return grant

    def _limit(self, failures: Failures, hashed: bytes, address: str | None, *, is_session: bool) -> None:
        """Let one secret a second through that this process has not seen, for it may be good.

        Raises:
            ProblemError: 429; 401 for a session that is known to have ended.
        """
        if self._remembered.is_refused(hashed):
            if is_session:
                raise _refused(is_session=True)
            raise _limited(failures.wait_seconds(address))
        if wait := failures.try_look(address):
            raise _limited(wait)

    async def note_uses(self) -> None:
        """Write which tokens were used, and move the ends of sessions; requests don't wait for it."""
        used = self._remembered.used()
        if not used:
            return
        for known in used:
            known.is_used = False
        try:
            async with self._database.transaction() as connection:
                await tokens.note_uses(connection, {known.grant.token_id for known in used})
                await sessions.extend_sessions(
                    connection, [known.grant.secret_hash for known in used if known.is_session]
                )
        except Exception:
            for known in used:
                known.is_used = True
            raise


def unauthorized(detail: str) -> ProblemError:
    """Return the answer 401."""
    return ProblemError(HTTPStatus.UNAUTHORIZED, detail, {"WWW-Authenticate": 'Bearer realm="feedmill"'})


def _refused(*, is_session: bool) -> ProblemError:
    return unauthorized(
        "the login has ended: log in again"
        if is_session
        else "the token is unknown, revoked or expired: see `feedmill token list`"
    )


def _limited(wait: float) -> ProblemError:
    seconds = math.ceil(wait)
    return ProblemError(
        HTTPStatus.TOO_MANY_REQUESTS,
        f"too many wrong tokens from this address: try again in {seconds} s",
        {"Retry-After": f"{seconds}"},
    )


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
    return any(name in {"forwarded", "via", "x-real-ip"} or name.startswith("x-forwarded-") for name in request.headers)
