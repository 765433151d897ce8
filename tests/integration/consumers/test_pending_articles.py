"""The SQL functions that consumers drain `pending_articles` with, on a real PostgreSQL."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import dict_row

from local.servers import Servers
from shared.database.migrate import migrate, read_migrations

Connection = psycopg.Connection[dict[str, Any]]
Row = dict[str, Any]

FILL = """
INSERT INTO pending_articles (md5, feed_id, entry_id, url, title, body, content_quality, content_hash, created_at)
SELECT md5(n::text), 1, 'entry ' || n, 'http://news.example/' || n, 'Article ' || n, 'text', 'full', 'old text',
    now() - interval '1 day' + n * interval '1 millisecond'
FROM generate_series(%s::int, %s::int) AS n
"""


def connect(database_url: str) -> Connection:
    return psycopg.connect(database_url, autocommit=True, row_factory=dict_row)


@pytest.fixture
def db(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        connection.execute(
            "INSERT INTO feeds (url, politeness_group) VALUES ('http://news.example/feed', 'news.example')"
        )
        yield connection


def fill(db: Connection, count: int, start: int = 1) -> list[str]:
    """Add articles 1, 2, …; return their keys in that order, which is that of created_at."""
    db.execute(FILL, [start, start + count - 1])
    return [row["md5"] for row in db.execute("SELECT md5 FROM pending_articles ORDER BY created_at")]


def claim(db: Connection, most: int = 100, lease: str = "5 minutes", max_expiries: int = 5) -> list[Row]:
    return db.execute("SELECT * FROM claim_pending_articles(%s, %s, %s)", [most, lease, max_expiries]).fetchall()


def keys(rows: Sequence[Row]) -> list[str]:
    return [row["md5"] for row in rows]


def ack(db: Connection, md5s: Sequence[str], hashes: Sequence[str | None] | None = None) -> int:
    row = db.execute("SELECT ack_articles(%s::text[], %s::text[]) AS n", [list(md5s), hashes]).fetchone()
    assert row is not None
    return int(row["n"])


def fail(db: Connection, md5s: Sequence[str], error: str = "no", lease: UUID | None = None, **more: Any) -> list[Row]:
    named = {"lease_ids": [lease] if lease else None, "max_failures": 5, "retry_after": None, **more}
    return db.execute(
        "SELECT * FROM fail_articles(%(md5s)s::text[], %(error)s, %(lease_ids)s::uuid[], %(max_failures)s,"
        " %(retry_after)s::interval)",
        {"md5s": list(md5s), "error": error, **named},
    ).fetchall()


def release(db: Connection, md5s: Sequence[str], lease: UUID | None = None) -> int:
    leases = [lease] if lease else None
    row = db.execute("SELECT release_articles(%s::text[], %s::uuid[]) AS n", [list(md5s), leases]).fetchone()
    assert row is not None
    return int(row["n"])


def renew(db: Connection, md5s: Sequence[str], lease: str, held: UUID | None = None) -> list[str]:
    found = db.execute(
        "SELECT md5 FROM renew_articles(%s::text[], %s::interval, %s::uuid[]) AS md5",
        [list(md5s), lease, [held] if held else None],
    )
    return [row["md5"] for row in found]


def let_time_pass(db: Connection) -> None:
    """End every lease and every pause."""
    db.execute("UPDATE pending_articles SET claimed_until = now() - interval '1 ms' WHERE claimed_until > now()")


def change_text(db: Connection, text: str = "new text") -> None:
    """What the writer does to a pending article."""
    db.execute(
        "UPDATE pending_articles SET body = %(t)s, content_hash = %(t)s, revision = revision + 1, retry_count = 0,"
        " expiries = 0",
        {"t": text},
    )


def pending(db: Connection) -> list[str]:
    return keys(db.execute("SELECT md5 FROM pending_articles ORDER BY created_at, md5").fetchall())


def dead(db: Connection) -> list[Row]:
    return db.execute("SELECT * FROM dead_articles ORDER BY md5").fetchall()


def test_articles_are_given_out_the_oldest_first_with_all_they_have(db: Connection) -> None:
    md5s = fill(db, 7)
    first, rest = claim(db, 3), claim(db)
    assert (keys(first), keys(rest), claim(db)) == (md5s[:3], md5s[3:], [])
    row = first[0]
    assert (row["title"], row["body"], row["revision"], row["retry_count"]) == ("Article 1", "text", 0, 0)
    assert {r["lease_id"] for r in first} == {row["lease_id"]}
    assert {r["lease_id"] for r in rest}.isdisjoint({row["lease_id"]})
    assert pending(db) == md5s


def test_one_moment_of_arrival_is_ordered_by_md5(db: Connection) -> None:
    fill(db, 9)
    db.execute("UPDATE pending_articles SET created_at = '2026-11-21'")
    assert keys(claim(db, 5)) == sorted(pending(db))[:5]


@pytest.mark.parametrize("arguments", ["-1", "NULL", "1, '0'", "1, '-1 s'", "1, NULL", "1, '1 s', NULL"])
def test_a_claim_of_nonsense_is_refused(db: Connection, arguments: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        db.execute(f"SELECT claim_pending_articles({arguments})".encode())
    assert claim(db, 0) == []


def test_a_lease_that_ran_out_brings_the_article_back_before_all_others(db: Connection) -> None:
    md5s = fill(db, 4)
    (old,) = claim(db, 1, "20 ms")
    time.sleep(0.03)
    again, *others = claim(db)
    assert (again["md5"], again["expiries"], keys(others)) == (md5s[0], 1, md5s[1:])
    assert again["lease_id"] != old["lease_id"]


def test_a_renewed_lease_goes_on_and_a_lost_one_is_reported(db: Connection) -> None:
    md5s = fill(db, 3)
    mine = claim(db, 2, "20 ms")[0]["lease_id"]
    time.sleep(0.03)
    assert sorted(renew(db, md5s, "1 hour", mine)) == sorted(md5s[:2])  # nobody had taken them
    assert keys(claim(db, 1)) == md5s[2:]
    let_time_pass(db)
    claim(db, 1)
    assert renew(db, md5s, "1 hour", mine) == [md5s[1]]
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        renew(db, md5s, "0")


def test_an_ack_removes_and_may_be_repeated(db: Connection) -> None:
    md5s = fill(db, 5)
    claim(db, 3)
    assert ack(db, md5s[:3]) == 3
    assert ack(db, md5s[:3]) == 0
    assert ack(db, []) == 0
    assert ack(db, [md5s[3], "unknown"]) == 1  # never claimed: who says it is done is believed
    assert pending(db) == md5s[4:]


def test_any_consumer_may_acknowledge(db: Connection) -> None:
    md5s = fill(db, 1)
    (slow,) = claim(db)
    let_time_pass(db)
    claim(db)
    assert ack(db, md5s, [slow["content_hash"]]) == 1
    assert pending(db) == []


@pytest.mark.parametrize("says_which_text", [True, False])
def test_a_text_that_changed_under_a_lease_stays_and_is_given_out_again(db: Connection, says_which_text: bool) -> None:
    md5s = fill(db, 2)
    old = claim(db, 2)
    hashes = [row["content_hash"] for row in old] if says_which_text else None
    db.execute("UPDATE pending_articles SET content_hash = 'new', revision = 1 WHERE md5 = %s", [md5s[0]])
    assert claim(db) == []  # two consumers with two texts of one article would race
    assert ack(db, md5s, hashes) == 1
    assert ack(db, md5s, hashes) == 0  # a second try of the call is no ack of the new text
    (again,) = claim(db)
    assert (again["md5"], again["revision"], again["expiries"], again["retry_count"]) == (md5s[0], 1, 0, 0)
    assert ack(db, md5s, [again["content_hash"], None] if says_which_text else None) == 1
    assert pending(db) == []


def test_the_ack_of_an_old_text_leaves_the_lease_on_the_new_one(db: Connection) -> None:
    md5s = fill(db, 1)
    (slow,) = claim(db)
    let_time_pass(db)
    change_text(db)
    (current,) = claim(db)
    assert ack(db, md5s, [slow["content_hash"]]) == 0
    assert claim(db) == []
    assert renew(db, md5s, "1 hour", current["lease_id"]) == md5s
    assert ack(db, md5s, [current["content_hash"]]) == 1


def test_a_failure_is_counted_once_and_comes_back_after_a_growing_pause(db: Connection) -> None:
    md5s = fill(db, 1)
    minutes = []
    for count in (1, 2, 3, 4):
        (row,) = claim(db)
        (failed,) = fail(db, md5s, "ValueError: no", row["lease_id"])
        assert (failed["md5"], failed["retry_count"]) == (md5s[0], count)
        assert fail(db, md5s, "again", row["lease_id"]) == []  # a second try of the call
        assert fail(db, md5s, "again") == []
        assert claim(db) == []
        (seen,) = db.execute("SELECT *, claimed_until - now() AS pause FROM pending_articles").fetchall()
        minutes.append(round(seen["pause"].total_seconds() / 60))
        assert (seen["last_error"], seen["lease_id"], seen["expiries"]) == ("ValueError: no", None, 0)
        let_time_pass(db)
    assert minutes == [1, 5, 25, 125]


def test_the_last_failure_moves_the_whole_article_to_the_dead_with_its_reason(db: Connection) -> None:
    fill(db, 2)
    (row, _) = claim(db)
    (failed,) = fail(db, [row["md5"]], "é" * 5000, row["lease_id"], max_failures=1)
    assert (failed["retry_count"], failed["retry_at"]) == (1, None)
    (buried,) = dead(db)
    shared = buried.keys() & row.keys() - {"retry_count"}
    assert {name: buried[name] for name in shared} == {name: row[name] for name in shared}
    assert (buried["error"], buried["retry_count"]) == ("é" * 1000, 1)
    assert row["md5"] not in pending(db)
    db.execute("DELETE FROM feeds")
    assert len(dead(db)) == 1


def test_the_dead_keep_every_column_of_the_pending_that_is_not_of_a_lease(db: Connection) -> None:
    def columns(table: str) -> set[str]:
        found = db.execute("SELECT column_name FROM information_schema.columns WHERE table_name = %s", [table])
        return {row["column_name"] for row in found}

    lease = {"claimed_until", "lease_id", "claimed_hash", "last_error"}
    assert columns("dead_articles") == columns("pending_articles") - lease | {"error", "failed_at"}


def test_a_consumer_chooses_the_pause_and_who_lost_the_lease_burns_no_retry(db: Connection) -> None:
    md5s = fill(db, 2)
    lost = claim(db, 1)[0]["lease_id"]
    let_time_pass(db)
    holder = claim(db, 1)[0]["lease_id"]
    assert fail(db, md5s, "late", lost) == []
    assert release(db, md5s, lost) == 0
    (failed,) = fail(db, md5s, "429", holder, retry_after="1 day")
    (seen,) = db.execute(
        "SELECT claimed_until > now() + interval '23 hours' AS later FROM pending_articles WHERE retry_count = 1"
    )
    assert (failed["md5"], seen["later"]) == (md5s[0], True)


def test_the_plain_calls_of_the_interface_work(db: Connection) -> None:
    md5s = fill(db, 3)
    db.execute("SELECT * FROM claim_pending_articles(2)")
    db.execute("SELECT fail_articles(%s, 'it broke')", [md5s[:1]])
    db.execute("SELECT fail_articles(%s, NULL)", [md5s[2:]])  # that was never claimed
    db.execute("SELECT ack_articles(%s)", [md5s[1:2]])
    found = db.execute("SELECT md5, retry_count, last_error FROM pending_articles ORDER BY created_at").fetchall()
    assert [tuple(row.values()) for row in found] == [(md5s[0], 1, "it broke"), (md5s[2], 1, "")]


def test_a_released_article_is_given_out_at_once_and_counts_no_failure(db: Connection) -> None:
    md5s = fill(db, 3)
    lease = claim(db, 2)[0]["lease_id"]
    assert release(db, md5s, lease) == 2
    assert release(db, md5s, lease) == 0
    again = claim(db)
    assert keys(again) == md5s
    assert {(row["expiries"], row["retry_count"]) for row in again} == {(0, 0)}


def test_an_article_that_kills_its_consumers_dies_and_takes_nobody_with_it(db: Connection) -> None:
    md5s = fill(db, 30)
    poison, done = md5s[7], []
    for _ in range(200):
        batch = claim(db, 10)
        if not batch:
            if not pending(db):
                break
            let_time_pass(db)
        elif poison not in keys(batch):  # else the consumer dies, and says nothing
            done += keys(batch)
            ack(db, keys(batch))
    (buried,) = dead(db)
    assert (buried["md5"], buried["error"], buried["expiries"]) == (poison, "lease expired 5 times", 5)
    assert sorted(done) == sorted(set(md5s) - {poison})
    assert pending(db) == []


def test_a_suspect_goes_alone_also_after_it_was_released(db: Connection) -> None:
    md5s = fill(db, 4)
    for _ in range(2):
        claim(db, 2)
        let_time_pass(db)
    (alone,) = claim(db)
    assert (alone["md5"], alone["expiries"]) == (md5s[0], 2)
    release(db, [alone["md5"]])
    let_time_pass(db)
    assert [len(claim(db)) for _ in range(4)] == [1, 1, 2, 0]


def test_a_claim_that_finds_only_the_spent_goes_on_to_the_next(db: Connection) -> None:
    md5s = fill(db, 60)
    claim(db)
    let_time_pass(db)
    db.execute("UPDATE pending_articles SET expiries = 4 WHERE md5 <> ALL(%s)", [md5s[-1:]])
    assert keys(claim(db, 10)) == md5s[-1:]
    assert len(dead(db)) == 59


def test_a_changed_text_is_a_new_start(db: Connection) -> None:
    md5s = fill(db, 1)
    for _ in range(4):
        claim(db)
        fail(db, md5s)
        let_time_pass(db)
    change_text(db)
    claim(db)
    assert fail(db, md5s)[0]["retry_count"] == 1


def test_the_dead_are_revived_with_nothing_held_against_them(db: Connection) -> None:
    md5s = fill(db, 2)
    claim(db)
    fail(db, md5s, max_failures=1)
    revive = "SELECT revive_articles(%s) AS n"
    assert db.execute(revive, [[md5s[0], "unknown"]]).fetchall() == [{"n": 1}]
    assert db.execute(revive, [[md5s[0]]]).fetchall() == [{"n": 0}]
    (again,) = claim(db)
    assert (again["md5"], again["retry_count"], again["expiries"], again["last_error"]) == (md5s[0], 0, 0, "no")
    fail(db, md5s[:1], "and died again", max_failures=1)
    assert [row["error"] for row in dead(db) if row["md5"] == md5s[0]] == ["and died again"]


def test_a_dead_article_that_came_back_by_itself_is_not_doubled(db: Connection) -> None:
    md5s = fill(db, 1)
    claim(db)
    fail(db, md5s, max_failures=1)
    fill(db, 1)
    change_text(db)
    assert db.execute("SELECT revive_articles(%s) AS n", [md5s]).fetchall() == [{"n": 1}]
    assert (dead(db), [row["content_hash"] for row in claim(db)]) == ([], ["new text"])
    claim(db)
    fail(db, md5s, max_failures=1)
    fill(db, 1)
    claim(db)
    fail(db, md5s, "the second death", max_failures=1)
    assert [(row["error"], row["content_hash"]) for row in dead(db)] == [("the second death", "old text")]


def test_the_dead_of_a_feed_that_was_removed_stay_dead(db: Connection) -> None:
    md5s = fill(db, 1)
    claim(db)
    fail(db, md5s, max_failures=1)
    db.execute("DELETE FROM feeds")
    assert db.execute("SELECT revive_articles(%s) AS n", [md5s]).fetchall() == [{"n": 0}]
    assert len(dead(db)) == 1


def test_ten_claimers_at_once_get_each_article_once_and_as_many_as_they_ask_for(
    db: Connection, database_url: str
) -> None:
    md5s = fill(db, 5000)
    seen: list[str] = []

    def drain(_: int) -> list[int]:
        sizes = []
        with connect(database_url) as mine:
            while batch := keys(claim(mine, 25)):
                seen.extend(batch)
                sizes.append(len(batch))
                assert ack(mine, batch) == len(batch)
                if len(sizes) == 19:  # what is left is for all ten at once: who comes then gets what the others leave
                    everybody.wait()
        return sizes

    everybody = threading.Barrier(10, timeout=60)
    with ThreadPoolExecutor(10) as pool:
        sizes = list(pool.map(drain, range(10)))
    assert Counter(seen) == Counter(md5s)
    assert [part[:19] for part in sizes] == [[25] * 19] * 10
    assert pending(db) == []


def test_acks_and_fails_of_the_same_articles_in_any_order_do_not_deadlock(db: Connection, database_url: str) -> None:
    md5s = fill(db, 400)
    claim(db, 400)

    def worry(number: int) -> None:
        shuffle = random.Random(number)
        with connect(database_url) as mine:
            for _ in range(40):
                picked = shuffle.sample(md5s, 60)
                release(mine, picked)
                renew(mine, picked, "1 minute")
                claim(mine, 50)
                fail(mine, picked, retry_after="-1 s", max_failures=10_000)
                ack(mine, picked[:3])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(worry, range(6)))


def test_the_same_articles_acknowledged_by_several_in_any_order_do_not_deadlock(
    db: Connection, database_url: str
) -> None:
    together = threading.Barrier(4, timeout=60)

    def acknowledge(number: int) -> int:
        shuffle = random.Random(number)
        removed = 0
        with connect(database_url) as mine:
            for round_ in range(6):
                together.wait()
                if number == 0:
                    fill(db, 1000)
                together.wait()
                mixed = shuffle.sample(pending(mine), 1000) if round_ % 2 else pending(mine)[:: 1 - 2 * (number % 2)]
                together.wait()
                removed += ack(mine, mixed)
        return removed

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(acknowledge, range(4))) == 6000


def test_new_articles_are_announced_once_per_transaction(db: Connection, database_url: str) -> None:
    with connect(database_url) as listener:
        listener.execute("LISTEN feedmill_pending")
        with db.transaction():
            fill(db, 3)
            fill(db, 3, start=4)
        claim(db)
        ack(db, pending(db))
        heard = list(listener.notifies(timeout=30, stop_after=1)) + list(listener.notifies(timeout=0.2))
    assert [(notify.channel, notify.payload) for notify in heard] == [("feedmill_pending", "")]


PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "consume.md").read_text(encoding="utf-8")


def test_the_consumer_in_sql_of_the_docs_drains_the_table_and_fails_what_it_can_not_digest(db: Connection) -> None:
    script = PAGE.partition("```sql\nCREATE TABLE")[2].partition("```")[0]
    db.execute(("CREATE TABLE" + script).encode())
    md5s = fill(db, 70)
    db.execute(
        "UPDATE pending_articles SET body ="
        " (SELECT string_agg(md5(i::text), ' ') FROM generate_series(1, 50000) i) WHERE md5 = %s",
        md5s[:1],
    )
    db.execute("CALL drain_pending_articles()")
    assert {row["md5"] for row in db.execute("SELECT md5 FROM search_index")} == set(md5s[1:])
    assert pending(db) == md5s[:1]
    row = db.execute("SELECT retry_count, last_error FROM pending_articles").fetchone()
    assert row is not None
    assert row["retry_count"] == 1
    assert "too long for tsvector" in row["last_error"]


@pytest.fixture
def consumer(db: Connection, database_url: str, servers: Servers) -> Iterator[Connection]:
    """Connected as the role that docs/how-to/consume.md makes, with a password instead of a certificate."""
    statements = PAGE.partition("```sql\nCREATE ROLE")[2].partition("```")[0]
    role = f"consumer_{uuid4().hex[:8]}"
    db.execute(("CREATE ROLE" + statements).replace("feedmill_consumer", role).encode())
    db.execute(f"ALTER ROLE {role} PASSWORD 'x'".encode())
    url = psycopg.conninfo.make_conninfo(database_url, user=role, password="x")
    with connect(url) as connection:
        yield connection
    db.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_the_role_of_the_docs_may_drain_and_no_more(db: Connection, consumer: Connection) -> None:
    md5s = fill(db, 6)
    (one, *_) = claim(consumer, 4)
    assert ack(consumer, md5s[:1]) == 1
    renew(consumer, md5s, "1 hour", one["lease_id"])
    fail(consumer, md5s[1:2], max_failures=1)
    fail(consumer, md5s[2:3])
    release(consumer, md5s[3:4])
    let_time_pass(db)
    claim(consumer, 10, max_expiries=1)
    assert len(dead(db)) == 1
    for forbidden in (
        "UPDATE pending_articles SET body = ''",
        "INSERT INTO pending_articles SELECT * FROM pending_articles",
        "SELECT * FROM feeds",
        "TRUNCATE pending_articles",
        "SELECT revive_articles('{x}')",
        "DELETE FROM dead_articles",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            consumer.execute(forbidden.encode())


def test_the_functions_work_under_any_search_path(db: Connection, database_url: str) -> None:
    fill(db, 1)
    with connect(database_url) as odd:
        odd.execute("CREATE TEMP TABLE pending_articles (md5 text)")
        odd.execute("SET search_path = pg_temp, pg_catalog")
        assert odd.execute("SELECT md5 FROM public.claim_pending_articles(9)").rowcount == 1


def test_the_tables_may_stand_in_another_schema(servers: Servers) -> None:
    name = f"test_{uuid4().hex[:12]}"
    servers.postgres.create_database(name)
    url = servers.postgres.database_url(name)
    with connect(url) as db:
        db.execute("CREATE SCHEMA mill")
        migrate(psycopg.conninfo.make_conninfo(url, options="-csearch_path=mill"))
        db.execute("INSERT INTO mill.feeds (url, politeness_group) VALUES ('http://x/', 'x')")
        db.execute(FILL.replace("INTO ", "INTO mill.").encode(), [1, 2])
        assert db.execute("SELECT * FROM mill.claim_pending_articles(9)").rowcount == 2
    servers.postgres.drop_database(name)


@pytest.mark.parametrize("before", ["feeds_and_articles", "the one before"])
def test_a_database_with_articles_in_it_is_upgraded_and_all_are_claimable(
    servers: Servers, tmp_path: Path, before: str
) -> None:
    """From the first migration, and from the one before that of the consumers."""
    migrations = read_migrations()
    mine = next(m for m in migrations if m.name == "consumers")
    last = 1 if before == migrations[0].name else mine.version - 1
    name = f"test_{uuid4().hex[:12]}"
    servers.postgres.create_database(name)
    url = servers.postgres.database_url(name)
    for migration in migrations[:last]:
        (tmp_path / f"{migration.version:04d}_{migration.name}.sql").write_text(migration.sql)
    migrate(url, tmp_path)
    with connect(url) as db:
        db.execute("INSERT INTO feeds (url, politeness_group) VALUES ('http://x/', 'x')")
        md5s = fill(db, 1000)
        migrate(url)
        batches = [keys(claim(db, 300)) for _ in range(4)]
        assert [md5 for batch in batches for md5 in batch] == md5s
        assert ack(db, md5s) == 1000
    servers.postgres.drop_database(name)


def touched(db: Connection) -> tuple[int, int]:
    """Return the sequential scans of this session, and the rows that it fetched by an index; not yet flushed ones."""
    found = db.execute("SELECT * FROM pg_stat_xact_user_tables WHERE relname = 'pending_articles'").fetchone()
    assert found is not None
    return found["seq_scan"], found["idx_tup_fetch"]


@pytest.mark.parametrize("analyzed", [True, False])
def test_every_call_goes_by_an_index_and_passes_over_nothing_that_is_under_way(db: Connection, analyzed: bool) -> None:
    db.execute("ALTER TABLE pending_articles SET (autovacuum_enabled = off)")
    for _ in range(8):  # a session that has called everything while the table was empty
        claim(db)
        fail(db, ["x"])
        ack(db, ["x"])
        renew(db, ["x"], "1 s")
        release(db, ["x"])
    md5s = fill(db, 50_000)
    if analyzed:
        db.execute("ANALYZE pending_articles")
    claim(db, 10_000)
    fail(db, md5s[9000:10_000])
    with db.transaction():
        scans, rows = touched(db)
        batch = keys(claim(db, 50))
        assert batch == md5s[10_000:10_050]
        assert touched(db)[1] - rows <= 150
        fail(db, batch[:20])
        release(db, batch[20:30])
        renew(db, batch[30:], "1 hour")
        ack(db, batch[30:])
        assert (touched(db)[0] - scans, touched(db)[1] - rows < 1000) == (0, True)
