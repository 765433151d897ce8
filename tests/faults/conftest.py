"""Tests that stop, kill or reconfigure servers: with a pair that no other worker uses."""

from __future__ import annotations

import pytest

from local.servers import Servers
from tests.contract.conftest import broker  # noqa: F401 - a fixture


@pytest.fixture(scope="session")
def servers(own_servers: Servers) -> Servers:
    return own_servers
