"""What all pages share: the look, who asks, and how moments, spans and addresses are written."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from services.admin.access.sessions import csrf_token
from services.admin.actor import Actor, Scope
from services.api.access import Reader, cookies
from services.api.pages import words
from services.api.pages.assets import asset
from shared.build import read_version

Visitor = Reader
"""The parameter of a page: who asks. Others are sent to the login, and those who may not read are told so."""

NAVIGATION = (
    ("/", "Overview"),
    ("/feeds", "Feeds"),
    ("/hosts", "Hosts"),
    ("/articles", "Articles"),
    ("/dead-letters", "Dead letters"),
    ("/consumers", "Consumers"),
    ("/settings", "Settings"),
)

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src"
    " 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_TEMPLATES.filters |= words.FILTERS
_TEMPLATES.globals |= {"asset": asset, "navigation": NAVIGATION, "version": read_version()}


def render(request: Request, template: str, status: int = HTTPStatus.OK, /, **context: Any) -> HTMLResponse:
    """Return a page.

    Args:
        request: what is answered.
        template: its file in `templates/`, which extends `base.html`.
        status: of the answer.
        context: what the template shows, beside `visitor` (None: nobody), `may_write`, `may_consume`, `may_admin`.
    """
    actor: Actor | None = getattr(request.state, "actor", None)
    secret = cookies.read(request) if actor else None
    text = _TEMPLATES.get_template(template).render(
        path=request.url.path,
        visitor=actor,
        may_write=actor is not None and actor.may(Scope.WRITE),
        may_consume=actor is not None and actor.may(Scope.CONSUME),
        may_admin=actor is not None and actor.may(Scope.ADMIN),
        csrf=csrf_token(secret) if secret else None,
        **context,
    )
    return HTMLResponse(text, status, HEADERS)


def compile_templates() -> None:
    """Compile all of them, which takes a second: else the first visitors wait for it."""
    for name in _TEMPLATES.list_templates(["html"]):
        _TEMPLATES.get_template(name)


def login_path(request: Request) -> str:
    """Return the path of the login that leads back to this page."""
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return "/login" if target == "/" else f"/login?next={quote(target, safe='/')}"


def own_path(target: str) -> str:
    """Return the path of a page of ours; that of the overview if `target` may lead elsewhere."""
    is_ours = target.startswith("/") and not target.startswith(("//", "/login")) and "\\" not in target
    return target if is_ours and target.isprintable() else "/"
