"""Entries that need not be read again: what the writer stores of them, and what it makes of partial documents."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from services.admin.actor import Actor
from services.admin.feeds.edits import make_due, remove_feed
from services.admin.registry import NewFeed, add_feed, connect
from services.writer.schedule.feed_state import Rules
from services.writer.store import Policy, Written, write_batch
from shared.database.postgres import Database
from shared.wire.jobs import DIGEST_BYTES
from tests.factories import NOW, make_entry
from tests.integration.waiting import until_blocked
from tests.integration.writer.partial import claim_job, digest, poll, read
from tests.integration.writer.writing import drain, rows, write


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


@pytest.mark.parametrize("change", ["full_at = 'infinity'", "names = '\\x00'", "digests = '\\x00', addresses = ''"])
async def test_a_row_that_no_service_could_read_is_refused(database: Database, feed_id: int, change: str) -> None:
    await write(database, await poll(database, feed_id, ENTRIES))
    with pytest.raises(psycopg.errors.CheckViolation):
        async with database.transaction() as connection:
            await connection.execute(f"UPDATE feed_listings SET {change}".encode())


async def job_knows(database: Database, feed_id: int) -> int:
    """Return how many entries the feed's next job knows."""
    return max(len((await claim_job(database, feed_id)).known) // DIGEST_BYTES - 1, 0)


async def test_a_document_without_digests_ends_the_listing(database: Database, feed_id: int) -> None:
    await write(database, await poll(database, feed_id, ENTRIES))
    job = await claim_job(database, feed_id)
    await write(database, read(feed_id, job.claim_id, ENTRIES, digests=b""))  # as a fetcher of before sends it
    assert await rows(database, "SELECT FROM feed_listings") == []
    assert await job_knows(database, feed_id) == 0


@pytest.mark.parametrize("digests", [b"context.", b"context" + bytes(48), b"context." + bytes(8 * len(ENTRIES))])
async def test_digests_that_fit_no_entries_are_not_used(database: Database, feed_id: int, digests: bytes) -> None:
    await write(database, await poll(database, feed_id, ENTRIES, digests=digests))
    assert await rows(database, "SELECT FROM feed_listings") == []


async def test_an_entry_that_cannot_be_recognised_is_read_again(database: Database, feed_id: int) -> None:
    sent = await poll(database, feed_id, ENTRIES[:2])
    await write(database, sent.model_copy(update={"digests": sent.digests[:16] + bytes(8)}))
    assert await listed(database) == {digest(ENTRIES[0])}


async def test_a_late_result_is_not_listed_and_the_next_reading_is_a_full_one(database: Database, feed_id: int) -> None:
    old = await poll(database, feed_id, ENTRIES[:3])
    await write(database, await poll(database, feed_id, ENTRIES[1:4]))
    before = await listed(database)
    assert await write(database, old) == Written(1, 0, 2)
    assert await listed(database) == before, "results that are under way are still matched with it"
    assert await job_knows(database, feed_id) == 0


async def test_two_readings_of_one_feed_in_a_batch_are_not_listed(database: Database, feed_id: int) -> None:
    await write(database, await poll(database, feed_id, ENTRIES[:2]))
    job = await claim_job(database, feed_id)
    twice = [read(feed_id, job.claim_id, entries, job.known) for entries in (ENTRIES[:3], ENTRIES[:4])]
    assert await write(database, *twice) == Written(2, 0, 2)
    assert await listed(database) == {digest(entry) for entry in ENTRIES[:2]}
    assert await job_knows(database, feed_id) == 0


async def test_a_result_that_is_delivered_again_changes_nothing(database: Database, feed_id: int) -> None:
    first = await poll(database, feed_id, ENTRIES[:3])
    await write(database, first)
    second = await poll(database, feed_id, ENTRIES[1:5])
    await write(database, second)
    state = await rows(database, "SELECT *, xmin::text FROM feed_listings")
    assert await write(database, first, second, second) == Written(0, 0, 0)
    assert await rows(database, "SELECT *, xmin::text FROM feed_listings") == state
    assert await job_knows(database, feed_id) == 4


async def test_a_listing_is_never_ahead_of_its_articles(database: Database, feed_id: int) -> None:
    sent = await poll(database, feed_id, ENTRIES)
    async with database.transaction() as connection:
        await write_batch(connection, [sent], now=NOW, rules=Rules(), proxy_hosts=frozenset())
        await connection.rollback()  # the writer dies before its commit
    assert await rows(database, "SELECT FROM feed_listings") == []
    assert await write(database, sent) == Written(6, 0, 0)
    assert await job_knows(database, feed_id) == 6


async def test_writers_side_by_side_leave_the_listing_of_one_of_them(database: Database, feed_id: int) -> None:
    await write(database, await poll(database, feed_id, ENTRIES[:2]))
    old = await poll(database, feed_id, ENTRIES[:3])
    job = await claim_job(database, feed_id)
    new = read(feed_id, job.claim_id, ENTRIES[:4], job.known)
    await asyncio.gather(*(write(database, result) for result in (old, new, old, new)))
    assert len(await rows(database, "SELECT FROM pending_articles")) == 4
    assert await listed(database) == {digest(entry) for entry in ENTRIES[:4]}


async def test_nothing_is_written_if_nothing_has_changed(database: Database, feed_id: int) -> None:
    await write(database, await poll(database, feed_id, ENTRIES))
    again = await poll(database, feed_id, ENTRIES[::-1])
    before = await rows(database, "SELECT *, xmin::text FROM feed_listings")
    assert again.entries == ()
    assert await write(database, again) == Written(0, 0, 6)
    assert await rows(database, "SELECT *, xmin::text FROM feed_listings") == before


async def test_a_new_context_is_a_new_listing(database: Database, feed_id: int) -> None:
    await write(database, await poll(database, feed_id, ENTRIES))
    other = await poll(database, feed_id, ENTRIES[:3], context=b"another.")
    assert (other.known, len(other.entries)) == (b"", 3)
    await write(database, other)
    job = await claim_job(database, feed_id)
    assert (job.known[:8], len(job.known)) == (b"another.", 8 + 3 * 8)


async def test_an_article_with_another_text_than_the_entry_is_read_again(database: Database, feed_id: int) -> None:
    """The first entry counts if a document has an article twice: so the two have to be read together."""
    newer, copy = (
        make_entry(9, body=text, content_hash=letter * 64) for text, letter in (("newer", "a"), ("old", "b"))
    )
    await write(database, await poll(database, feed_id, [newer, copy, ENTRIES[0]]))
    assert await listed(database) == {digest(ENTRIES[0])}
    await write(database, await poll(database, feed_id, [copy, ENTRIES[0]]))
    assert await listed(database) == {digest(ENTRIES[0]), digest(copy)}
    await write(database, await poll(database, feed_id, [newer, copy, ENTRIES[0]]))  # which one is first is not known
    assert await listed(database) == {digest(ENTRIES[0])}
    assert (await write(database, await poll(database, feed_id, [newer, copy, ENTRIES[0]]))).updated == 1
    found = await rows(database, "SELECT body FROM pending_articles ORDER BY body")
    assert [row["body"] for row in found] == ["The text of article 1.", "newer"]


async def test_an_entry_whose_new_id_is_not_stored_yet_is_read_again(database: Database, feed_id: int) -> None:
    await write(database, await poll(database, feed_id, ENTRIES))
    moved = [entry.model_copy(update={"entry_id": f"https://{entry.entry_id}"}) for entry in ENTRIES]
    await write(database, await poll(database, feed_id, moved))
    assert await listed(database) == set()
    async with database.transaction() as connection:
        await connection.execute("UPDATE feed_items SET last_seen_at = last_seen_at - interval '2 days'")
    for _ in range(2):
        await write(database, await poll(database, feed_id, moved))
    assert await listed(database) == {digest(entry) for entry in moved}


async def test_another_feeds_articles_are_listed_if_they_are_found_by_their_names(
    database: Database, feed_id: int, other: int
) -> None:
    """Their owner may change the title; the row is then found by the name that the first title gave."""
    await write(database, await poll(database, feed_id, ENTRIES[:2]))
    retitled = ENTRIES[0].model_copy(update={"title": "x", "md5": "1" * 32, "content_hash": "2" * 64})
    await write(database, await poll(database, feed_id, [retitled, ENTRIES[1]]))
    assert await write(database, await poll(database, other, [retitled, ENTRIES[1]])) == Written(0, 0, 2)
    found = await rows(database, f"SELECT digests FROM feed_listings WHERE feed_id = {other}")
    assert found == [{"digests": b"context." + digest(ENTRIES[1])}]


SOMEBODY = Actor("test", frozenset())


async def test_a_person_gets_a_full_reading(database: Database, feed_id: int) -> None:
    await write(database, await poll(database, feed_id, ENTRIES))
    assert await job_knows(database, feed_id) == 6
    async with database.transaction() as connection:
        await make_due(connection, SOMEBODY, feed_id)
    assert await job_knows(database, feed_id) == 0


async def test_a_removed_feed_has_no_listing(database: Database, feed_id: int) -> None:
    await write(database, await poll(database, feed_id, ENTRIES))
    async with database.transaction() as connection:
        await remove_feed(connection, SOMEBODY, feed_id)
    assert await rows(database, "SELECT FROM feed_listings") == []


async def test_known_entries_that_are_listed_no_more_are_seen_and_change_nothing(
    database: Database, feed_id: int
) -> None:
    await write(database, await poll(database, feed_id, ENTRIES[:3]))
    sent = await poll(database, feed_id, ENTRIES[:4])
    await rows(database, "DELETE FROM feed_listings RETURNING 1")
    assert (await write(database, sent)).new == 1
    (logged,) = await rows(database, "SELECT items_seen FROM feed_fetch_log ORDER BY id DESC LIMIT 1")
    assert logged == {"items_seen": 4}
    assert await job_knows(database, feed_id) == 0


async def test_an_address_that_a_known_entry_has_too_makes_no_duplicate(database: Database, feed_id: int) -> None:
    first = make_entry(1, url="http://news.example/live", title="first")
    second = make_entry(2, url="https://news.example/live#2", title="second")
    await write(database, await poll(database, feed_id, [first, ENTRIES[2]]))
    sent = await poll(database, feed_id, [second, first, ENTRIES[2]])
    assert len(sent.entries) == 1
    assert await write(database, sent, policy=Policy(duplicates="drop")) == Written(1, 0, 2)
    assert len(await rows(database, "SELECT FROM pending_articles")) == 3


async def test_an_article_that_another_writer_stores_meanwhile_is_not_listed(
    database: Database, database_url: str, feed_id: int, other: int
) -> None:
    sent = await poll(database, feed_id, ENTRIES[:2])
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO feed_items (md5, feed_id, content_hash, url, first_seen_at, last_seen_at)"
            " VALUES (%s, %s, '', '', now(), now())",
            [ENTRIES[0].md5, other],
        )
        writing = asyncio.create_task(write(database, sent))
        await until_blocked(database)
        connection.commit()
        assert (await writing).new == 1
    assert await listed(database) == {digest(ENTRIES[1])}


async def test_an_article_that_retention_deletes_meanwhile_is_not_listed(
    database: Database, database_url: str, feed_id: int
) -> None:
    await write(database, await poll(database, feed_id, ENTRIES[:2], digests=b""))
    await rows(database, "UPDATE feed_items SET last_seen_at = last_seen_at - interval '100 days' RETURNING 1")
    sent = await poll(database, feed_id, ENTRIES[:2])
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM feed_items WHERE md5 = %s", [ENTRIES[0].md5])
        writing = asyncio.create_task(write(database, sent))
        await until_blocked(database)
        connection.commit()
        await writing
    assert await listed(database) == {digest(ENTRIES[1])}
    await drain(database)
    assert (await write(database, await poll(database, feed_id, ENTRIES[:2]))).new == 1
