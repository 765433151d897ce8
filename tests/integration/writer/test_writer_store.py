from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from services.admin.registry import NewFeed, add_feed, connect
from services.writer.articles.rows import MAX_UPDATES
from services.writer.schedule.feed_state import Rules
from services.writer.store import Duplicates, Policy, Written, write_batch
from shared.database.postgres import Database
from shared.errors import DatabaseUnavailable
from shared.wire.outcomes import Outcome
from shared.wire.results import Enclosure, FeedFetched
from tests.factories import NOW, make_entry, make_result
from tests.integration.writer.writing import claim, drain, rows, write


async def test_an_article_lands_with_everything_it_has(database: Database, feed_id: int) -> None:
    entry = make_entry(
        1,
        title='Quotes " and {braces}, and \\ backslash',
        author="A. Writer",
        categories=("a,b", 'c"d', "e\\f", "NULL", ""),
        enclosures=(Enclosure(url="http://news.example/1.mp3", type="audio/mpeg", length=7),),
        language="de",
        flags=("date_clamped",),
        updated_at=NOW,
    )
    assert await write(database, make_result(feed_id=feed_id, entries=(entry,))) == Written(1, 0, 0)
    (row,) = await rows(database, "SELECT * FROM pending_articles")
    for field in ("md5", "entry_id", "url", "title", "body", "content_quality", "content_hash", "author", "language"):
        assert row[field] == getattr(entry, field)
    assert row["categories"] == ["a,b", 'c"d', "e\\f", "NULL", ""]
    assert row["enclosures"] == [{"url": "http://news.example/1.mp3", "type": "audio/mpeg", "length": 7}]
    assert (row["published_at"], row["updated_at"], row["flags"]) == (entry.published_at, NOW, ["date_clamped"])


async def test_html_is_written_where_it_was_kept_and_follows_changes(database: Database, feed_id: int) -> None:
    kept, not_kept = make_entry(1, html="<p>one</p>"), make_entry(2)
    await write(database, make_result(feed_id=feed_id, entries=(kept, not_kept)))
    query = "SELECT html FROM pending_articles ORDER BY url"
    assert [row["html"] for row in await rows(database, query)] == ["<p>one</p>", None]
    changed = make_entry(1, html="<p>two</p>", body="two", content_hash="0" * 64)
    assert await write(database, make_result(feed_id=feed_id, entries=(changed,))) == Written(0, 1, 0)
    assert [row["html"] for row in await rows(database, query)] == ["<p>two</p>", None]


async def test_the_same_article_from_two_feeds_lands_once(database: Database, database_url: str, feed_id: int) -> None:
    with connect(database_url) as connection:
        other = add_feed(connection, NewFeed("http://other.example/feed"))[0]
    entries = (make_entry(1),)
    written = await write(
        database, make_result(feed_id=feed_id, entries=entries), make_result(feed_id=other, entries=entries)
    )
    assert written == Written(1, 0, 0)
    assert await write(database, make_result(feed_id=other, entries=entries)) == Written(0, 0, 1)
    assert len(await rows(database, "SELECT * FROM pending_articles")) == 1


async def test_a_result_that_is_delivered_again_changes_nothing(database: Database, feed_id: int) -> None:
    claim_id = await claim(database, feed_id)
    result = make_result(feed_id=feed_id, claim_id=claim_id, entries=(make_entry(1),))
    await write(database, result, result)
    before = await rows(database, "SELECT * FROM feeds")
    assert await write(database, result, later=timedelta(hours=1)) == Written(0, 0, 0)
    assert await rows(database, "SELECT * FROM feeds") == before
    (logged,) = await rows(database, "SELECT * FROM feed_fetch_log")
    assert (logged["items_seen"], logged["items_new"], logged["ok"]) == (1, 1, True)


async def test_an_article_that_was_drained_does_not_come_back(database: Database, feed_id: int) -> None:
    result = make_result(feed_id=feed_id, entries=(make_entry(1),))
    await write(database, result)
    await rows(database, "DELETE FROM pending_articles RETURNING md5")
    again = make_result(feed_id=feed_id, entries=(make_entry(1),))
    assert await write(database, again) == Written(0, 0, 1)
    assert await rows(database, "SELECT * FROM pending_articles") == []


