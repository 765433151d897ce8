"""Entries that need not be read again: what the writer stores of them, and what it makes of partial documents."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from services.admin.feeds import make_due
from services.admin.registry import NewFeed, add_feed, connect
from services.writer.store import Written
from shared.database.postgres import Database
from shared.wire.jobs import DIGEST_BYTES
from shared.wire.results import Entry
from tests.factories import NOW, make_entry
from tests.integration.writer.partial import claim_job, digest, poll, read
from tests.integration.writer.writing import claim, rows, write


@pytest.fixture
def other(database_url: str, feed_id: int) -> int:
    with connect(database_url) as connection:
        id_, _ = add_feed(connection, NewFeed("http://other.example/feed"))
        connection.execute("UPDATE feeds SET next_fetch_at = now() + interval '1 day' WHERE id = %s", [id_])
    return id_


ENTRIES = [make_entry(number, entry_id=f"id {number}", id_is_given=True) for number in range(1, 7)]


async def listed(database: Database) -> set[bytes]:
    """Return the digests of the listed entries of the one feed that has any."""
    found = await rows(database, "SELECT digests FROM feed_listings")
    return {row["digests"][at : at + 8] for row in found for at in range(8, len(row["digests"]), 8)}


async def test_a_job_knows_what_was_committed_and_the_next_one_what_came_since(
    database: Database, feed_id: int
) -> None:
    assert await write(database, await poll(database, feed_id, ENTRIES[:4])) == Written(4, 0, 0)
    second = await poll(database, feed_id, ENTRIES[2:6])
    assert (len(second.entries), second.items_seen) == (2, 4)
    assert await write(database, second) == Written(2, 0, 2)
    third = await poll(database, feed_id, ENTRIES[:6])
    assert {entry.title for entry in third.entries} == {"Article 1", "Article 2"}, "these were not listed last time"
    assert await write(database, third) == Written(0, 0, 6)
    assert await listed(database) == {digest(entry) for entry in ENTRIES}
    logged = await rows(database, "SELECT items_seen, items_new FROM feed_fetch_log ORDER BY id")
    assert [tuple(row.values()) for row in logged] == [(4, 4), (4, 2), (6, 0)]
