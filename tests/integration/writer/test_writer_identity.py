"""Which article an entry is, in the tables. The rules themselves: tests/unit/writer/test_identity.py."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from datetime import timedelta
from typing import Any

import pytest

from services.admin.registry import NewFeed, add_feed, connect
from services.writer.articles.rows import MAX_UPDATES
from services.writer.store import Policy, Written
from shared.database.postgres import Database
from shared.wire.results import Entry, FeedFetched
from tests.factories import NOW, make_entry, make_result
from tests.integration.writer.writing import claim, rows, write


@pytest.fixture
def other(database_url: str, feed_id: int) -> int:
    with connect(database_url) as connection:
        return add_feed(connection, NewFeed("http://other.example/feed"))[0]


def entry(body: str, id_: str | None = None, title: str = "t", **changes: Any) -> Entry:
    given = {} if id_ is None else {"entry_id": id_, "id_is_given": True}
    content_hash = hashlib.sha256(f"{title}\n{body}".encode()).hexdigest()
    url = "http://news.example/a"
    return make_entry(**{"url": url, "title": title, "body": body, "content_hash": content_hash, **given, **changes})


def result(feed_id: int, *entries: Entry, minutes: int = 0, **changes: Any) -> FeedFetched:
    started_at = NOW + timedelta(minutes=minutes)
    return make_result(**{"feed_id": feed_id, "entries": entries, "started_at": started_at, **changes})


async def texts(database: Database) -> list[tuple[str, str, int]]:
    found = await rows(database, "SELECT title, body, revision FROM pending_articles ORDER BY title, body")
    return [(row["title"], row["body"], row["revision"]) for row in found]


ORDERS = list(itertools.permutations(range(3)))


@pytest.mark.parametrize("order", ORDERS)
async def test_of_one_article_in_a_batch_the_owners_newest_entry_counts(
    database: Database, feed_id: int, other: int, order: tuple[int, ...]
) -> None:
    await write(database, result(feed_id, entry("old")))
    batch = [
        result(other, entry("theirs"), minutes=3),
        result(feed_id, entry("corrected"), minutes=1),
        result(feed_id, entry("corrected twice"), minutes=2),
    ]
    written = await write(database, *(batch[at] for at in order), later=timedelta(hours=1))
    assert (written, await texts(database)) == (Written(0, 1, 0), [("t", "corrected twice", 1)])


@pytest.mark.parametrize("order", ORDERS)
async def test_a_new_article_belongs_to_the_feed_that_was_fetched_first_and_has_its_newest_text(
    database: Database, feed_id: int, other: int, order: tuple[int, ...]
) -> None:
    first = result(feed_id, entry("first"), minutes=1)
    batch = [first, result(feed_id, entry("second"), minutes=3), result(other, entry("theirs"), minutes=2)]
    written = await write(database, *(batch[at] for at in order), later=timedelta(hours=1))
    assert (written, await texts(database)) == (Written(1, 0, 0), [("t", "second", 0)])
    assert await rows(database, "SELECT feed_id FROM feed_items") == [{"feed_id": feed_id}]
    logged = await rows(database, "SELECT result_id, items_new FROM feed_fetch_log WHERE items_new > 0")
    assert logged == [{"result_id": first.result_id, "items_new": 1}]


async def test_a_correction_counts_also_if_another_feed_comes_in_batches_before_and_after(
    database: Database, feed_id: int, other: int
) -> None:
    await write(database, result(feed_id, entry("old")))
    await write(database, result(other, entry("theirs")))
    assert (await write(database, result(feed_id, entry("corrected")))).updated == 1
    assert (await write(database, result(other, entry("theirs again")))).updated == 0
    assert await texts(database) == [("t", "corrected", 1)]


async def test_a_result_after_its_successor_adds_new_articles_and_changes_none(
    database: Database, feed_id: int
) -> None:
    late = result(feed_id, entry("old"), entry("b", title="gone since"), claim_id=await claim(database, feed_id))
    present = await claim(database, feed_id)
    await write(database, result(feed_id, entry("new"), minutes=10, claim_id=present), later=timedelta(minutes=11))
    assert (await write(database, late, later=timedelta(minutes=12))) == Written(1, 0, 1)
    assert await texts(database) == [("gone since", "b", 0), ("t", "new", 0)]


async def test_the_result_of_the_present_claim_is_the_newest_whatever_clocks_say(
    database: Database, feed_id: int
) -> None:
    await write(database, result(feed_id, entry("first")))
    late = result(feed_id, entry("old"), minutes=90, claim_id=await claim(database, feed_id))
    present = result(feed_id, entry("new"), minutes=10, claim_id=await claim(database, feed_id))
    await write(database, present, late, later=timedelta(minutes=11))
    assert await texts(database) == [("t", "new", 1)]


async def test_a_title_that_changes_under_one_id_and_link_is_a_change_of_the_article(
    database: Database, feed_id: int
) -> None:
    first = entry("text", "1", "at 10:00")
    assert (await write(database, result(feed_id, first))).new == 1
    for minute in range(1, 143):
        written = await write(database, result(feed_id, entry("text", "1", f"at 10:{minute}")))
        assert (written.new, written.updated) == (0, 1 if minute <= MAX_UPDATES else 0)
    (row,) = await rows(database, "SELECT md5, title, revision FROM pending_articles")
    assert row == {"md5": first.md5, "title": f"at 10:{MAX_UPDATES}", "revision": MAX_UPDATES}


async def test_a_title_that_changes_alone_is_a_change_also_if_the_hash_does_not_say_so(
    database: Database, feed_id: int
) -> None:
    for title in ("draft", "final"):
        await write(database, result(feed_id, entry("text", "1", title, content_hash="0" * 64)))
    assert await texts(database) == [("final", "text", 1)]


async def test_only_the_owner_changes_a_title(database: Database, feed_id: int, other: int) -> None:
    await write(database, result(feed_id, entry("text", "1", "draft")))
    await write(database, result(other, entry("text", "1", "draft")))
    await write(database, result(feed_id, entry("text", "1", "final")))
    assert await write(database, result(other, entry("text", "1", "final"))) == Written(0, 0, 1)
    assert await write(database, result(other, entry("text", "1", "draft"))) == Written(0, 0, 1)
    assert await texts(database) == [("final", "text", 1)]


async def test_a_changed_title_is_offered_again_under_the_articles_name_if_wanted(
    database: Database, feed_id: int
) -> None:
    policy = Policy(requeue_updates=True)
    first = entry("text", "1", "draft")
    await write(database, result(feed_id, first), policy=policy)
    await rows(database, "DELETE FROM pending_articles RETURNING 1")
    await write(database, result(feed_id, entry("text", "1", "final")), policy=policy)
    assert await rows(database, "SELECT md5, title, revision FROM pending_articles") == [
        {"md5": first.md5, "title": "final", "revision": 1}
    ]


@pytest.mark.parametrize("duplicates", ["flag", "drop"])
async def test_two_ids_and_texts_under_one_link_and_title_are_two_articles_and_no_duplicates(
    database: Database, feed_id: int, duplicates: Any
) -> None:
    policy = Policy(duplicates=duplicates)
    anchor = entry("anchor", "0", "anchor", url="http://news.example/0")
    up, down, away = entry("up", "1"), entry("down", "2"), entry("away", "3")
    assert (await write(database, result(feed_id, anchor, up, down), policy=policy)).new == 3
    assert await write(database, result(feed_id, anchor, down, up), policy=policy) == Written(0, 0, 3)
    written = await write(database, result(feed_id, anchor, away), policy=policy)
    assert (written.new, written.duplicates) == (1, 0)
    assert [body for _, body, _ in await texts(database)] == ["anchor", "away", "down", "up"]


async def test_a_ledger_of_before_learns_the_keys_of_what_is_seen_again_and_then_rests(
    database: Database, feed_id: int
) -> None:
    document = [entry("up", "1"), entry("text", "2", "other", url="http://news.example/2")]
    await write(database, result(feed_id, *document))
    async with database.transaction() as connection:
        await connection.execute("UPDATE feed_items SET entry_key = NULL, title_md5 = NULL")
    assert await write(database, result(feed_id, entry("down", "3"), *document)) == Written(1, 0, 2)
    learnt = await rows(database, "SELECT md5, entry_key, xmin::text FROM feed_items ORDER BY md5")
    assert all(row["entry_key"] for row in learnt)
    await write(database, result(feed_id, *document))
    assert await rows(database, "SELECT md5, entry_key, xmin::text FROM feed_items ORDER BY md5") == learnt


async def test_a_writer_of_before_beside_us_does_no_harm(database: Database, feed_id: int) -> None:
    """Its rows have no key: what it took for a new article for its title is known by that title."""
    await write(database, result(feed_id, entry("text", "1", "draft")))
    await write(database, result(feed_id, entry("text", None, "final")))  # it knows entries by link and title alone
    assert await write(database, result(feed_id, entry("text", "1", "final"))) == Written(0, 1, 0)
    assert await write(database, result(feed_id, entry("text", "1", "final"))) == Written(0, 0, 1)


async def test_ids_that_are_new_with_each_fetch_write_no_rows(database: Database, feed_id: int) -> None:
    for number in range(5):
        written = await write(database, result(feed_id, entry("a", f"{number}a", "a"), entry("b", f"{number}b", "b")))
        assert written.new == (2 if number == 0 else 0)
    assert len(await rows(database, "SELECT FROM feed_items")) == 2


async def test_writers_side_by_side_agree_on_names(database: Database, feed_id: int) -> None:
    documents = [[entry(f"{id_} {n}", id_) for id_ in order] for n, order in enumerate(["123", "321", "213", "132"])]
    await asyncio.gather(*(write(database, result(feed_id, *document)) for document in documents))
    assert await rows(database, "SELECT count(*) AS n FROM pending_articles") == [{"n": 3}]
