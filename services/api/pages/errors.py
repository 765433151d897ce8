"""Errors of pages, in the look of pages."""

from __future__ import annotations

import json
from http import HTTPStatus

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from services.api.pages.frame import login_path, render

_PROGRAMS = ("/api", "/events", "/static/")
"""Paths that no person looks at."""


def show_problem(request: Request, response: Response) -> Response:
    """Return a page in place of a problem: the login, or the problem's words."""
    if request.method not in {"GET", "HEAD"} or request.url.path.startswith(_PROGRAMS):
        return response
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        return RedirectResponse(login_path(request), HTTPStatus.SEE_OTHER)
    problem = json.loads(bytes(response.body))
    status = HTTPStatus(response.status_code)
    detail = problem["detail"]
    if status is HTTPStatus.NOT_FOUND and detail.startswith("there is no operation"):
        detail = "There is no such page."
    page = render(request, "error.html", status, title=status.phrase, detail=detail)
    for name in ("retry-after", "allow"):
        if name in response.headers:
            page.headers[name] = response.headers[name]
    return page
