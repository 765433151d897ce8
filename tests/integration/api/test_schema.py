"""The API keeps to its own OpenAPI document, whatever it is asked (schemathesis draws the requests).

`FEEDMILL_SCHEMA_EXAMPLES=2000 make test ARGS=tests/integration/api/test_schema.py` draws more than every run does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, CheckContext, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from local.servers import Servers
from services.admin.registry import NewFeed, add_feed, connect
from tests.api_document import operations, read_document
from tests.conftest import own_database, own_vhost
from tests.integration.api.served import serving_api

EXAMPLES = int(os.environ.get("FEEDMILL_SCHEMA_EXAMPLES", "6"))


def no_unmeant_server_error(ctx: CheckContext, response: Any, case: Case[Any]) -> bool | None:
    """503 may be an answer like any other: a pipeline that is down."""
    meant = read_document()["paths"][case.path][case.method.lower()]["responses"].get(str(response.status_code), {})
    is_meant = response.status_code == 503 and "application/json" in meant.get("content", {})
    return None if is_meant else not_a_server_error(ctx, response, case)


CHECKS = [
    no_unmeant_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
]
"""Not `negative_data_rejection`: to this caller every token is right, and pydantic reads `96` as a moment, too."""

WAITS = ("wait",)
"""Parameters that make an operation wait, in seconds."""

DRAWN = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES < 100,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def url(servers: Servers) -> Iterator[str]:
    with ExitStack() as stack:
        amqp_url, database_url = stack.enter_context(own_vhost(servers)), stack.enter_context(own_database(servers))
        with connect(database_url) as connection:
            for number in range(5):
                add_feed(connection, NewFeed(f"http://site-{number}.example/feed"))
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        environment.setenv("FEEDMILL_FETCH_DEADLINE_SECONDS", "1")  # URLs are drawn, too, and some are looked up
        yield stack.enter_context(serving_api(database_url, amqp_url))


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as opened:
        yield opened


@pytest.mark.parametrize("label", [operation.label for operation in operations()])
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_an_operation_answers_as_it_says(url: str, session: requests.Session, label: str, mode: GenerationMode) -> None:
    method, path = label.split(" ")
    operation = schemathesis.openapi.from_dict(read_document())[path][method]

    @given(case=operation.as_strategy(generation_mode=mode))
    @DRAWN
    def ask(case: Case[Any]) -> None:
        call(case, url, session)

    ask()


def call(case: Case[Any], url: str, session: requests.Session) -> None:
    for name in WAITS:
        if isinstance(case.query.get(name), int | float):
            case.query[name] = 0
    case.call_and_validate(base_url=url, session=session, checks=CHECKS, timeout=60)
