"""The API in the test's own process, on the test's own database and broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx
import pytest
from pydantic import AmqpDsn, PostgresDsn

from services.admin.actor import Actor, Scope
from services.api.app import make_app
from services.api.resources import Resources, open_database
from services.api.settings import ApiSettings
from services.cli.calls.within import WithinProcess


@dataclass
class Caller:
    """Who the test is."""

    scopes: set[Scope] = field(default_factory=lambda: {Scope.ADMIN})

    async def authenticate(self, _request: object) -> Actor:
        return Actor("test fm_test", frozenset(self.scopes), token_id=1)


@pytest.fixture
def caller() -> Caller:
    return Caller()


@pytest.fixture
async def resources(database_url: str, amqp_url: str) -> AsyncIterator[Resources]:
    settings = ApiSettings(database_url=PostgresDsn(database_url), amqp_url=AmqpDsn(amqp_url))
    async with open_database(settings).open() as database:
        yield Resources(settings, database)


@pytest.fixture
async def api(resources: Resources, caller: Caller) -> AsyncIterator[httpx.AsyncClient]:
    transport = WithinProcess(make_app(resources, caller.authenticate))
    async with httpx.AsyncClient(transport=transport, base_url="http://feedmill") as client:
        yield client
