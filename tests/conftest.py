"""The test bench: one private RabbitMQ and PostgreSQL for the session, a vhost and a database of its own per test."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from local.servers import Servers, delete_servers, private_servers
from shared.database.migrate import migrate
from shared.errors import ConfigurationError
from tests.side_by_side import ByModule, order

# A width that is there when a console is made would hold, whatever a test says later; readline gives workers one.
for size in ("COLUMNS", "LINES"):
    os.environ.pop(size, None)

# How long an example takes is the other processes' affair too; where time matters, a test measures its own CPU time.
settings.register_profile("feedmill", deadline=None)
settings.load_profile("feedmill")

ROOT = Path(__file__).parent.parent


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    return ByModule(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=order)  # without workers what is quick and plain comes first, as the directories are written


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    home = ROOT / ".feedmill" / "test"
    for left in home.glob("servers-*"):  # by a session that was killed; its servers ended with it
        with contextlib.suppress(ConfigurationError):  # or by one that runs beside us
            delete_servers(left)
    directory = home / f"servers-{uuid4().hex[:8]}"
    try:
        with private_servers(directory, durable=False) as servers:
            servers.postgres.create_database(MIGRATED)
            migrate(servers.postgres.database_url(MIGRATED))
            yield servers
    finally:
        delete_servers(directory)


@contextlib.contextmanager
def own_vhost(servers: Servers) -> Iterator[str]:
    name = f"test-{uuid4().hex[:12]}"
    servers.rabbitmq.create_vhost(name)
    yield servers.rabbitmq.amqp_url(name)
    servers.rabbitmq.delete_vhost(name)


MIGRATED = "migrated"
"""The database that others are copied from: the migrations take ten times as long."""


@contextlib.contextmanager
def own_database(servers: Servers) -> Iterator[str]:
    """A migrated database without rows."""
    name = f"test_{uuid4().hex[:12]}"
    servers.postgres.create_database(name, MIGRATED)
    yield servers.postgres.database_url(name)
    servers.postgres.drop_database(name)


@pytest.fixture
def amqp_url(servers: Servers) -> Iterator[str]:
    with own_vhost(servers) as url:
        yield url


@pytest.fixture
def database_url(servers: Servers) -> Iterator[str]:
    with own_database(servers) as url:
        yield url
