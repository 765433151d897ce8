"""Writing what is new of each document gives what writing whole documents gives, for any history of feeds."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import Any

from local.servers import Servers
from shared.database.postgres import Database
from shared.wire.jobs import DIGEST_BYTES
from tests.conftest import own_database
from tests.integration.writer.histories import Poll, make_history
from tests.integration.writer.partial import claim_job, read
from tests.integration.writer.writing import rows, write

HISTORIES = 25

LEDGER = """
SELECT md5, feed_id, content_hash, url, canonical, duplicate_of, entry_key, title_md5, updates,
    first_seen_at = last_seen_at AS is_brief
FROM feed_items ORDER BY md5
"""
PENDING = "SELECT md5, feed_id, title, body, content_hash, revision, duplicate_of FROM pending_articles ORDER BY md5"
LOG = "SELECT feed_id, sum(items_seen), sum(items_new) FROM feed_fetch_log GROUP BY feed_id ORDER BY feed_id"
EARLIER = """
WITH items AS (
    UPDATE feed_items SET first_seen_at = first_seen_at - interval '25 hours',
        last_seen_at = last_seen_at - interval '25 hours'
)
UPDATE feed_listings SET full_at = NULL
"""
CLEAR = """
TRUNCATE feeds, feed_items, pending_articles, feed_fetch_log, feed_listings RESTART IDENTITY CASCADE;
INSERT INTO feeds (url, politeness_group, next_fetch_at)
SELECT format('http://%s.example/', n), 'x.example', now() + interval '1 day' FROM generate_series(1, 2) AS n
"""


class World:
    """A database in which a history happens. `partial`: jobs name what need not be read."""

    def __init__(self, database: Database, *, partial: bool) -> None:
        self.database = database
        self.partial = partial
        self.known = 0

    async def clear(self) -> None:
        async with self.database.transaction() as connection:
            await connection.execute(CLEAR.encode())

    async def poll(self, poll: Poll) -> bool:
        """Write the feed's next result; return whether a known entry is not listed any more."""
        if poll.a_day_later:
            async with self.database.transaction() as connection:
                await connection.execute(EARLIER.encode())
        job = await claim_job(self.database, poll.feed + 1)
        result = read(job.feed_id, job.claim_id, poll.entries, job.known if self.partial else b"")
        self.known += len(result.known) // DIGEST_BYTES
        await write(self.database, result)
        async with self.database.transaction() as connection:
            await connection.execute("UPDATE feeds SET next_fetch_at = now() + interval '1 day'")
        found = await rows(self.database, f"SELECT digests FROM feed_listings WHERE feed_id = {job.feed_id}")
        listed = found[0]["digests"] if found else b""
        after = {listed[at : at + 8] for at in range(8, len(listed), 8)}
        return any(result.known[at : at + 8] not in after for at in range(0, len(result.known), 8))

    async def state(self) -> list[dict[str, Any]]:
        return [row for query in (LEDGER, PENDING, LOG) for row in await rows(self.database, query)]


async def clear_and_replay(whole: World, partial: World, seed: int) -> list[str]:
    """Let a history happen in both worlds; return how they differ after a poll.

    An entry with another text may be the article of a known one, and nobody knows which stands first. Then the two are
    read together at the next poll, which decides.
    """
    await whole.clear()
    await partial.clear()
    for poll in make_history(seed):
        await whole.poll(poll)
        doubted = await partial.poll(poll)
        if doubted and await whole.state() != await partial.state():
            again = replace(poll, a_day_later=False)
            await whole.poll(again)
            await partial.poll(again)
        if differences := _compare(await whole.state(), await partial.state()):
            return [f"{seed}: {poll}", *differences]
    return []


def _compare(whole: list[dict[str, Any]], partial: list[dict[str, Any]]) -> list[str]:
    return [f"{one} is {other}" for one, other in zip_longest(whole, partial) if one != other]


async def test_partial_documents_give_what_whole_ones_give(database: Database, servers: Servers) -> None:
    with own_database(servers) as url:
        async with Database(url, size=1).open() as second:
            whole, partial = World(database, partial=False), World(second, partial=True)
            for seed in range(HISTORIES):
                assert await clear_and_replay(whole, partial, seed) == []
    assert partial.known > 2 * HISTORIES, "little was left out"
