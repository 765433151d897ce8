"""One pipeline for all these tests: the sites that their modules name are polled side by side from its start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.servers import Servers
from tests.conftest import own_database, own_vhost
from tests.manners.services import ALL, running
from tests.manners.sites import AUTHORITY, Site, serving
from tests.manners.world import World


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(__file__.removesuffix("conftest.py")):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="package")
def world(
    servers: Servers, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    sites = _sites_named_in({item.getparent(pytest.Module) for item in request.session.items})
    with own_vhost(servers) as amqp_url, own_database(servers) as database_url, serving(*sites):
        world = World(database_url)
        world.register(sites)
        directory = tmp_path_factory.mktemp("manners")
        AUTHORITY.cert_pem.write_to_path(directory / "authority.pem")
        settings = {
            "FEEDMILL_AMQP_URL": amqp_url,
            "FEEDMILL_DATABASE_URL": database_url,
            "SSL_CERT_FILE": str(directory / "authority.pem"),
        }
        with running(ALL, directory, settings):
            yield world


def _sites_named_in(modules: set[pytest.Module | None]) -> list[Site]:
    return [value for module in modules if module for value in vars(module.obj).values() if isinstance(value, Site)]
