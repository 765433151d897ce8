"""The operations, a module per resource. A handler reads the request, calls `services.admin`, and shapes the answer."""

from __future__ import annotations

import re
from importlib import import_module

from fastapi import APIRouter

REQUESTS = {
    "checks": "/api/feeds/.*check",
    "lists": "/api/feeds/(import|export)",
    "feeds": "/api/(feeds|tags)",
    "new_feeds": "POST /api/feeds$",
    "fires": "/api/(feeds/.*fire|fires)",
    "sources": "/api/sources",
    "articles": "/api/(articles|ledger)",
    "claims": "POST /api/articles/",
    "dead_letters": "/api/dead-letters",
    "health": "/api/health",
    "freshness": "/api/freshness",
    "hosts": "/api/hosts",
    "stats": "/api/stats",
    "tokens": "/api/(me|tokens)",
    "session": "/api/session",
    "audit": "/api/audit",
}
"""All modules, in the order in which their routes are looked through, each with the requests that it may answer: a
regular expression of which a part of `METHOD path` has to fit. Several modules may fit."""


def find_routers(request: str | None = None) -> dict[str, APIRouter]:
    """Return the routers of all modules, or of those that may answer a request (`GET /api/feeds`), by module."""
    names = [name for name, requests in REQUESTS.items() if request is None or re.search(requests, request)]
    return {name: import_module(f"{__name__}.{name}").router for name in names}
