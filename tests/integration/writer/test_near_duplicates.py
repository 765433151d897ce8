"""Near-duplicates: found in the transaction, or settled after it. Each story has a feed and a host of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256

import pytest

from services.admin.registry import NewFeed, add_feed, connect
from services.enricher.similarity.sketching import sketch
from services.writer.duplicates.settling import Settling
from services.writer.duplicates.sketches import FIND
from services.writer.pruning import prune_sketches
from services.writer.schedule.feed_state import Rules
from services.writer.store import Duplicates, Policy, Written, write_batch
from shared.database.postgres import Database
from shared.wire.enrichment import Enrichment
from shared.wire.results import Entry
from tests.factories import NOW, make_entry, make_result
from tests.integration.waiting import until_others_ended
from tests.integration.writer.writing import drain, rows, write

STORY = (
    "The harbour council has voted to close the old ferry terminal after engineers found that salt water had eaten"
    " into its pillars. Passengers will board from a floating pier until a new building opens beside the fish market."
    " Shop owners said they had been told nothing, and feared that visitors would pass them by during the summer."
    " The council promised a covered walkway, and said that no one would lose a lease while the work goes on."
)
OTHER = (
    "Astronomers have photographed a faint ring of dust around a young star, and think that a planet is being born in"
    " the gap between its two bright arms. The team watched the star for several winters from a plateau in the desert,"
    " where the air is dry enough to see the cold light of the grains."
)


@pytest.fixture
def feeds(database_url: str) -> list[int]:
    with connect(database_url) as connection:
        return [add_feed(connection, NewFeed(f"http://agency-{n}.example/feed"))[0] for n in range(5)]


def sketched(number: int, body: str = STORY, title: str = "", **changes: object) -> Entry:
    title = title or f"{'abcdefgh'[number]} headline"
    url = f"http://agency-{number}.example/{number}"
    found = Enrichment(sketch=sketch(title, body))
    return make_entry(number, url=url, title=title, body=body, enrichment=found, **changes)


async def bring(
    database: Database, feed_id: int, *entries: Entry, mode: Duplicates = "flag", days: float = 0.0
) -> Written:
    policy = Policy(duplicates=mode)
    result = make_result(feed_id=feed_id, entries=entries)
    return await write(database, result, policy=policy, later=timedelta(days=days))


WORDS = str.maketrans("0123456789abcdef", "   ghijklmnopqrs")
"""Makes words of hexadecimal digits."""

FOUND = "SELECT title, duplicate_of, duplicate_kind FROM pending_articles ORDER BY title"


@pytest.mark.parametrize(("mode", "offered", "flagged"), [("flag", 2, True), ("drop", 1, False), ("off", 2, False)])
async def test_the_text_of_another_feed_cut_elsewhere_is_a_duplicate(
    database: Database, feeds: list[int], mode: Duplicates, offered: int, flagged: bool
) -> None:
    first = sketched(0)
    await bring(database, feeds[0], first, mode=mode)
    second = sketched(1, f"(Agency) {STORY[:200]} Read more")
    written = await bring(database, feeds[1], second, sketched(2, OTHER), mode=mode)
    assert written.duplicates == (mode != "off")
    found = await rows(database, FOUND)
    assert len(found) == offered + 1
    expected = (first.md5, "text") if flagged else (None, None)
    assert mode == "drop" or (found[1]["duplicate_of"], found[1]["duplicate_kind"]) == expected
    assert (found[0]["duplicate_of"], found[-1]["duplicate_of"]) == (None, None)
    ledger = await rows(database, "SELECT * FROM feed_items WHERE duplicate_of IS NOT NULL")
    assert [row["duplicate_kind"] for row in ledger] == ([] if mode == "off" else ["text"])
    assert all(0.5 <= row["duplicate_score"] <= 1 for row in ledger)


async def test_one_long_title_over_missing_texts_is_a_duplicate_of_kind_title(
    database: Database, feeds: list[int]
) -> None:
    title = "Harbour council votes to close the old ferry terminal"
    await bring(database, feeds[0], sketched(0, "", title))
    assert (await bring(database, feeds[1], sketched(1, "", title))).duplicates == 1
    assert {row["duplicate_kind"] for row in await rows(database, FOUND)} == {None, "title"}


async def test_a_feed_repeats_itself_without_duplicates(database: Database, feeds: list[int]) -> None:
    await bring(database, feeds[0], sketched(0))
    assert (await bring(database, feeds[0], sketched(0), sketched(1), sketched(2))).duplicates == 0


async def test_within_a_batch_the_first_is_the_original_and_no_chain_arises(
    database: Database, feeds: list[int]
) -> None:
    batch = [make_result(feed_id=feed, entries=(sketched(n),)) for n, feed in enumerate(feeds[:3])]
    amp = sketched(3, OTHER).model_copy(update={"url": "http://m.agency-1.example/1"})
    batch.append(make_result(feed_id=feeds[3], entries=(amp,)))
    assert (await write(database, *batch)).duplicates == 3
    found = await rows(database, FOUND)
    assert [row["duplicate_of"] for row in found] == [None, *[sketched(0).md5] * 3]
    assert [row["duplicate_kind"] for row in found] == [None, "text", "text", "address"]


async def test_after_the_window_a_story_is_new_and_its_sketch_is_pruned(database: Database, feeds: list[int]) -> None:
    await bring(database, feeds[0], sketched(0))
    assert (await bring(database, feeds[1], sketched(1), days=6)).duplicates == 1
    assert (await bring(database, feeds[2], sketched(2), days=8)).duplicates == 0
    async with database.transaction() as connection:
        await connection.execute("UPDATE article_sketches SET first_seen_at = first_seen_at - %s + now()", [NOW])
        await connection.execute("UPDATE article_sketches SET first_seen_at = first_seen_at - interval '9 days'")
        assert await prune_sketches(connection, 7.0) == 1
        assert await prune_sketches(connection, 7.0) == 0
    assert len(await rows(database, "SELECT FROM article_sketches")) == 1


async def test_of_many_that_share_as_many_keys_those_of_the_same_length_are_compared(
    database: Database, feeds: list[int]
) -> None:
    await bring(database, feeds[0], sketched(0))
    async with database.transaction() as connection:
        columns = "host, version, keys, numbers, names, title, words, told, is_telling, first_seen_at"
        await connection.execute(
            f"INSERT INTO article_sketches (md5, feed_id, count, head, rest, {columns})"
            f" SELECT '00' || n, %s, count + 9, '', '', {columns} FROM article_sketches, generate_series(0, 9) AS n",
            [feeds[2]],
        )
    assert (await bring(database, feeds[1], sketched(1))).duplicates == 1


async def test_entries_without_a_sketch_cost_no_row(database: Database, feeds: list[int]) -> None:
    await bring(database, feeds[0], make_entry(1), make_entry(2, enrichment=Enrichment()))
    assert await rows(database, "SELECT FROM article_sketches UNION ALL SELECT FROM unsettled_articles") == []


async def test_a_hash_of_a_template_is_no_key_of_ever_more_articles(database: Database, feeds: list[int]) -> None:
    notice = "Subscribe to our weekly letter, and never miss what the people of this town are talking about."
    for n in range(40):
        own = "".join(sha256(f"{n} {m}".encode()).hexdigest().translate(WORDS) for m in range(10))
        entry = sketched(0, f"{notice} {own}").model_copy(update={"url": f"http://a.example/{n}", "md5": f"{n:032x}"})
        await bring(database, feeds[n % 5], entry)
    (row,) = await rows(
        database,
        "SELECT count(*) AS most FROM article_sketches, unnest(keys) AS key GROUP BY key ORDER BY 1 DESC LIMIT 1",
    )
    assert row["most"] == 8


async def test_no_look_up_walks_the_index_of_ages(database: Database) -> None:
    """With five million rows it took minutes: a prepared plan knows neither the keys nor the date."""
    async with database.transaction() as connection:
        await connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        await connection.execute("SET LOCAL enable_seqscan = off")
        await connection.execute("SET LOCAL enable_bitmapscan = off")
        parameters = {"places": [0], "wanted": ["{1}"], "since": NOW}
        cursor = await connection.execute(b"EXPLAIN " + FIND.encode(), parameters)
        assert "article_sketches_age" not in str([tuple(row.values()) for row in await cursor.fetchall()])


async def freshen(database: Database) -> None:
    """Rows are as old as their writer says, and the tests' clock stands still."""
    async with database.transaction() as connection:
        await connection.execute("UPDATE unsettled_articles SET added_at = now()")


