"""What the writer counts of each new article for freshness, and what is summed up, kept and read of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

from services.admin.health.freshness import Freshness, read_freshness
from services.admin.registry import NewFeed, add_feed, connect
from services.writer.freshness.buckets import bucket_of, edge_of
from services.writer.freshness.rows import KEPT, prune_freshness, sum_hour
from services.writer.handler import FRESHNESS, NOT_COUNTED, WriteArticles
from services.writer.pruning import Pruning, Retention
from services.writer.schedule.feed_state import Rules
from services.writer.store import Policy
from shared.database.postgres import Database
from shared.wire.outcomes import Outcome
from shared.wire.results import Entry
from tests.factories import NOW, make_entry, make_result
from tests.integration.writer.writing import claim, rows, write

HOUR = timedelta(hours=1)


async def poll(database: Database, feed_id: int, later: timedelta, *entries: Entry, **changes: Any) -> None:
    """Write a result of the feed that was fetched then, and written 20 seconds after."""
    at = NOW + later
    outcome = Outcome.FETCHED if entries or not changes else changes.pop("outcome")
    result = make_result(
        feed_id=feed_id,
        claim_id=await claim(database, feed_id),
        outcome=outcome,
        queued_at=at,
        started_at=at,
        body_hash="a hash" if outcome is Outcome.FETCHED else None,
        entries=entries,
        **changes,
    )
    await write(database, result, later=later + timedelta(seconds=20))


def dated(number: int, later: timedelta, **changes: Any) -> Entry:
    return make_entry(number, published_at=NOW + later, **changes)


async def counted(database: Database) -> dict[tuple[str, int], int]:
    found = await rows(database, "SELECT kind, bucket, sum(articles)::int AS number FROM feed_freshness GROUP BY 1, 2")
    return {(row["kind"], row["bucket"]): row["number"] for row in found}


async def read(database: Database, later: timedelta = HOUR, **of: Any) -> dict[Any, Freshness]:
    async with database.transaction() as connection:
        return await read_freshness(connection, now=NOW + later, **of)


async def test_a_first_reading_is_left_out_and_then_articles_count(database: Database, feed_id: int) -> None:
    await poll(database, feed_id, timedelta(), make_entry(1), make_entry(2))
    assert await counted(database) == {("first_reading", 0): 2}
    await poll(database, feed_id, HOUR, make_entry(1), dated(3, HOUR / 2), make_entry(4, published_at=None))
    assert await counted(database) == {
        ("first_reading", 0): 2,
        ("sure", bucket_of(1820)): 1,
        ("unsure", bucket_of(3620)): 1,
    }
    found = (await read(database, feed=feed_id))["hour"]
    assert (found.sure, found.unsure, found.left_out["first_reading"], found.share_sure) == (1, 1, 2, 0.5)
    assert found.seconds
    assert found.at_most
    assert (found.seconds.p50, found.at_most.p99) == (edge_of(bucket_of(1820)), edge_of(bucket_of(3620)))


async def test_a_304_counts_as_the_poll_before(database: Database, feed_id: int) -> None:
    await poll(database, feed_id, timedelta(), make_entry(1))
    await poll(database, feed_id, 2 * HOUR, outcome=Outcome.NOT_MODIFIED)
    await poll(database, feed_id, 3 * HOUR, make_entry(2, published_at=None))
    assert (await counted(database))["unsure", bucket_of(3620)] == 1


async def test_all_new_articles_are_counted_and_changed_ones_never(database: Database, feed_id: int) -> None:
    await poll(database, feed_id, timedelta(), make_entry(1))
    old = dated(2, timedelta(days=-9))
    elsewhere = make_entry(3, url="http://www.news.example/1?utm_source=feed", title="Article 1")
    await poll(database, feed_id, HOUR, make_entry(1, body="Another text."), old, elsewhere, dated(4, 9 * HOUR))
    kinds = Counter({kind: number for (kind, _), number in (await counted(database)).items()})
    assert kinds == {"first_reading": 1, "old_date": 1, "duplicate": 1, "ahead": 1}
    assert (await rows(database, "SELECT sum(items_new)::int AS new FROM feed_fetch_log"))[0]["new"] == kinds.total()


async def test_a_feed_that_a_person_resumed_is_left_out_once(database: Database, feed_id: int) -> None:
    await poll(database, feed_id, timedelta(), make_entry(1))
    async with database.transaction() as connection:
        await connection.execute("UPDATE feeds SET resumed_at = %s", [NOW + HOUR])
    await poll(database, feed_id, 2 * HOUR, dated(2, HOUR / 2))
    await poll(database, feed_id, 3 * HOUR, dated(3, 2.5 * HOUR))
    assert await counted(database) == {("first_reading", 0): 1, ("paused", 0): 1, ("sure", bucket_of(1820)): 1}


async def test_a_result_that_comes_twice_counts_once(database: Database, feed_id: int) -> None:
    result = make_result(feed_id=feed_id, claim_id=await claim(database, feed_id), entries=[make_entry(1)])
    await write(database, result)
    await write(database, result)
    assert await counted(database) == {("first_reading", 0): 1}


async def test_writers_side_by_side_count_in_the_same_hour(database: Database, database_url: str) -> None:
    with connect(database_url) as connection:
        feeds = [add_feed(connection, NewFeed(f"http://news-{n}.example/feed"))[0] for n in range(4)]

    async def follow(feed_id: int) -> None:
        for number in range(3):
            entry = dated(100 * feed_id + number, HOUR * number / 8)
            await poll(database, feed_id, timedelta(minutes=10 * number), entry)

    await asyncio.gather(*map(follow, feeds))
    assert sum((await counted(database)).values()) == 12


async def test_the_metrics_have_each_new_article(database: Database, feed_id: int) -> None:
    def seen() -> tuple[float, float]:
        return FRESHNESS.labels("sure")._sum.get(), NOT_COUNTED.labels("first_reading")._value.get()

    before = seen()
    for later, entry in ((timedelta(), make_entry(1)), (HOUR, dated(2, HOUR / 2))):
        now = NOW + later
        handler = WriteArticles(database, Rules(), Policy(), frozenset(), lambda now=now: now)  # type: ignore[misc]
        claim_id = await claim(database, feed_id)
        at = {"queued_at": now, "started_at": now}
        await handler([make_result(feed_id=feed_id, claim_id=claim_id, body_hash="a hash", entries=[entry], **at)])
    assert seen() == (before[0] + 1800.0, before[1] + 1)


async def insert(database: Database, feed_id: int, hours_ago: int, **kinds: int) -> None:
    """Count articles that took about a minute, in a past hour of the server's clock."""
    async with database.transaction() as connection:
        for kind, articles in kinds.items():
            await connection.execute(
                "INSERT INTO feed_freshness VALUES"
                " (date_trunc('hour', now(), 'UTC') - make_interval(hours => %s), %s, %s, 43, %s)",
                [hours_ago, feed_id, kind, articles],
            )


