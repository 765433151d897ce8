"""Puts the API together."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI
from starlette.routing import Route

from services.api.access import Authenticate, Authenticated
from services.api.access.bodies import JsonBodies
from services.api.openapi import describe
from services.api.problems import COMMON, handle_errors
from services.api.resources import Resources
from services.api.routes import (
    articles,
    audit,
    checks,
    claims,
    dead_letters,
    feeds,
    fires,
    health,
    hosts,
    lists,
    new_feeds,
    session,
    sources,
    stats,
    tokens,
)
from shared.build import read_version

ROUTERS: tuple[APIRouter, ...] = (
    checks.router,
    lists.router,  # before /api/feeds/{…}
    feeds.router,
    new_feeds.router,
    fires.router,
    sources.router,
    articles.router,
    claims.router,
    dead_letters.router,
    health.router,
    hosts.router,
    stats.router,
    tokens.router,
    session.router,
    audit.router,
)


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
    app.add_middleware(JsonBodies)
    app.add_middleware(Authenticated, authenticate=authenticate)  # first: who asks
    handle_errors(app)
    for router in ROUTERS:
        app.include_router(router)
    routes = (*app.routes, *(route for router in ROUTERS for route in router.routes))
    app.state.routes = [route for route in routes if isinstance(route, Route)]
    describe(app)
    return app