async def settle(database: Database, mode: Duplicates = "flag") -> None:
    await freshen(database)
    await Settling(database, mode).round()


async def forget(database: Database) -> None:
    """A row is forgotten in a later round than it was compared in, when all others' transactions have ended."""
    await until_others_ended(database)
    await settle(database)


async def write_side_by_side(
    database: Database, feeds: list[int], mode: Duplicates = "flag", entries: Sequence[Entry] = ()
) -> None:
    """Two writers bring one story, and neither sees the other's. The one that commits last has the older clock."""
    policy = Policy(duplicates=mode)
    early, late = asyncio.Event(), asyncio.Event()

    async def one(number: int, ready: asyncio.Event, other: asyncio.Event, later: timedelta) -> None:
        async with database.transaction() as connection:
            entry = entries[number] if entries else sketched(number)
            batch = [make_result(feed_id=feeds[number], entries=(entry,))]
            written = await write_batch(
                connection, batch, now=NOW + later, rules=Rules(), proxy_hosts=frozenset(), policy=policy
            )
            assert written.duplicates == 0
            ready.set()
            await other.wait()

    await asyncio.gather(one(0, early, late, timedelta(seconds=5)), one(1, late, early, timedelta()))


@pytest.mark.parametrize("mode", ["flag", "drop"])
async def test_of_two_writers_at_the_same_moment_one_has_the_first_in_the_end(
    database: Database, feeds: list[int], mode: Duplicates
) -> None:
    """Also if both are killed after their commits: the rows are there for the next writer that settles."""
    await write_side_by_side(database, feeds, mode)
    assert len(await rows(database, "SELECT FROM pending_articles WHERE duplicate_of IS NULL")) == 2
    await settle(database, mode)
    ledger = await rows(database, "SELECT md5, duplicate_of, duplicate_kind FROM feed_items ORDER BY first_seen_at")
    assert [row["duplicate_of"] for row in ledger] == [None, sketched(1).md5]
    assert ledger[1]["duplicate_kind"] == "text"
    found = await rows(database, "SELECT md5, duplicate_of FROM pending_articles ORDER BY duplicate_of NULLS FIRST")
    assert [row["duplicate_of"] for row in found] == [None, sketched(1).md5][: 1 if mode == "drop" else 2]
    assert len(await rows(database, "SELECT FROM article_sketches")) == 1
    await forget(database)
    assert await rows(database, "SELECT FROM unsettled_articles") == []


