"""What the fetch log tells of an attempt's new articles."""

from __future__ import annotations

from typing import Any

from services.admin.registry import NewFeed, add_feed, connect
from services.writer.handler import DUPLICATES, WriteArticles
from services.writer.schedule.feed_state import Rules
from services.writer.store import Policy, write_batch
from shared.database.postgres import Database
from shared.wire.enrichment import Enrichment
from shared.wire.results import Entry
from tests.factories import NOW, make_entry, make_result
from tests.integration.writer.test_near_duplicates import sketched

COLUMNS = "items_seen, items_new, items_dated, items_full, items_duplicate"
LABELS = "items_enriched, items_language, items_topic, items_duplicate_title, items_duplicate_text"


async def write(database: Database, feed_id: int, entries: list[Entry], columns: str = COLUMNS) -> dict[str, Any]:
    """Write a result; return what the log says of it."""
    result = make_result(feed_id=feed_id, entries=entries, tier="strict")
    async with database.transaction() as connection:
        await write_batch(connection, [result], now=NOW, rules=Rules(), proxy_hosts=frozenset())
        cursor = await connection.execute(
            f"SELECT {columns} FROM feed_fetch_log WHERE result_id = %s".encode(),
            [result.result_id],
        )
        row = await cursor.fetchone()
    assert row is not None
    return row


async def test_new_articles_are_counted_by_date_text_and_address(database: Database, feed_id: int) -> None:
    entries = [
        make_entry(1),
        make_entry(2, content_quality="summary"),
        make_entry(3, flags=("date_guessed",)),
        make_entry(4, published_at=None, content_quality="stub"),
    ]
    found = await write(database, feed_id, entries)
    assert found == {"items_seen": 4, "items_new": 4, "items_dated": 2, "items_full": 2, "items_duplicate": 0}


async def test_articles_that_are_known_are_not_counted_again(database: Database, feed_id: int) -> None:
    await write(database, feed_id, [make_entry(1)])
    found = await write(database, feed_id, [make_entry(1), make_entry(2, content_quality="title_only")])
    assert found == {"items_seen": 2, "items_new": 1, "items_dated": 1, "items_full": 0, "items_duplicate": 0}


async def test_an_article_that_came_before_under_another_address_is_a_duplicate(
    database: Database, feed_id: int
) -> None:
    await write(database, feed_id, [make_entry(1)])
    found = await write(
        database, feed_id, [make_entry(5, url="http://www.news.example/1?utm_source=feed", title="Article 1")]
    )
    assert (found["items_new"], found["items_duplicate"]) == (1, 1)


async def test_new_articles_are_counted_by_what_they_are_labelled_as(database: Database, feed_id: int) -> None:
    entries = [
        make_entry(1),
        make_entry(2, enrichment=Enrichment()),
        make_entry(3, enrichment=Enrichment(language="und", topic="politics", topic_confidence=0.9)),
        make_entry(4, enrichment=Enrichment(language="en", language_confidence=0.99, flags=("enrichment_failed",))),
    ]
    found = await write(database, feed_id, entries, LABELS)
    assert found == {
        "items_enriched": 3,
        "items_language": 1,
        "items_topic": 1,
        "items_duplicate_title": 0,
        "items_duplicate_text": 0,
    }


async def test_a_story_that_came_before_in_these_words_is_counted_by_what_tells_it(
    database: Database, database_url: str, feed_id: int
) -> None:
    with connect(database_url) as connection:
        other = add_feed(connection, NewFeed("http://agency-1.example/feed"))[0]
    await write(database, feed_id, [sketched(0)])
    counted = DUPLICATES.labels("text")._value.get()
    rules, now = Rules(), NOW
    handler = WriteArticles(database, rules, Policy(), frozenset(), lambda: now)
    again = make_result(feed_id=other, entries=(sketched(1),))
    await handler([again])
    assert DUPLICATES.labels("text")._value.get() == counted + 1
    async with database.transaction() as connection_:
        cursor = await connection_.execute(
            "SELECT items_duplicate, items_duplicate_title, items_duplicate_text FROM feed_fetch_log"
            " WHERE result_id = %s",
            [again.result_id],
        )
        row = await cursor.fetchone()
    assert row == {"items_duplicate": 1, "items_duplicate_title": 0, "items_duplicate_text": 1}
