"""How much waits for consumers, against real tables."""

from __future__ import annotations

import psycopg
import pytest

from services.scheduler.pending import Pending, look
from shared.database.postgres import Database

ARTICLE = """
INSERT INTO pending_articles (md5, feed_id, entry_id, url, title, body, content_quality, content_hash, created_at,
    claimed_until)
SELECT md5(%(n)s::text), %(feed)s, %(n)s, 'http://news.example/' || %(n)s, 'a title', 'a body', 'full', md5('a body'),
    now() - make_interval(mins => %(created)s), now() - make_interval(mins => %(claimable)s)
"""


async def found(database: Database) -> Pending:
    async with database.transaction() as connection:
        return await look(connection)


async def test_what_waits_longest_is_what_could_have_been_claimed_for_longest(
    database: Database, database_url: str, feed_id: int
) -> None:
    def add(number: int, *, created: int, claimable: int | None) -> None:
        with psycopg.connect(database_url) as connection:
            article = {"n": str(number), "feed": feed_id, "created": created, "claimable": claimable}
            connection.execute(ARTICLE, article)

    assert await found(database) == (0, 0, 0)
    add(1, created=50, claimable=-10)  # claimed, for another ten minutes
    assert (await found(database)).longest_seconds == 0
    add(2, created=3, claimable=None)  # nobody ever had it
    assert (await found(database)).longest_seconds == pytest.approx(180, abs=30)
    add(3, created=40, claimable=5)  # its lease ran out
    assert (await found(database)).longest_seconds == pytest.approx(300, abs=30)


async def test_the_statistics_count_pending_and_dead_articles(
    database: Database, database_url: str, feed_id: int
) -> None:
    with psycopg.connect(database_url) as connection:
        for number in range(3):
            article = {"n": str(number), "feed": feed_id, "created": 0, "claimable": None}
            connection.execute(ARTICLE, article)
        connection.execute("SELECT bury_articles(array_agg(md5), 'a test') FROM pending_articles WHERE entry_id = '0'")
        connection.execute("SELECT pg_stat_force_next_flush()")  # else when the session has been idle for a while
    counted = await found(database)
    assert (counted.articles, counted.dead) == (2, 1)
