"""The test bench: one private RabbitMQ and PostgreSQL for a run, a vhost and a database of its own per test."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from local.servers import Servers
from tests.servers import MIGRATED, SharedPair, attach, new_directory, running_pair
from tests.side_by_side import ByModule, order

# A width that is there when a console is made would hold, whatever a test says later; readline gives workers one.
for size in ("COLUMNS", "LINES"):
    os.environ.pop(size, None)

# No deadline: how long an example takes is the other processes' affair too; where time matters, a test measures its own
# CPU time. The same examples in every run, so that nobody meets a failure that is not of his making; by hand, many
# random ones: `make test ARGS="tests/unit --hypothesis-profile=long"`.
UNTIMED = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("feedmill", UNTIMED, derandomize=True, max_examples=50)
settings.register_profile("long", UNTIMED, max_examples=2000, print_blob=True)
settings.load_profile("feedmill")

# Tests interrupt processes, which would ignore that as we do if a script started us in the background.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent

SHARED = pytest.StashKey[SharedPair]()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    return ByModule(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=order)  # without workers what is quick and plain comes first, as the directories are written


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        config.stash[SHARED] = SharedPair()


def pytest_configure_node(node: WorkerController) -> None:
    node.workerinput["servers"] = str(node.config.stash[SHARED].directory)


def pytest_unconfigure(config: pytest.Config) -> None:
    if SHARED in config.stash:
        config.stash[SHARED].stop()


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    """The pair that all workers share, or this process's if there are none. tests/faults has one of its own."""
    worker = getattr(request.config, "workerinput", None)
    if worker is None:
        with running_pair(new_directory()) as servers:
            yield servers
    else:
        yield attach(Path(worker["servers"]))


@contextlib.contextmanager
def own_vhost(servers: Servers) -> Iterator[str]:
    name = f"test-{uuid4().hex[:12]}"
    servers.rabbitmq.create_vhost(name)
    yield servers.rabbitmq.amqp_url(name)
    servers.rabbitmq.delete_vhost(name)


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
