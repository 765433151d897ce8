"""The cookie of a session."""

from __future__ import annotations

import re
from http import HTTPStatus

from fastapi import Request, Response

from services.admin.access.sessions import LONGEST_SECONDS
from services.api.problems import ProblemError

SECURE_NAME = "__Host-feedmill"
"""A browser takes it only over https, for this host alone and with the path /."""

LOOPBACK_NAME = "feedmill"
"""Over http, on this machine."""

CSRF_HEADER = "X-CSRF-Token"

_SECRET = re.compile(r"[0-9a-f]{64}", re.ASCII)


def read(request: Request) -> str | None:
    """Return the session's secret in a request; None if there is none."""
    secret = request.cookies.get(_name(request))
    return secret if secret and _SECRET.fullmatch(secret) else None


def write(request: Request, response: Response, secret: str) -> None:
    """Set the cookie."""
    is_secure = request.url.scheme == "https"
    response.set_cookie(
        _name(request), secret, max_age=LONGEST_SECONDS, path="/", secure=is_secure, httponly=True, samesite="lax"
    )


def clear(request: Request, response: Response) -> None:
    """Take the cookie away."""
    is_secure = request.url.scheme == "https"
    response.delete_cookie(_name(request), path="/", secure=is_secure, httponly=True, samesite="lax")


def require_safe(request: Request) -> None:
    """Refuse a login that others on the network could read.

    Raises:
        ProblemError: 403: over http from another machine.
    """
    name = (request.url.hostname or "").lower()
    is_here = name in {"localhost", "::1"} or name.endswith(".localhost") or name.startswith("127.")
    if request.url.scheme != "https" and not is_here:
        raise ProblemError(
            HTTPStatus.FORBIDDEN,
            "a login needs https: put a proxy in front, and name its network in FEEDMILL_API_PROXIES; or use a token"
            " in the header Authorization",
        )


def _name(request: Request) -> str:
    return SECURE_NAME if request.url.scheme == "https" else LOOPBACK_NAME