async def test_feed_state_and_articles_are_one_transaction(database: Database, feed_id: int) -> None:
    claim_id = await claim(database, feed_id)
    poison = make_entry(2, body="a NUL \0 that PostgreSQL refuses")
    with pytest.raises(Exception, match="0x00"):
        await write(
            database, make_result(feed_id=feed_id, claim_id=claim_id, etag='"e"', entries=(make_entry(1), poison))
        )
    assert await rows(database, "SELECT * FROM feed_items UNION ALL SELECT * FROM feed_items") == []
    (feed,) = await rows(database, "SELECT * FROM feeds")
    assert (feed["claim_id"], feed["etag"]) == (claim_id, None)


async def test_the_state_of_a_feed_follows_its_final_result(database: Database, feed_id: int) -> None:
    claim_id = await claim(database, feed_id)
    await write(database, make_result(feed_id=feed_id, claim_id=claim_id, etag='W/"x"', entries=(make_entry(1),)))
    (feed,) = await rows(database, "SELECT * FROM feeds")
    assert (feed["etag"], feed["claim_id"], feed["last_outcome"]) == ('W/"x"', None, "fetched")
    assert feed["next_fetch_at"] > NOW + timedelta(seconds=300)
    assert feed["poll_seconds"] > 300
    assert feed["pace"]["seen_at"] == NOW.isoformat().replace("+00:00", "Z")


async def test_a_late_result_of_an_old_claim_delivers_articles_and_no_state(database: Database, feed_id: int) -> None:
    old = await claim(database, feed_id)
    new = await claim(database, feed_id)
    written = await write(database, make_result(feed_id=feed_id, claim_id=old, etag='"late"', entries=(make_entry(1),)))
    assert written.new == 1
    (feed,) = await rows(database, "SELECT * FROM feeds")
    assert (feed["claim_id"], feed["etag"]) == (new, None)


async def test_results_of_a_feed_that_was_removed_are_dropped(database: Database, feed_id: int) -> None:
    gone = make_result(feed_id=feed_id + 1, entries=(make_entry(1),))
    assert await write(database, gone) == Written(0, 0, 0)


async def test_a_changed_article_updates_its_pending_row_a_bounded_number_of_times(
    database: Database, feed_id: int
) -> None:
    for number in range(MAX_UPDATES + 5):
        entry = make_entry(1, body=f"it is {number} o'clock", content_hash=f"{number:064x}")
        await write(database, make_result(feed_id=feed_id, entries=(entry,)))
    (row,) = await rows(database, "SELECT body FROM pending_articles")
    assert row["body"] == f"it is {MAX_UPDATES} o'clock"


async def test_a_feed_that_prints_anothers_article_does_not_change_it(
    database: Database, database_url: str, feed_id: int
) -> None:
    with connect(database_url) as connection:
        other = add_feed(connection, NewFeed("http://other.example/feed"))[0]
    await write(database, make_result(feed_id=feed_id, entries=(make_entry(1, body="the long text"),)))
    short = make_entry(1, body="short", content_hash="0" * 64)
    assert await write(database, make_result(feed_id=other, entries=(short,))) == Written(0, 0, 1)
    (row,) = await rows(database, "SELECT body FROM pending_articles")
    assert row["body"] == "the long text"


async def test_an_address_that_no_index_takes_is_an_error_of_the_data_and_not_of_the_server(
    database: Database, feed_id: int
) -> None:
    too_long = "UPDATE feeds SET url = (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 900) n)"
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        await rows(database, too_long)


async def test_last_seen_follows_the_feed_about_once_a_day(database: Database, feed_id: int) -> None:
    for hours in (0, 1, 25):
        result = make_result(feed_id=feed_id, entries=(make_entry(1),))
        await write(database, result, later=timedelta(hours=hours))
        (item,) = await rows(database, "SELECT first_seen_at, last_seen_at FROM feed_items")
        assert item["first_seen_at"] == NOW
        assert item["last_seen_at"] == NOW + timedelta(hours=25 if hours == 25 else 0)


async def see_move(database: Database, feed_id: int, to: str) -> None:
    for days in (0, 1, 2):
        claim_id = await claim(database, feed_id)
        later = timedelta(days=days)
        moved = make_result(feed_id=feed_id, claim_id=claim_id, moved_to=to, started_at=NOW + later)
        await write(database, moved, later=later)


async def test_an_adopted_move_changes_url_and_group(database: Database, feed_id: int) -> None:
    await see_move(database, feed_id, "http://free.example:8080/feed")
    found = await rows(database, "SELECT url, politeness_group, enabled FROM feeds ORDER BY id")
    assert [tuple(row.values()) for row in found] == [("http://free.example:8080/feed", "free.example:8080", True)]


