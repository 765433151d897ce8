"""What the counts say of consumers: by SQL and over HTTP, before and after a writer has added them up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import astuple, replace
from datetime import timedelta

import psycopg
import pytest

from services.admin.actor import Actor, Scope
from services.admin.articles import claims, consumers
from services.admin.articles.consumers import BARS, MOST_CALLS, MOST_COUNTED, Draining, read_draining
from services.admin.articles.draining_words import counted, describe_draining
from services.writer.pruning import Pruning, Retention
from shared.database.postgres import Database
from tests.integration.consumers.test_pending_articles import (
    Connection,
    ack,
    claim,
    connect,
    dead,
    fail,
    fill,
    let_time_pass,
    release,
)


@pytest.fixture
def db(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        connection.execute("INSERT INTO feeds (url, politeness_group) VALUES ('http://x/', 'x')")
        connection.execute("SET application_name = 'indexer'")
        yield connection


async def look(database: Database) -> Draining:
    async with database.transaction() as connection:
        return await read_draining(connection)


def sums(draining: Draining) -> dict[str, int]:
    return {kind: draining.in_an_hour(kind) for kind in ("claimed", "acknowledged", "failed", "expired")}


async def test_every_call_that_does_something_is_counted_once(database: Database, db: Connection) -> None:
    md5s = fill(db, 10)
    assert [row["md5"] for row in claim(db, 6)] == md5s[:6]
    assert (ack(db, md5s[:3]), ack(db, md5s[:3]), release(db, md5s[5:6])) == (3, 0, 1)
    fail(db, md5s[3:5])
    before = await look(database)
    assert sums(before) == {"claimed": 6, "acknowledged": 3, "failed": 2, "expired": 0}
    (consumer,) = before.consumers
    assert consumer.name.startswith("indexer, ")
    assert (consumer.claimed, consumer.acknowledged, consumer.failed, consumer.released) == (6, 3, 2, 1)
    assert (before.new, before.claimed, before.waiting_for_retry, before.died_in_an_hour) == (4, 0, 2, 0)
    assert len(before.minutes) == BARS
    await Pruning(database, Retention()).round(asyncio.Event())
    assert db.execute("SELECT count(*) AS n FROM consumer_calls").fetchone() == {"n": 0}
    after = await look(database)
    minute = replace(consumer, last_at=consumer.last_at.replace(second=0, microsecond=0), is_exact=False)
    assert (sums(after), after.consumers) == (sums(before), [minute])
    assert consumer.is_exact


async def test_a_call_that_is_rolled_back_or_finds_nothing_is_not_counted(database: Database, db: Connection) -> None:
    assert claim(db) == []
    fill(db, 2)
    with db.transaction(force_rollback=True):
        assert len(claim(db)) == 2
    assert sums(await look(database)) == {"claimed": 0, "acknowledged": 0, "failed": 0, "expired": 0}


async def test_leases_that_ran_out_are_counted_when_others_take_the_articles(
    database: Database, db: Connection
) -> None:
    fill(db, 3)
    claim(db, lease="1 ms", max_expiries=1)
    let_time_pass(db)
    silent = await look(database)
    assert (silent.lease_expired, silent.in_an_hour("expired")) == (3, 0)
    assert claim(db, max_expiries=1) == []
    assert len(dead(db)) == 3
    found = await look(database)
    assert (found.in_an_hour("expired"), found.died_in_an_hour, found.dead) == (3, 3, 3)
    assert found.reasons == [("lease expired 1 times", 3)]
    assert [consumer.claimed for consumer in found.consumers] == [3]  # nobody is blamed for the leases


async def test_a_consumer_over_http_goes_by_its_tokens_name(database: Database, db: Connection) -> None:
    fill(db, 2)
    async with database.transaction() as connection:
        await claims.call_as(connection, Actor("search fm_ab", frozenset({Scope.CONSUME}), 1))
        await claims.claim(connection, 5, timedelta(minutes=1), 5)
    claim(db)
    assert [(consumer.name, consumer.claimed) for consumer in (await look(database)).consumers] == [("search fm_ab", 2)]
    async with database.transaction() as connection:  # the name goes with the transaction
        await claims.release(connection, [row["md5"] for row in db.execute("SELECT md5 FROM pending_articles")])
    names = {consumer.name.split(",")[0] for consumer in (await look(database)).consumers}
    assert names == {"search fm_ab", "feedmill"}


async def test_a_role_that_may_only_drain_is_counted_and_reads_no_counts(database: Database, db: Connection) -> None:
    fill(db, 2)
    with db.transaction(force_rollback=True):
        db.execute("CREATE ROLE drains_and_nothing_else")
        db.execute("GRANT SELECT, UPDATE, DELETE ON pending_articles TO drains_and_nothing_else")
        db.execute("SET LOCAL ROLE drains_and_nothing_else")
        assert ack(db, [row["md5"] for row in claim(db)]) == 2
        with pytest.raises(psycopg.errors.InsufficientPrivilege), db.transaction():
            db.execute("SELECT FROM consumer_calls")
        db.execute("RESET ROLE")
        assert db.execute("SELECT sum(articles) AS n FROM consumer_calls").fetchone() == {"n": 4}


async def test_the_lag_is_the_age_of_the_oldest_article_that_waits(database: Database, db: Connection) -> None:
    assert (await look(database)).lag_seconds is None
    fill(db, 3)
    fail(db, [row["md5"] for row in claim(db, 1)])
    assert 86_000 < ((await look(database)).lag_seconds or 0) < 87_000


async def test_old_minutes_are_deleted(database: Database, db: Connection) -> None:
    fill(db, 1)
    claim(db)
    db.execute("UPDATE consumer_calls SET at = at - interval '8 days'")
    db.execute("INSERT INTO consumer_calls (kind, articles) VALUES ('claimed', 1)")
    await Pruning(database, Retention()).round(asyncio.Event())
    rows = db.execute("SELECT articles FROM consumer_minutes").fetchall()
    assert rows == [{"articles": 1}]


async def test_one_minute_is_added_up_however_often(database: Database, db: Connection) -> None:
    for number in (1, 2, 3):
        values = "date_trunc('minute', now()), 'claimed', %s"
        db.execute(f"INSERT INTO consumer_calls (at, kind, articles) VALUES ({values})".encode(), [number])
        await Pruning(database, Retention()).round(asyncio.Event())
    found = await look(database)
    assert sum(astuple(minute)[1] for minute in found.minutes) == 6
    assert db.execute("SELECT count(*) AS n FROM consumer_minutes").fetchone() == {"n": 1}


async def test_calls_are_added_up_before_anything_that_may_fail(database: Database, db: Connection) -> None:
    fill(db, 1)
    claim(db)
    db.execute("ALTER TABLE feed_freshness RENAME TO away")
    with pytest.raises(psycopg.errors.UndefinedTable):
        await Pruning(database, Retention()).round(asyncio.Event())
    assert db.execute("SELECT count(*) AS n FROM consumer_minutes").fetchone() == {"n": 1}


async def test_of_many_in_one_state_the_planners_estimate_is_told(
    database: Database, db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "MOST_COUNTED", 20)
    fill(db, 300)
    claim(db, 10)
    db.execute("ANALYZE pending_articles")
    found = await look(database)
    assert (found.claimed, found.dead) == (10, 0)
    assert 250 < found.new < 350


def test_an_estimate_is_told_to_be_one() -> None:
    told = [counted(number) for number in (9_999, MOST_COUNTED, 10_001, 1_234_567)]
    assert told == ["9,999", "10,000 or more", "about 10,000", "about 1,200,000"]


async def test_calls_that_nobody_adds_up_are_read_up_to_a_bound_and_told(database: Database, db: Connection) -> None:
    values = "SELECT 'claimed', 1 FROM generate_series(1, %s)"
    db.execute(f"INSERT INTO consumer_calls (kind, articles) {values}".encode(), [MOST_CALLS + 10])
    found = await look(database)
    assert (found.calls, found.in_an_hour("claimed")) == (MOST_CALLS, MOST_CALLS)
    assert [finding for finding in describe_draining(found) if "TRUNCATE consumer_calls" in finding]