@pytest.mark.parametrize("third", ["text", "address"])
async def test_an_address_that_two_writers_bring_at_the_same_moment_has_one_first_in_the_end(
    database: Database, feeds: list[int], third: str
) -> None:
    """A third article names the first one, too."""
    one = sketched(0, OTHER).model_copy(update={"url": "http://agency-9.example/1"})
    other = sketched(1).model_copy(update={"url": "http://m.agency-9.example/1"})
    await write_side_by_side(database, feeds, entries=(one, other))
    await settle(database)
    found = await rows(database, "SELECT md5, duplicate_of, duplicate_kind, duplicate_score FROM feed_items")
    by_name = {row.pop("md5"): row for row in found}
    assert by_name[other.md5]["duplicate_of"] is None, "its clock was earlier"
    assert by_name[one.md5] == {"duplicate_of": other.md5, "duplicate_kind": "address", "duplicate_score": None}
    last = sketched(2) if third == "text" else sketched(2, "x").model_copy(update={"url": "http://agency-9.example/1?"})
    await bring(database, feeds[2], last)
    (row,) = await rows(database, "SELECT duplicate_of, duplicate_kind FROM feed_items WHERE md5 = '" + last.md5 + "'")
    assert (row["duplicate_of"], row["duplicate_kind"]) == (other.md5, third)


