"""Who may do what: every operation, without a token, with a wrong one, and with the wrong scope."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts

from services.admin.access.tokens import new_token
from services.admin.actor import Actor, Scope, audit
from services.api.access import OPEN
from services.api.access.bearer import TokenAccess
from services.api.access.cookies import SECURE_NAME
from services.api.access.failures import BURST, LOOK_SECONDS, SECONDS_EACH
from services.api.app import make_app
from services.api.resources import Resources
from services.api.routes import find_routers
from services.cli.calls.within import WithinProcess
from tests.integration.api.conftest import MakeToken, bearer


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


UNAUDITED = {
    "claim_articles": "a consumer's work, hundreds a second; the articles' own rows tell of it",
    "ack_articles": "as claim_articles",
    "fail_articles": "as claim_articles",
    "renew_articles": "as claim_articles",
    "release_articles": "as claim_articles",
    "find_feed": "it reads: a POST, since a feed's URL may hold a secret and stands in no log this way",
    "check_feed": "it asks a feed's server, and writes nothing",
    "check_series": "as check_feed",
}
"""Operations that are no GET and leave no row in the audit log, and why."""


def operations(app: FastAPI) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield method, a path and the OpenAPI of each operation."""
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), re.sub(r"\{[^}]*\}", "1", path), operation


async def nobody(_request: object) -> Actor:
    raise AssertionError


async def test_every_operation_is_closed_and_needs_its_scope(
    closed: httpx.AsyncClient, resources: Resources, make_token: MakeToken
) -> None:
    tokens = {scope: await make_token(scope) for scope in Scope}
    seen = 0
    for method, path, operation in operations(make_app(resources, nobody)):
        if (method, path) in OPEN:
            assert "security" not in operation, path
            continue
        seen += 1
        answer = await closed.request(method, path)
        assert answer.status_code == 401, f"{method} {path}"
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert "***" not in answer.json()["detail"]
        assert answer.headers["content-type"] == "application/problem+json"
        assert {name for needed in operation["security"] for name in needed} == {"token", "session"}, path
        (scopes,) = {tuple(needed[name]) for needed in operation["security"] for name in needed}
        lacking = [own for own in Scope if not any(Actor("", frozenset({own})).may(Scope(scope)) for scope in scopes)]
        assert lacking or set(scopes) in ({Scope.READ, Scope.CONSUME}, set()), f"{method} {path}"
        for own in lacking if scopes else ():
            answer = await closed.request(method, path, headers=bearer(tokens[own]))
            assert answer.status_code == 403, f"{method} {path}"
            assert all(f"`{scope}`" in answer.json()["detail"] for scope in scopes)
        if not scopes:
            assert path in {"/api/me", "/api/session"}, "an operation for anybody with a token"
    assert seen > 5


@pytest.mark.parametrize("path", ["/", "/api", "/api/openapi.json", "/api/nothing", "/docs", "/api/feeds/"])
async def test_what_is_no_operation_is_closed_too(closed: httpx.AsyncClient, path: str) -> None:
    seen = await closed.get(path)
    if path.startswith("/api"):
        assert seen.status_code == 401
    else:
        assert (seen.status_code, seen.headers["location"].split("?")[0]) == (303, "/login")
    assert (await closed.options(path)).status_code == 401


async def test_openapi_is_for_anybody_with_a_token(closed: httpx.AsyncClient, make_token: MakeToken) -> None:
    answer = await closed.get("/api/openapi.json", headers=bearer(await make_token(Scope.CONSUME)))
    assert set(answer.json()["components"]["securitySchemes"]) == {"token", "session"}


TOKEN = f"fm_{'0' * 8}_{'0' * 64}"


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer  ", "Basic YTpi", "Bearer fm_0", f"Token {TOKEN}", f"Bearer x{TOKEN}", "\xff"],
)
async def test_what_is_no_token_is_refused(closed: httpx.AsyncClient, header: str) -> None:
    answer = await closed.get("/api/me", headers=[(b"Authorization", header.encode("latin-1"))])
    assert answer.status_code == 401


async def test_two_tokens_are_none(closed: httpx.AsyncClient, make_token: MakeToken) -> None:
    token = f"Bearer {await make_token(Scope.READ)}"
    answer = await closed.get("/api/me", headers=[("Authorization", token), ("Authorization", token)])
    assert answer.status_code == 401


async def test_wrong_tokens_are_limited_and_a_good_one_goes_on(
    closed: httpx.AsyncClient, make_token: MakeToken
) -> None:
    good = bearer(await make_token(Scope.READ))
    assert (await closed.get("/api/me", headers=good)).status_code == 200
    statuses = [(await closed.get("/api/me", headers=bearer(new_token()))).status_code for _ in range(BURST + 5)]
    assert statuses[:BURST] == [401] * BURST
    assert 429 in statuses
    refused = await fail_until_limited(closed)
    assert int(refused.headers["retry-after"]) > 0
    assert (await closed.get("/api/me", headers=good)).status_code == 200


