"""Puts the API together."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from services.api.access import Authenticate, Authenticated
from services.api.access.bodies import JsonBodies
from services.api.openapi import describe
from services.api.pages import find_pages, show_errors_as_pages
from services.api.problems import COMMON, handle_errors
from services.api.resources import Resources
from services.api.routes import find_routers
from shared.build import read_version


def make_app(resources: Resources, authenticate: Authenticate) -> FastAPI:
    """Return the API with its pages.

    Args:
        resources: what its handlers work with.
        authenticate: tells who asks.
    """
    app = _make_frame(resources, authenticate)
    for router in find_routers().values():
        _include(app, router)
    for router in find_pages():
        _include(app, router)
    show_errors_as_pages(app)
    describe(app)
    return app


def make_app_of_command(resources: Resources, authenticate: Authenticate) -> ASGIApp:
    """Return the API without description and pages, for few requests: what one needs is imported when it comes."""
    app = _make_frame(resources, authenticate)
    included: set[str] = set()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        for name, router in find_routers(f"{scope['method']} {scope['path']}").items():
            if name not in included:
                included.add(name)
                _include(app, router)
        await app(scope, receive, send)

    return answer


def _make_frame(resources: Resources, authenticate: Authenticate) -> FastAPI:
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
    app.state.routes = [route for route in app.routes if isinstance(route, Route)]
    app.add_middleware(JsonBodies)
    app.add_middleware(Authenticated, authenticate=authenticate)  # first: who asks
    handle_errors(app)
    return app


def _include(app: FastAPI, router: APIRouter) -> None:
    app.include_router(router)
    app.state.routes += [route for route in router.routes if isinstance(route, Route)]