async def read_now(database: Database, **of: Any) -> dict[Any, Freshness]:
    async with database.transaction() as connection:
        return await read_freshness(connection, **of)


async def test_sums_over_hosts_say_what_the_feeds_say(database: Database, database_url: str) -> None:
    with connect(database_url) as connection:
        one, other, elsewhere = (
            add_feed(connection, NewFeed(url))[0]
            for url in ("http://news.example/a", "http://news.example/b", "http://calm.example/feed")
        )
    for hours_ago in (0, 5, 30, 160):
        for number, feed_id in enumerate((one, other, elsewhere, 4_000_000), 1):  # the last one is gone
            await insert(database, feed_id, hours_ago, sure=number, unsure=1, paused=2)
    hosts = ("news.example", "calm.example", "nobody.example", None)
    before = [await read_now(database, host=host) for host in hosts]
    await Pruning(database, Retention()).round(asyncio.Event())
    assert [await read_now(database, host=host) for host in hosts] == before
    of_host, overall = before[0], before[3]
    assert [of_host[span].sure for span in ("hour", "day", "week")] == [3, 6, 12]
    assert [overall[span].sure for span in ("hour", "day", "week")] == [10, 20, 40]
    assert (overall["week"].unsure, overall["week"].left_out["paused"]) == (16, 32)
    assert before[2]["week"].at_most is None


async def test_an_hour_is_summed_up_once_and_only_after_its_end(database: Database, feed_id: int) -> None:
    await insert(database, feed_id, 0, sure=1)
    async with database.transaction() as connection:
        assert await sum_hour(connection) == 0
    await insert(database, feed_id, 3, sure=1)
    async with database.transaction() as connection:
        made = [await sum_hour(connection) for _ in range(5)]
    assert made[0] == 3  # of the host, of all, and that it is summed up
    assert made[1] == 1
    assert made[-1] == 0


async def test_counts_are_kept_for_eight_days(database: Database, feed_id: int) -> None:
    assert KEPT == "8 days"
    await insert(database, feed_id, 24 * 8 + 1, sure=1)
    await insert(database, feed_id, 24 * 8 - 1, sure=1)
    async with database.transaction() as connection:
        await connection.execute("INSERT INTO host_freshness SELECT at, '', kind, bucket, 1 FROM feed_freshness")
        for table in ("feed_freshness", "host_freshness"):
            assert [await prune_freshness(connection, table, 10) for _ in range(2)] == [1, 0]
