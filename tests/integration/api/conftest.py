"""The API in the test's own process, on the test's own database and broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import cast

import httpx
import pytest
from fastapi import FastAPI, Request
from pydantic import AmqpDsn, PostgresDsn

from services.admin.access.tokens import create_token
from services.admin.actor import Actor, Scope
from services.api.access import Authenticate
from services.api.access.bearer import TokenAccess
from services.api.access.guard import Guard
from services.api.app import make_app
from services.api.pages.errors import show_problem
from services.api.resources import Resources, open_database
from services.api.settings import ApiSettings
from services.cli.calls.within import WithinProcess
from shared.broker.port import Broker
from shared.broker.rabbitmq import RabbitMQ
from shared.settings import BrokerSettings


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


WHEN_USED = AmqpDsn("amqp://when-it-is-used/")


@dataclass
class _Resources(Resources):
    find_broker: Callable[[], str] = field(kw_only=True)

    def broker(self, name: str = "feedmill api") -> Broker:
        if self.settings.amqp_url == WHEN_USED:
            self.settings = self.settings.model_copy(update={"amqp_url": AmqpDsn(self.find_broker())})
        return super().broker(name)


@pytest.fixture
async def resources(database_url: str, request: pytest.FixtureRequest) -> AsyncIterator[Resources]:
    """Their virtual host is made when it is first used, which few tests do."""
    settings = ApiSettings(database_url=PostgresDsn(database_url), amqp_url=WHEN_USED)
    async with open_database(settings).open() as database:
        made = _Resources(settings, database, find_broker=lambda: request.getfixturevalue("amqp_url"))
        yield made
        made.arrivals.close()


@cache
def _app(_use: str) -> FastAPI:
    async def authenticate(request: Request) -> Actor:
        actor: Actor = await request.app.state.authenticate(request)
        return actor

    return make_app(cast("Resources", None), authenticate)


def app_on(resources: Resources, authenticate: Authenticate, use: str) -> FastAPI:
    """Return the API for the length of one test. All tests share it: its first request takes longer than most of them.

    Two at a time are two uses.
    """
    app = _app(use)
    app.state.resources, app.state.authenticate = resources, authenticate
    return app


@pytest.fixture
async def api(resources: Resources, caller: Caller) -> AsyncIterator[httpx.AsyncClient]:
    transport = WithinProcess(app_on(resources, caller.authenticate, "api"))
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
    guard = Guard(app_on(resources, access.authenticate, "closed"), frozenset({"feeds.example"}), show=show_problem)
    async with httpx.AsyncClient(transport=WithinProcess(guard), base_url="https://feeds.example") as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
async def consumers(amqp_url: str) -> AsyncIterator[None]:
    """All queues, each with a reader."""
    topology = BrokerSettings().topology()
    async with RabbitMQ(amqp_url, name="test", max_message_bytes=10**6).connect(topology) as session:
        for queue in (*topology.fetcher.queues, topology.writer.queue):
            await session.consume(queue, prefetch=1, deliver=lambda delivery: None)
        yield
