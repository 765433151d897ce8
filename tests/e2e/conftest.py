from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from local.servers import delete_servers
from tests.conftest import ROOT


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory for the private servers of `feedmill`, deleted with their data."""
    home = ROOT / ".feedmill" / "test" / f"home-{uuid4().hex[:8]}"
    home.mkdir(parents=True)
    yield home
    delete_servers(home / "up")
    home.rmdir()
