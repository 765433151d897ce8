"""Errors of pages, in the look of pages."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from services.api.pages.frame import NAVIGATION, login_path, render

_PROGRAMS = ("/events", "/static/")
"""Paths that no person looks at, unless a browser asks for a page there."""

_TITLES = {
    HTTPStatus.BAD_REQUEST: "This address can't be read",
    HTTPStatus.FORBIDDEN: "Your login doesn't allow this",
    HTTPStatus.NOT_FOUND: "There is no such page",
    HTTPStatus.METHOD_NOT_ALLOWED: "There is no such page",
    HTTPStatus.MISDIRECTED_REQUEST: "This is not the name of this server",
    HTTPStatus.UNPROCESSABLE_ENTITY: "This address is not valid",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many at once",
    HTTPStatus.INTERNAL_SERVER_ERROR: "That went wrong",
    HTTPStatus.SERVICE_UNAVAILABLE: "This can't be shown now",
}
_ONE_OF = {"feed": "feed", "host": "host", "md5": "article"}
"""What a value in a path stands for."""


def show_problem(request: Request, response: Response) -> Response:
    """Return a page in place of a problem: the login, or the problem's words."""
    path = request.url.path
    if request.method not in {"GET", "HEAD"} or path == "/api" or path.startswith("/api/"):
        return response
    if path.startswith(_PROGRAMS) and "text/html" not in request.headers.get("accept", ""):
        return response
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        return RedirectResponse(login_path(request), HTTPStatus.SEE_OTHER)
    problem = json.loads(bytes(response.body))
    status = HTTPStatus(response.status_code)
    title, detail = _TITLES.get(status, status.phrase), _for_people(status, problem)
    names = ((target, name) for target, name in NAVIGATION if target != "/" and path.startswith(target))
    page = render(
        request,
        "error.html",
        status,
        title=title,
        detail=detail,
        may_pass=status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS,
        list=next(names, None),
    )
    for name in ("retry-after", "allow"):
        if name in response.headers:
            page.headers[name] = response.headers[name]
    return page


def _for_people(status: HTTPStatus, problem: dict[str, Any]) -> str:
    """Return what a problem says, without what only the API's callers understand."""
    detail: str = problem["detail"]
    if status is HTTPStatus.NOT_FOUND:
        return (
            "Nothing is at this address."
            if detail.startswith("there is no operation")
            else detail.split(": `", maxsplit=1)[0]
        )
    if status is not HTTPStatus.UNPROCESSABLE_ENTITY or not problem["errors"]:
        return detail
    names = [error["field"].rpartition(".")[2] for error in problem["errors"]]
    if things := [_ONE_OF[name] for name in names if name in _ONE_OF and f"path.{name}" in detail]:
        return f"There is no such {things[0]}."
    if "cursor" in names:
        return "The place in the list that the address names is none of this list: begin at its first page."
    return f"It has a value that can't be used for {', '.join(f'`{name}`' for name in names)}."
