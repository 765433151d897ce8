"""What the writer notes of a feed's health: duplicates, failures, dates that may be read in two ways."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from services.admin.registry import NewFeed, add_feed, connect
from services.scheduler.store import claim_due_feeds
from shared.database.postgres import Database
from shared.wire.outcomes import Outcome
from shared.wire.results import Entry
from tests.factories import NOW, make_entry, make_result
from tests.integration.writer.writing import claim, rows, write


@pytest.fixture
def feeds(database_url: str) -> list[int]:
    with connect(database_url) as connection:
        return [add_feed(connection, NewFeed(f"http://f{n}.example/"))[0] for n in range(3)]


async def fetched(database: Database, feed: int, *entries: Entry, minutes: int = 0, **changes: Any) -> None:
    claim_id = await claim(database, feed)
    url = f"http://f{feed - 1}.example/"
    fields = {"url": url, "final_url": url, "started_at": NOW + timedelta(minutes=minutes), **changes}
    await write(database, make_result(feed_id=feed, claim_id=claim_id, entries=entries, **fields))


async def originals(database: Database) -> list[int | None]:
    return [row["duplicate_of"] for row in await rows(database, "SELECT duplicate_of FROM feeds ORDER BY id")]


ARTICLES = tuple(make_entry(n) for n in range(20))


async def test_a_feed_that_lists_what_another_one_brought_is_its_duplicate(
    database: Database, feeds: list[int]
) -> None:
    first, second, third = feeds
    await fetched(database, first, *ARTICLES)
    await fetched(database, second, *ARTICLES[2:], make_entry(101), make_entry(102))
    await fetched(database, third, *ARTICLES[:10], *(make_entry(n) for n in range(200, 210)))
    assert await originals(database) == [None, first, None]
    words = await rows(database, "SELECT word FROM feed_words ORDER BY feed_id")
    assert words[1]["word"] == "duplicate"
    async with database.transaction() as connection:
        await connection.execute("UPDATE feeds SET enabled = false WHERE id = %s", [first])
    words = await rows(database, "SELECT word FROM feed_words ORDER BY feed_id")
    assert words[1]["word"] == "healthy", "without the other one this feed is needed"


async def test_articles_under_another_address_of_theirs_count_too(database: Database, feeds: list[int]) -> None:
    first, second, _ = feeds
    plain = [make_entry(n, url=f"http://news.example/story-{n}") for n in range(10)]
    tracked = [
        make_entry(n, url=f"http://news.example/story-{n}?utm_source=rss", title=f"Other {n}") for n in range(10)
    ]
    await fetched(database, first, *plain)
    await fetched(database, second, *tracked)
    assert await originals(database) == [None, first, None]
    await fetched(database, second, *tracked, minutes=60)
    assert await originals(database) == [None, first, None]


async def test_a_feed_that_brings_its_own_articles_again_is_no_duplicate_any_more(
    database: Database, feeds: list[int]
) -> None:
    first, second, _ = feeds
    await fetched(database, first, *ARTICLES)
    await fetched(database, second, *ARTICLES)
    assert await originals(database) == [None, first, None]
    await fetched(database, second, *(make_entry(n) for n in range(300, 310)), minutes=60)
    assert await originals(database) == [None, None, None]


async def test_few_shared_articles_prove_nothing(database: Database, feeds: list[int]) -> None:
    await fetched(database, feeds[0], *ARTICLES)
    await fetched(database, feeds[1], *ARTICLES[:4])
    assert await originals(database) == [None, None, None]


async def test_a_partial_reading_changes_nothing(database: Database, feeds: list[int]) -> None:
    await fetched(database, feeds[0], *ARTICLES)
    await fetched(database, feeds[1], *ARTICLES)
    await fetched(database, feeds[1], *(make_entry(n) for n in range(300, 310)), minutes=60, known=bytes(8))
    assert await originals(database) == [None, feeds[0], None]


async def test_feeds_that_lead_to_one_url_are_duplicates_of_the_first(database: Database, feeds: list[int]) -> None:
    first, second, third = feeds
    await fetched(database, third, make_entry(1), final_url="http://f0.example/")
    assert await originals(database) == [None, None, first]
    long = "http://elsewhere.example/" + "x" * 7900
    await fetched(database, second, make_entry(2), final_url=long)
    await fetched(database, third, make_entry(1), final_url=long, minutes=60)
    assert await originals(database) == [None, None, second]


@pytest.mark.parametrize("is_elder_led", [True, False])
async def test_of_two_feeds_with_the_same_articles_only_the_one_that_is_redirected_is_a_duplicate(
    database: Database, feeds: list[int], is_elder_led: bool
) -> None:
    led, straight = feeds[:2] if is_elder_led else feeds[1::-1]
    target = f"http://f{straight - 1}.example/"
    await fetched(database, led, *ARTICLES)
    await fetched(database, straight, *ARTICLES)
    assert (await originals(database))[straight - 1] == led
    await fetched(database, led, *ARTICLES, minutes=60, final_url=target)
    found = await originals(database)
    assert (found[led - 1], found[straight - 1]) == (straight, None)
    await fetched(database, straight, *ARTICLES, minutes=120)
    assert await originals(database) == found


async def test_of_two_feeds_that_lead_to_each_other_the_younger_is_a_duplicate(
    database: Database, feeds: list[int]
) -> None:
    first, second, _ = feeds
    for minutes in (0, 60):
        for feed, target in ((second, "http://f0.example/"), (first, "http://f1.example/")):
            await fetched(database, feed, make_entry(1), minutes=minutes, final_url=target)
            assert await originals(database) == [None, first, None]


async def test_what_a_login_gets_may_be_another_document(database: Database, feeds: list[int]) -> None:
    async with database.transaction() as connection:
        await connection.execute("""UPDATE feeds SET source_config = '{"user": "me", "password": "x"}' WHERE id = 3""")
    await fetched(database, feeds[2], make_entry(1), final_url="http://f0.example/")
    assert await originals(database) == [None, None, None]


async def test_a_failure_has_begun_with_the_first_one_since_the_last_success(
    database: Database, feeds: list[int]
) -> None:
    async def since() -> Any:
        return (await rows(database, "SELECT failing_since FROM feeds WHERE id = 1"))[0]["failing_since"]

    await fetched(database, 1, outcome=Outcome.THROTTLED, minutes=-50)
    assert await since() is None
    for minutes in (-40, -30):
        await fetched(database, 1, outcome=Outcome.HARD_ERROR, minutes=minutes, queued_at=NOW + timedelta(minutes=-60))
    assert await since() == NOW - timedelta(minutes=40)
    await fetched(database, 1, outcome=Outcome.NOT_MODIFIED, minutes=-20, queued_at=NOW + timedelta(minutes=-60))
    assert await since() is None


async def test_dates_that_may_be_read_in_two_ways_are_noted_until_they_can_be_told(
    database: Database, feeds: list[int]
) -> None:
    async def noted() -> tuple[bool, str | None]:
        (row,) = await rows(database, "SELECT ambiguous_since, date_order_seen FROM feeds WHERE id = 1")
        return row["ambiguous_since"] is not None, row["date_order_seen"]

    doubtful = make_entry(1, flags=("date_ambiguous",))
    await fetched(database, 1, doubtful)
    assert await noted() == (True, None)
    await fetched(database, 1, minutes=30, outcome=Outcome.NOT_MODIFIED)
    assert await noted() == (True, None)
    await fetched(database, 1, make_entry(2), minutes=60, date_order="month")
    assert await noted() == (False, "month")
    await fetched(database, 1, make_entry(3), minutes=90)
    assert await noted() == (False, "month"), "a proof is remembered"


async def test_a_job_carries_what_a_person_decided_else_what_was_proven(database: Database, feeds: list[int]) -> None:
    async with database.transaction() as connection:
        await connection.execute(
            """
            UPDATE feeds SET date_order_seen = 'month', date_order = CASE id WHEN 1 THEN 'day' END,
                next_fetch_at = now() - interval '1 minute' WHERE id <= 2
            """
        )
        claimed = await claim_due_feeds(connection, limit=10, claim_seconds=60)
    assert {job.feed_id: job.date_order for job in claimed.jobs} == {1: "day", 2: "month", 3: None}
    plain = next(job for job in claimed.jobs if job.feed_id == 3)
    assert b"date_order" not in plain.encode()[0], "fetchers of before this version take it"
