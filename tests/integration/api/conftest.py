"""The API in the test's own process, on the test's own database and broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count

import httpx
import pytest
from pydantic import AmqpDsn, PostgresDsn

from services.admin.access.tokens import create_token
from services.admin.actor import Actor, Scope
from services.api.access.bearer import TokenAccess
from services.api.access.guard import Guard
from services.api.app import make_app
from services.api.resources import Resources, open_database
from services.api.settings import ApiSettings
from services.cli.calls.within import WithinProcess


@dataclass
class Caller:
    """Who the test is."""

    scopes: set[Scope] = field(default_factory=lambda: {Scope.ADMIN})
    token_id: int = 1

    async def authenticate(self, _request: object) -> Actor:
        return Actor("test fm_test", frozenset(self.scopes), self.token_id)


@pytest.fixture
def caller() -> Caller:
    return Caller()


@pytest.fixture
async def resources(database_url: str, amqp_url: str) -> AsyncIterator[Resources]:
    settings = ApiSettings(database_url=PostgresDsn(database_url), amqp_url=AmqpDsn(amqp_url))
    async with open_database(settings).open() as database:
        made = Resources(settings, database)
        yield made
        made.arrivals.close()


@pytest.fixture
async def api(resources: Resources, caller: Caller) -> AsyncIterator[httpx.AsyncClient]:
    transport = WithinProcess(make_app(resources, caller.authenticate))
    async with httpx.AsyncClient(transport=transport, base_url="http://feedmill") as client:
        yield client


MakeToken = Callable[..., Awaitable[str]]


@pytest.fixture
def make_token(resources: Resources) -> MakeToken:
    """Makes a token with these scopes."""
    names = count()

    async def make(*scopes: Scope, lifetime_seconds: int | None = None) -> str:
        async with resources.database.transaction() as connection:
            row = await create_token(
                connection,
                Actor("test", frozenset(Scope)),
                name=f"token {next(names)}",
                scopes=scopes,
                lifetime_seconds=lifetime_seconds,
            )
        return str(row["token"])

    return make


@pytest.fixture
async def closed(resources: Resources) -> AsyncIterator[httpx.AsyncClient]:
    """The API as it stands on the network: closed to those without a token."""
    access = TokenAccess(resources.database, resources.remembered)
    guard = Guard(make_app(resources, access.authenticate), frozenset({"feeds.example"}))
    async with httpx.AsyncClient(transport=WithinProcess(guard), base_url="https://feeds.example") as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
