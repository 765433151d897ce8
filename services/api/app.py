"""Puts the API together."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI

from services.api.access import Authenticate
from services.api.problems import COMMON, handle_errors
from services.api.resources import Resources
from services.api.routes import feeds, fires
from shared.build import read_version

ROUTERS: tuple[APIRouter, ...] = (feeds.router, fires.router)


def make_app(resources: Resources, authenticate: Authenticate) -> FastAPI:
    """Return the API.

    Args:
        resources: what its handlers work with.
        authenticate: tells who asks.
    """
    app = FastAPI(
        title="Feedmill",
        version=read_version(),
        summary="Feeds in, articles out",
        openapi_url="/api/openapi.json",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        responses=COMMON,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.resources = resources
    app.state.authenticate = authenticate
    handle_errors(app)
    for router in ROUTERS:
        app.include_router(router)
    return app
