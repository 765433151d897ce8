"""The dashboard: pages that the server renders, a module each.

A page reads with the functions that the API's handlers call. What a person changes goes through the API, by the script.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from fastapi import APIRouter, FastAPI

PAGES = (
    "assets",
    "login",
    "events",
    "overview",
    "feeds",
    "feed",
    "hosts",
    "articles.lists",
    "articles.single",
    "articles.consumers",
    "dead_letters",
    "settings",
)
"""All modules with a router."""


def find_pages() -> Iterator[APIRouter]:
    """Yield the routers of all pages."""
    for name in PAGES:
        yield import_module(f"{__name__}.{name}").router


def show_errors_as_pages(app: FastAPI) -> None:
    """Let the app answer errors of pages with pages."""
    from services.api.pages.errors import show_problem  # not above: commands, which have no pages, start at once

    app.state.show = show_problem