@pytest.mark.parametrize("config", ['{"user": "me", "password": "pw"}', '{"headers": {"X-Api-Key": "key"}}'])
async def test_a_feed_with_credentials_of_its_own_is_not_moved_to_another_origin(
    database: Database, database_url: str, feed_id: int, config: str
) -> None:
    with connect(database_url) as connection:
        connection.execute("UPDATE feeds SET source_config = %s", [config])
    await see_move(database, feed_id, "http://stranger.example/feed")
    (found,) = await rows(database, "SELECT url, moved_to FROM feeds")
    assert found["url"] != found["moved_to"] == "http://stranger.example/feed"


@pytest.mark.parametrize("other_is_polled", [True, False])
async def test_a_feed_that_moved_to_where_another_is_is_a_duplicate_while_that_one_is_polled(
    database: Database, database_url: str, feed_id: int, other_is_polled: bool
) -> None:
    with connect(database_url) as connection:
        other, _ = add_feed(connection, NewFeed("http://taken.example/feed"))
        connection.execute("UPDATE feeds SET enabled = %s WHERE id = %s", [other_is_polled, other])
    await see_move(database, feed_id, "http://taken.example/feed")
    mine, theirs = await rows(database, "SELECT url, enabled, disabled_reason FROM feeds ORDER BY id")
    assert mine["url"] != theirs["url"]
    assert mine["enabled"] is not other_is_polled
    assert mine["disabled_reason"] == (
        f"duplicate: moved for good to the URL of feed {other}" if other_is_polled else None
    )


async def test_a_host_is_left_alone_for_a_day_at_most(database: Database, feed_id: int) -> None:
    busy: dict[str, Any] = {"feed_id": feed_id, "outcome": Outcome.THROTTLED, "status": 429}
    hour = timedelta(hours=1)
    await write(database, make_result(**busy, not_before=datetime.now(UTC) + timedelta(days=400)))
    (row,) = await rows(database, "SELECT politeness_group, until - now() AS left FROM throttled_groups")
    assert (row["politeness_group"], row["left"] <= timedelta(days=1)) == ("news.example", True)
    await rows(database, "UPDATE throttled_groups SET until = now() - '1 s'::interval RETURNING 1")
    elsewhere = make_result(**busy, final_url="http://other.example/", not_before=datetime.now(UTC) + hour)
    await write(database, elsewhere)
    (row,) = await rows(database, "SELECT politeness_group, until - now() AS left FROM throttled_groups")
    assert (row["politeness_group"], row["left"] <= hour) == ("other.example", True)
    assert row["left"] <= timedelta(seconds=30)  # a redirect from elsewhere ran into it


async def test_claims_are_counted_by_how_they_end(database: Database, feed_id: int) -> None:
    async def ends(**result: Any) -> Counter[str]:
        result = {"claim_id": await claim(database, feed_id), **result}
        return (await write(database, make_result(feed_id=feed_id, **result))).claims

    assert await ends() == {"completed": 1}
    assert await ends(outcome=Outcome.HARD_ERROR) == {"failed": 1}
    assert await ends(outcome=Outcome.STALE) == {"dropped": 1}
    assert await ends(outcome=Outcome.SOFT_ERROR, final=False, claim_until=NOW) == {}
    assert await ends(claim_id=uuid4()) == {"late": 1}


async def test_health_tells_how_a_feed_has_fared_and_whether_it_is_stale(database: Database, feed_id: int) -> None:
    for minutes, outcome in ((40, Outcome.FETCHED), (30, Outcome.HARD_ERROR), (20, Outcome.NOT_MODIFIED)):
        claim_id = await claim(database, feed_id)
        then = datetime.now(UTC) - timedelta(minutes=minutes)
        times = {"queued_at": then, "started_at": then}
        entries = (make_entry(),) if outcome is Outcome.FETCHED else ()
        result = make_result(feed_id=feed_id, claim_id=claim_id, outcome=outcome, entries=entries, **times)
        await write(database, result, later=then - NOW)
    (health,) = await rows(database, "SELECT * FROM feed_health")
    assert (health["attempts"], round(health["success_rate"], 2), health["mean_seconds"]) == (3, 0.67, 0.25)
    assert health["seconds_since_success"] == pytest.approx(1200, abs=60)
    assert health["seconds_since_news"] == pytest.approx(2400, abs=60)
    assert (health["failures"], health["stale"]) == (0, False)
    async with database.transaction() as connection:
        await connection.execute("UPDATE feeds SET last_new_at = now() - interval '4 days', news_gap_seconds = 90000")
    (health,) = await rows(database, "SELECT * FROM feed_health")
    assert health["stale"] is True


