"""Unit tests: the table of the API's routers, from which a command imports only what its requests need."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from services.api import routes
from services.api.routes import REQUESTS, find_routers

MODULES = {file.stem for file in Path(routes.__file__).parent.glob("[!_]*.py")}


def test_all_modules_of_routes_are_in_the_table() -> None:
    assert set(REQUESTS) == MODULES == set(find_routers())


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_request_finds_the_module_that_answers_it(module: str) -> None:
    for route in find_routers()[module].routes:
        assert isinstance(route, APIRoute)
        path = re.sub(r"{\w+(:\w+)?}", "12", route.path)
        for method in route.methods or ():
            assert module in find_routers(f"{method} {path}")


def test_a_list_of_feeds_needs_no_reader_of_feeds() -> None:
    code = (
        "import sys; from services.api.routes import find_routers; found = sorted(find_routers('GET /api/feeds'));"
        " print(found, sorted({'services.fetcher.parse', 'services.writer.store', 'aio_pika'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "['feeds'] []\n"


def test_no_request_waits_for_a_thread_before_its_handler() -> None:
    """FastAPI calls what is no coroutine function on a thread, which costs as much as a small statement."""
    routes = [route for router in find_routers().values() for route in router.routes if isinstance(route, APIRoute)]
    calls = {call for route in routes for call in called(route.dependant)}
    assert len(calls) > len(routes)
    assert [call for call in calls if not inspect.iscoroutinefunction(call)] == []


def called(dependant: Dependant) -> Iterator[object]:
    """Yield what is called for a request: the handler, and what it depends on."""
    call = dependant.call
    yield call if inspect.isroutine(call) else type(call).__call__
    for inner in dependant.dependencies:
        yield from called(inner)
