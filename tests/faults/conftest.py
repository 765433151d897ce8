"""Tests that stop, kill or reconfigure servers: with a pair that no other worker uses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.servers import Servers
from tests.contract.conftest import broker  # noqa: F401 - a fixture
from tests.integration.api.conftest import caller, closed, make_token, resources  # noqa: F401 - fixtures
from tests.servers import new_directory, running_pair


@pytest.fixture(scope="package")
def servers() -> Iterator[Servers]:
    with running_pair(new_directory()) as servers:
        yield servers
