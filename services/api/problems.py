"""Errors as RFC 9457 problems: what is wrong, in which field, and what to do.

Everything that a handler raises on purpose becomes one here, so no handler makes an error response itself.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import psycopg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from psycopg import errors
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from services.admin.errors import Conflict, Invalid, NotFound
from shared.errors import BrokerUnavailable, DatabaseBusy, DatabaseUnavailable, FeedmillError, Unavailable
from shared.observability.secrets import mask_credentials, mask_within

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
UNPROCESSABLE = HTTPStatus.UNPROCESSABLE_ENTITY
RETRY_SECONDS = 5
"""What a client is told to wait when a server of ours is away."""


class FieldError(BaseModel):
    """One value that can't be used."""

    field: str
    """Where it stands: `query.limit`, `tags.0`."""
    reason: str


class Problem(BaseModel):
    """RFC 9457."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    """A sentence that says what to do, too."""
    errors: list[FieldError] = []


class ProblemError(FeedmillError):
    """An answer that no error of `services.admin` stands for, such as 401 or 412."""

    def __init__(self, status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers


def problem(
    status: int, detail: str, errors: Sequence[FieldError] = (), headers: Mapping[str, str] | None = None
) -> Response:
    """Return the response; credentials in it are masked."""
    body = Problem(title=HTTPStatus(status).phrase, status=status, detail=mask_credentials(detail), errors=list(errors))
    return JSONResponse(mask_within(body.model_dump()), status, headers, MEDIA_TYPE)


def answers(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of an operation that may answer so, beside those that each may (`COMMON`)."""
    return {int(status): _described(status) for status in statuses}


def _described(status: HTTPStatus) -> dict[str, Any]:
    example = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": "…", "errors": []}
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": status.phrase, "content": {MEDIA_TYPE: {"schema": schema, "example": example}}}


COMMON = answers(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.MISDIRECTED_REQUEST,
    UNPROCESSABLE,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
"""What every operation may answer."""


Show = Callable[[Request, Response], Response]
"""Returns what is shown in place of a problem."""

Handler = Callable[[Request, Exception], Awaitable[Response]]


def handle_errors(app: FastAPI) -> None:
    """Let the app answer errors with problems, or with what `app.state.show` makes of them."""
    app.state.show = lambda _request, response: response
    app.add_exception_handler(FeedmillError, _shown(_of_ours))
    app.add_exception_handler(RequestValidationError, _shown(_of_request))
    app.add_exception_handler(HTTPException, _shown(_of_framework))
    app.add_exception_handler(errors.UndefinedTable, _shown(_of_old_tables))
    app.add_exception_handler(errors.UndefinedColumn, _shown(_of_old_tables))
    app.add_exception_handler(errors.UndefinedFunction, _shown(_of_old_tables))
    app.add_exception_handler(psycopg.DataError, _shown(_of_value))
    app.add_exception_handler(UnicodeEncodeError, _shown(_of_value))
    app.add_exception_handler(Exception, _shown(_of_bug))


def _shown(handler: Handler) -> Handler:
    async def answer(request: Request, error: Exception) -> Response:
        show: Show = request.app.state.show
        return show(request, await handler(request, error))

    return answer


async def answer_error(error: Exception, scope: Scope, receive: Receive, send: Send, show: Show | None = None) -> None:
    """Answer an error outside of the app's own handlers.

    Args:
        error: the error.
        scope: of the request (ASGI), as `receive` and `send`.
        receive: unused.
        send: takes the answer.
        show: in place of the app's own, outside of the app.

    Raises:
        Exception: the error, if it is none that these handle.
    """
    answers = (
        (FeedmillError, _of_ours),
        (HTTPException, _of_framework),
        ((errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction), _of_old_tables),
    )
    answer = next((answer for kinds, answer in answers if isinstance(error, kinds)), None)
    if answer is None:
        raise error
    request = Request(scope)
    show = scope["app"].state.show if "app" in scope else show
    response = await answer(request, error)
    if show:
        response = show(request, response)
    await response(scope, receive, send)


_STATUSES = {NotFound: HTTPStatus.NOT_FOUND, Conflict: HTTPStatus.CONFLICT}
"""Of errors that are not 422."""


async def _of_ours(_request: Request, error: Exception) -> Response:
    if isinstance(error, ProblemError):
        return problem(error.status, str(error), headers=error.headers)
    if isinstance(error, Unavailable):
        wait = {"Retry-After": f"{RETRY_SECONDS}"}
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, _what_to_do(error), headers=wait)
    status = next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), UNPROCESSABLE)
    field = error.field if isinstance(error, Invalid) else None
    return problem(status, str(error), [FieldError(field=field, reason=str(error))] if field else [])


def _what_to_do(error: Unavailable) -> str:
    match error:
        case BrokerUnavailable():
            return f"RabbitMQ is away: {error}. Look whether it runs, and at FEEDMILL_AMQP_URL"
        case DatabaseBusy():
            return f"PostgreSQL took too long: {error}. Try again"
        case DatabaseUnavailable() if "://" in str(error):  # else it names another remedy
            return f"PostgreSQL is away: {error}. Look whether it runs, and at FEEDMILL_DATABASE_URL"
    return str(error)


async def _of_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [FieldError(field=".".join(map(str, item["loc"])), reason=str(item["msg"])) for item in error.errors()]
    detail = "; ".join(f"{item.field}: {item.reason}" for item in found)
    kind = request.headers.get("content-type", "application/json")
    if "json" not in kind and any(item.field == "body" for item in found):
        detail = f"the body is announced as {kind[:100]}: send it with `Content-Type: application/json`"
    return problem(UNPROCESSABLE, detail, found)


_UNKNOWN = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}


async def _of_framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail, headers = str(error.detail), error.headers
    if error.status_code in _UNKNOWN and detail == HTTPStatus(error.status_code).phrase:
        detail = (
            f"there is no operation {request.method} {request.url.path} here: see /api/openapi.json; a command needs an"
            " API of its own version"
        )
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers = {"Allow": ", ".join(sorted(_allowed(request)))}
    return problem(error.status_code, detail, headers=headers)


def _allowed(request: Request) -> set[str]:
    """Return the methods of all routes that fit the path; Starlette names those of the first one."""
    fits = (route for route in request.app.state.routes if route.matches(request.scope)[0] is not Match.NONE)
    return {method for route in fits for method in route.methods or ()}


async def _of_old_tables(_request: Request, error: Exception) -> Response:
    return problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "the tables are missing or too old: run `feedmill migrate`",
    )


async def _of_value(request: Request, error: Exception) -> Response:
    """Answer what no model of a request refuses and no column takes, such as NUL or half of a surrogate pair."""
    log.warning("a value was refused: %s %s: %s", request.method, request.url.path, error)
    reason = "a text has half of a surrogate pair" if isinstance(error, UnicodeEncodeError) else str(error)
    return problem(UNPROCESSABLE, f"a value can't be used: {reason.splitlines()[0]}")


async def _of_bug(request: Request, error: Exception) -> Response:
    log.error("a bug: %s %s", request.method, request.url.path, exc_info=error)
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "a bug of ours; the API's log has the details")