async def test_a_duplicate_that_a_consumer_holds_is_not_taken_from_it(database: Database, feeds: list[int]) -> None:
    await write_side_by_side(database, feeds, "drop")
    assert len(await rows(database, "SELECT md5 FROM claim_pending_articles(5)")) == 2
    await settle(database, "drop")
    assert len(await rows(database, "SELECT FROM pending_articles WHERE duplicate_of IS NOT NULL")) == 1
    assert len(await rows(database, "SELECT FROM pending_articles")) == 2


async def test_who_found_the_later_one_meanwhile_names_the_first(database: Database, feeds: list[int]) -> None:
    await write_side_by_side(database, feeds)
    async with database.transaction() as connection:  # so that only the later one is found
        await connection.execute("DELETE FROM article_sketches WHERE md5 = %s", [sketched(1).md5])
        cursor = await connection.execute("SELECT * FROM unsettled_articles WHERE md5 = %s", [sketched(1).md5])
        assert await cursor.fetchone()
    assert (await bring(database, feeds[2], sketched(2))).duplicates == 1
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO article_sketches SELECT %s, %s, 7, version, count, keys, head, rest, numbers, names, title,"
            " words, told, is_telling, first_seen_at - interval '1 minute' FROM article_sketches",
            [sketched(1).md5, feeds[1]],
        )
    await settle(database)
    found = await rows(database, "SELECT DISTINCT duplicate_of FROM feed_items WHERE duplicate_of IS NOT NULL")
    assert found == [{"duplicate_of": sketched(1).md5}]


async def test_nothing_is_forgotten_while_a_transaction_that_may_not_have_seen_it_goes_on(
    database: Database, feeds: list[int]
) -> None:
    async with database.transaction() as slow:
        await slow.execute("SELECT pg_current_xact_id()")
        await bring(database, feeds[0], sketched(0))
        for _ in range(3):
            await settle(database)
        assert len(await rows(database, "SELECT FROM unsettled_articles")) == 1
    await forget(database)
    assert await rows(database, "SELECT FROM unsettled_articles") == []


@pytest.mark.parametrize("mode", ["flag", "off"])
async def test_nothing_is_kept_forever_even_if_nobody_compares(
    database: Database, feeds: list[int], mode: Duplicates
) -> None:
    await bring(database, feeds[0], sketched(0))
    async with database.transaction() as connection:
        await connection.execute("UPDATE unsettled_articles SET added_at = now() - interval '61 minutes'")
    await Settling(database, mode, most_fresh=0).round()
    assert await rows(database, "SELECT FROM unsettled_articles") == []


async def test_a_round_compares_so_many_and_the_next_ones_the_others(database: Database, feeds: list[int]) -> None:
    await write_side_by_side(database, feeds)
    for left in (2, 2, 0):  # nothing goes while one waits
        await freshen(database)
        await until_others_ended(database)
        await Settling(database, "flag", most_fresh=1).round()
        assert len(await rows(database, "SELECT FROM unsettled_articles")) == left
    assert len(await rows(database, "SELECT FROM pending_articles WHERE duplicate_of IS NOT NULL")) == 1


async def test_only_one_writer_settles_at_a_time(database: Database, feeds: list[int]) -> None:
    await write_side_by_side(database, feeds)
    await freshen(database)
    await asyncio.gather(*(Settling(database, "flag").round() for _ in range(6)))
    assert len(await rows(database, "SELECT FROM pending_articles WHERE duplicate_of IS NOT NULL")) == 1


async def test_a_changed_text_that_is_pending_again_is_still_a_duplicate(database: Database, feeds: list[int]) -> None:
    await bring(database, feeds[0], sketched(0))
    await bring(database, feeds[1], sketched(1))
    await drain(database)
    changed = sketched(1, body=OTHER, content_hash=f"{7:064x}")
    result = make_result(feed_id=feeds[1], entries=(changed,))
    await write(database, result, policy=Policy(requeue_updates=True))
    (row,) = await rows(database, "SELECT duplicate_of, duplicate_kind, duplicate_score FROM pending_articles")
    assert (row["duplicate_of"], row["duplicate_kind"]) == (sketched(0).md5, "text")
    assert row["duplicate_score"] == pytest.approx(1.0)