async def test_writers_side_by_side_with_the_same_articles_neither_deadlock_nor_double(
    database: Database, database_url: str
) -> None:
    with connect(database_url) as connection:
        feeds = [add_feed(connection, NewFeed(f"http://f{n}.example/"))[0] for n in range(6)]
    shuffle = random.Random(7)

    async def writer(number: int) -> int:
        new = 0
        for round_ in range(15):
            batch = []
            for feed in shuffle.sample(feeds, 3):
                picked = shuffle.sample(range(150), 40)
                entries = [make_entry(n, content_hash=f"{round_ * 10 + number:064x}") for n in picked]
                batch.append(make_result(feed_id=feed, entries=tuple(entries)))
            new += (await write(database, *batch, later=timedelta(days=2 * round_))).new
        return new

    totals = await asyncio.gather(*map(writer, range(4)))
    count = len(await rows(database, "SELECT md5 FROM pending_articles"))
    assert sum(totals) == count <= 150


async def test_a_failing_attempt_is_logged_with_its_reason(database: Database, feed_id: int) -> None:
    await write(database, make_result(feed_id=feed_id, outcome=Outcome.HARD_ERROR, status=404, error="not there"))
    (logged,) = await rows(database, "SELECT ok, outcome, status, error FROM feed_fetch_log")
    assert tuple(logged.values()) == (False, "hard_error", 404, "not there")


async def test_a_slow_statement_is_database_busy_and_the_next_transaction_works(
    database_url: str,
) -> None:
    async with Database(database_url, size=1, statement_seconds=0.1).open() as database:
        with pytest.raises(DatabaseUnavailable, match="statement timeout"):
            async with database.transaction() as connection:
                await connection.execute("SELECT pg_sleep(5)")
        async with database.transaction() as connection:
            cursor = await connection.execute("SELECT 1 AS one")
            assert await cursor.fetchone() == {"one": 1}


async def test_without_prepared_statements_none_is_left_on_the_server(database_url: str, feed_id: int) -> None:
    for prepared, number in ((False, 0), (True, 1)):
        async with Database(database_url, size=1, prepared=prepared).open() as database:
            for n in range(8):
                await write(database, make_result(feed_id=feed_id, entries=(make_entry(n),)))
            found = await rows(database, "SELECT least(count(*), 1) AS n FROM pg_prepared_statements")
            assert found == [{"n": number}]


async def test_a_database_that_is_away_is_unavailable_and_shows_no_password() -> None:
    nowhere = Database("postgresql://user:secret@127.0.0.1:1/x", size=1)
    async with nowhere.open():
        with pytest.raises(DatabaseUnavailable) as error:
            await rows(nowhere, "SELECT 1")
    assert "secret" not in str(error.value)


async def write_with(database: Database, duplicates: Duplicates, *batch: FeedFetched) -> Written:
    return await write(database, *batch, policy=Policy(duplicates=duplicates))


@pytest.mark.parametrize(
    ("mode", "offered", "flagged"), [("flag", 3, [None, "first", "first"]), ("drop", 1, [None]), ("off", 3, [None] * 3)]
)
async def test_an_article_under_another_address_is_a_duplicate(
    database: Database, database_url: str, feed_id: int, mode: Duplicates, offered: int, flagged: list[str | None]
) -> None:
    with connect(database_url) as connection:
        other, _ = add_feed(connection, NewFeed("http://other.example/feed"))
    first = make_entry(1, url="http://news.example/a-parrot")
    tracked = make_entry(2, url="https://www.news.example/a-parrot?utm_source=rss")
    amp = make_entry(3, url="https://news.example/a-parrot/amp/")
    assert (await write_with(database, mode, make_result(feed_id=feed_id, entries=(first,)))).duplicates == 0
    written = await write_with(
        database, mode, make_result(feed_id=other, entries=(tracked,)), make_result(feed_id=other, entries=(amp,))
    )
    assert (written.new, written.duplicates) == (2, 0 if mode == "off" else 2)
    found = await rows(database, "SELECT md5, duplicate_of FROM pending_articles ORDER BY title")
    names = {first.md5: "first", None: None}
    assert len(found) == offered
    assert [names[row["duplicate_of"]] for row in found] == flagged
    again = await write_with(database, mode, make_result(feed_id=other, entries=(tracked, amp)))
    assert (again.new, again.repeated) == (0, 2)


