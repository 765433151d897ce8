"""What is said when the API does not answer, or answers with an error: each sentence names the way out."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

import httpx
from pydantic import ValidationError

from shared.errors import ConfigurationError, FeedmillError, Unavailable

PROBLEM = "application/problem+json"
GATEWAY = {HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
"""A proxy's words for a server behind it that is away."""


class UnknownAnswer(ConfigurationError):
    """What answers is not the API, or not of this version."""


class Refused(ConfigurationError):
    """What the API says is wrong; `problem` is its whole answer (RFC 9457)."""

    def __init__(self, detail: str, problem: Mapping[str, Any]) -> None:
        super().__init__(detail)
        self.problem = problem


def no_answer(error: httpx.HTTPError) -> FeedmillError:
    """Return what to raise for a request without an answer."""
    place = _place(error.request.url)
    cause = next((cause for cause in _causes(error) if isinstance(cause, ssl.SSLError)), None)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return ConfigurationError(
            f"the certificate of {place} is not to be trusted: {cause.verify_message}. SSL_CERT_FILE may name a file"
            " with its authority's certificate"
        )
    if cause is not None or (isinstance(error, httpx.ProtocolError) and not _ended_early(error)):
        return UnknownAnswer(
            f"what listens at {place} does not speak {error.request.url.scheme} ({_reason(error)}): look at"
            " FEEDMILL_API_URL"
        )
    if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
        return Unavailable(f"the API at {place} took too long to answer; it may still do what it was asked for")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Unavailable(
            f"nothing answers at {place} ({_reason(error)}): look whether the API runs, and at FEEDMILL_API_URL"
        )
    return Unavailable(
        f"the connection to the API at {place} ended early ({_reason(error)}); it may still do what it was asked for"
    )


def check(answer: httpx.Response, *, has_token: bool = True) -> None:
    """Raise what the answer says is wrong, if it does. Its body has been read."""
    if answer.is_success and not answer.headers.get("content-type", "").startswith("text/html"):
        return
    place, status = _place(answer.request.url), answer.status_code
    if answer.is_redirect:
        raise UnknownAnswer(
            f"{place} answers with a redirect to {answer.headers['location']!r}, which is not followed, since a token"
            " is for one host: set FEEDMILL_API_URL to the address of the API itself"
        )
    problem = _read_problem(answer)
    if problem is None:
        if status in GATEWAY:
            raise Unavailable(f"a proxy at {place} answers with status {status}: look whether the API behind it runs")
        raise UnknownAnswer(
            f"{_without_query(answer.request.url)} answers with status {status} and"
            f" {answer.headers.get('content-type', 'no content type')}: is FEEDMILL_API_URL the API's address?"
        )
    detail = str(problem["detail"])
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        raise Unavailable(detail)
    raise Refused(detail + _about_token(status, has_token=has_token), problem)


def _about_token(status: int, *, has_token: bool) -> str:
    match status:
        case HTTPStatus.UNAUTHORIZED if not has_token:
            return " (FEEDMILL_API_TOKEN is not set; `feedmill token create` beside the database makes a token)"
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return " (the token is that of FEEDMILL_API_TOKEN)"
    return ""


def not_of_this_version(request: httpx.Request, error: Exception) -> UnknownAnswer:
    """Return what to raise for an answer that the command can't read; `error` says why."""
    return UnknownAnswer(
        f"the answer to {request.method} {_without_query(request.url)} is not one that this command knows"
        f" ({_describe(error)}): is FEEDMILL_API_URL the API's address, and is it of the command's version?"
    )


def _describe(error: Exception) -> str:
    """Return what is wrong with an answer, without the answer."""
    match error:
        case ValidationError():
            first = error.errors(include_url=False, include_input=False)[0]
            return ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
        case KeyError():
            return f"{error} is missing"
        case ValueError():
            return "it is no JSON"
    return "it is of another form"


def _read_problem(answer: httpx.Response) -> dict[str, Any] | None:
    """Return the problem with its sentence; None: this is none, so something else than the API answers."""
    if not is_problem(answer):
        return None
    try:
        problem = answer.json()
    except ValueError:
        return None
    return problem if isinstance(problem, dict) and "detail" in problem else None


def is_problem(answer: httpx.Response) -> bool:
    """Return whether the API answers with an error of its own."""
    kind: str = answer.headers.get("content-type", "")
    return kind.partition(";")[0] == PROBLEM


def _place(url: httpx.URL) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}" + (f":{url.port}" if url.port else "")


def _without_query(url: httpx.URL) -> str:
    return f"{_place(url)}{url.path}"


def _ended_early(error: httpx.ProtocolError) -> bool:
    return "closed connection" in str(error) or "disconnected" in str(error)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, what caused it, and so on; the members of a group, too."""
    at: BaseException | None = error
    while at is not None:
        yield at
        if isinstance(at, BaseExceptionGroup):
            for member in at.exceptions:
                yield from _causes(member)
        at = at.__cause__ or at.__context__


def _reason(error: httpx.HTTPError) -> str:
    """Return the system's words, if it is the system that refuses."""
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
    return str(error) or type(error).__name__