async def fail_until_limited(client: httpx.AsyncClient) -> httpx.Response:
    """Send wrong tokens until the address is limited and has looked something up within this second."""
    while (answer := await client.get("/api/me", headers=bearer(new_token()))).status_code != 429:
        assert answer.status_code == 401
    return answer


async def test_what_the_api_makes_is_good_at_once_behind_a_limited_address(
    closed: httpx.AsyncClient, make_token: MakeToken
) -> None:
    admin = await make_token(Scope.ADMIN)
    assert (await closed.get("/api/me", headers=bearer(admin))).status_code == 200
    await fail_until_limited(closed)
    made = await closed.post("/api/tokens", json={"name": "new", "scopes": ["read"]}, headers=bearer(admin))
    assert (await closed.get("/api/me", headers=bearer(made.json()["token"]))).status_code == 200
    assert (await closed.post("/api/session", json={"token": admin})).status_code == 201
    assert (await closed.get("/api/me")).status_code == 200


async def test_behind_a_limited_address_one_new_token_a_second_is_looked_up(
    resources: Resources, make_token: MakeToken
) -> None:
    clock = Clock()
    app = make_app(resources, TokenAccess(resources.database, clock=clock).authenticate)
    good, old = bearer(await make_token(Scope.READ)), bearer(new_token())
    async with httpx.AsyncClient(transport=WithinProcess(app), base_url="http://localhost") as client:

        async def ask(headers: dict[str, str]) -> int:
            return (await client.get("/api/me", headers=headers)).status_code

        assert [await ask(old) for _ in range(BURST)] == [401] * BURST
        assert await ask(bearer(new_token())) == 401  # it was looked up
        assert (await ask(good), await ask(bearer(new_token()))) == (429, 429)
        clock.now += LOOK_SECONDS
        assert await ask(old) == 429  # known to be wrong: it takes nobody's turn
        assert await ask(good) == 200
        assert await ask(good) == 200
        clock.now += SECONDS_EACH - LOOK_SECONDS
        assert await ask(bearer(new_token())) == 401  # those let through made the wait no longer
        assert await ask(old) == 429


async def test_ended_logins_are_no_failures_of_their_address(closed: httpx.AsyncClient, make_token: MakeToken) -> None:
    closed.cookies.set(SECURE_NAME, "0" * 64)
    assert [(await closed.get("/api/me")).status_code for _ in range(3 * BURST)] == [401] * (3 * BURST)
    good = bearer(await make_token(Scope.READ))
    assert (await closed.get("/api/me", headers=good)).status_code == 200
    assert (await closed.get("/api/me", headers=bearer(new_token()))).status_code == 401


FORWARDED = ["Forwarded", "Via", "X-Real-IP"] + [
    f"X-Forwarded-{what}" for what in ("For", "Host", "Proto", "Port", "Server")
]


async def test_an_open_api_serves_anybody_but_wrong_tokens_and_proxies(resources: Resources) -> None:
    app = make_app(resources, TokenAccess(resources.database, is_open=True).authenticate)
    async with httpx.AsyncClient(transport=WithinProcess(app), base_url="http://localhost") as client:
        assert (await client.get("/api/me")).json()["scopes"] == ["admin"]
        assert (await client.get("/api/me", headers=bearer(new_token()))).status_code == 401
        for name in FORWARDED:
            assert (await client.get("/api/me", headers={name: "a.example"})).status_code == 401, name


def test_every_change_is_audited() -> None:
    missing, names = [], set()
    for context in iter_route_contexts([route for router in find_routers().values() for route in router.routes]):
        route = context.original_route
        if not isinstance(route, APIRoute) or set(route.methods or ()) <= {"GET", "HEAD"}:
            continue
        names.add(route.name)
        if route.name not in UNAUDITED and not reaches(route.endpoint, audit, set()):
            missing.append(f"{route.methods} {route.path}: {route.name}")
    assert missing == []
    assert set(UNAUDITED) <= names


def test_the_search_for_audits_finds_what_has_none() -> None:
    assert not reaches(test_openapi_is_for_anybody_with_a_token, audit, set())


def reaches(function: Any, target: Any, seen: set[Any]) -> bool:
    """Return whether code of ours that `function` names, or that this code names, is `target`."""
    if function is target:
        return True
    if function in seen or not getattr(function, "__module__", "").startswith(("services.", "tests.")):
        return False
    seen.add(function)
    if isinstance(function, type):
        return any(reaches(member, target, seen) for member in vars(function).values() if callable(member))
    function = getattr(function, "__wrapped__", function)
    if not isinstance(function, FunctionType):
        return False
    names = set(names_in(function.__code__))
    found = [function.__globals__[name] for name in names if name in function.__globals__]
    found += [importlib.import_module(name) for name in names if name.startswith("services.")]  # imported within
    modules = [value for value in found if isinstance(value, ModuleType) and value.__name__.startswith("services.")]
    for module in modules:
        members = [vars(module)[name] for name in names if name in vars(module)]
        found += members
        modules += [value for value in members if isinstance(value, ModuleType) and value not in modules]
    return any(reaches(value, target, seen) for value in found if callable(value))


def names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)
