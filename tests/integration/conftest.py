"""What tests of rows begin with."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.admin.registry import NewFeed, add_feed, connect
from shared.database.postgres import Database


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A pool with room for as many side by side as any test has."""
    async with Database(database_url, size=10).open() as opened:
        yield opened


@pytest.fixture
def feed_id(database_url: str) -> int:
    """The only feed that there is."""
    with connect(database_url) as connection:
        return add_feed(connection, NewFeed("http://news.example/feed"))[0]