async def test_of_two_addresses_in_one_batch_the_first_is_the_article(database: Database, feed_id: int) -> None:
    entries = [make_entry(n, url=f"http://news.example/x?utm_source={n}") for n in range(6)]
    batch = [make_result(feed_id=feed_id, entries=(entry,)) for entry in entries]
    assert (await write_with(database, "flag", *batch)).duplicates == 5
    found = await rows(database, "SELECT DISTINCT duplicate_of FROM pending_articles WHERE duplicate_of IS NOT NULL")
    assert found == [{"duplicate_of": entries[0].md5}]


async def test_entries_that_share_their_address_within_a_feed_are_no_duplicates(
    database: Database, feed_id: int
) -> None:
    episodes = tuple(make_entry(n, url="http://cast.example/show") for n in range(3))
    assert (await write_with(database, "flag", make_result(feed_id=feed_id, entries=episodes))).duplicates == 0


@pytest.mark.parametrize("requeue", [True, False])
async def test_a_change_to_an_article_that_was_drained_is_pending_again_if_wanted(
    database: Database, feed_id: int, requeue: bool
) -> None:
    async def write_text(text: str) -> Written:
        result = make_result(feed_id=feed_id, entries=(make_entry(1, body=text),))
        return await write(database, result, policy=Policy(requeue_updates=requeue))

    await write_text("one")
    await drain(database)
    assert (await write_text("two")).updated == 1
    found = await rows(database, "SELECT body, revision FROM pending_articles")
    assert found == ([{"body": "two", "revision": 1}] if requeue else [])
    await write_text("three")
    found = await rows(database, "SELECT body, revision FROM pending_articles")
    assert found == ([{"body": "three", "revision": 2}] if requeue else [])
    await drain(database)
    await write_text("three")
    assert await rows(database, "SELECT * FROM pending_articles") == []
    for number in range(2 * MAX_UPDATES):
        await write_text(f"at {number} o'clock")
        await drain(database)
    assert await rows(database, "SELECT updates FROM feed_items") == [{"updates": MAX_UPDATES}]


async def test_a_dead_article_with_a_new_text_gets_another_chance_if_wanted(database: Database, feed_id: int) -> None:
    await write(database, make_result(feed_id=feed_id, entries=(make_entry(1),)))
    async with database.transaction() as connection:
        await connection.execute("SELECT bury_articles(ARRAY(SELECT md5 FROM pending_articles), 'no')")
    result = make_result(feed_id=feed_id, entries=(make_entry(1, body="another"),))
    await write(database, result, policy=Policy(requeue_updates=True))
    assert await rows(database, "SELECT body FROM pending_articles") == [{"body": "another"}]
    assert await rows(database, "SELECT * FROM dead_articles") == []


async def test_a_result_of_thousands_is_written_in_one_transaction_and_several_statements(
    database: Database, feed_id: int
) -> None:
    entries = tuple(make_entry(number) for number in range(1_201))
    async with database.transaction() as connection:
        result = make_result(feed_id=feed_id, entries=entries)
        written = await write_batch(connection, [result], now=NOW, rules=Rules(), proxy_hosts=frozenset())
        assert written == Written(1_201, 0, 0)
        await connection.rollback()
    assert await rows(database, "SELECT * FROM feed_items") == []
    assert (await write(database, make_result(feed_id=feed_id, entries=entries))).new == 1_201
    assert len(await rows(database, "SELECT md5 FROM pending_articles")) == 1_201


@pytest.mark.parametrize("code", ["53100", "53200", "53300", "25006", "57P01", "40001", "40P01", "55P03", "57014"])
async def test_a_server_that_cannot_serve_now_is_no_fault_of_the_data(database: Database, code: str) -> None:
    """Disk full, out of memory, too many connections, read-only, shutdown, conflicts, timeouts."""
    with pytest.raises(DatabaseUnavailable, match="it is so"):
        async with database.transaction() as connection:
            await connection.execute(
                f"DO $$ BEGIN RAISE EXCEPTION 'it is so' USING ERRCODE = '{code}'; END $$".encode()
            )
