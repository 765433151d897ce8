"""The writer's and the client's lists of columns, compared with the tables and their page."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from feedmill_client import Article
from services.writer import ledger, pending
from services.writer.article import Article as WrittenArticle
from services.writer.article import Column, arrays, insert_statement
from services.writer.schedule.feed_state import FeedState
from shared.database.postgres import Database
from tests.factories import NOW, make_entry
from tests.integration.writer.writing import rows

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "tables.md"

SET_BY_SQL = {"created_at", "claimed_until", "lease_id", "claimed_hash", "retry_count", "expiries", "last_error"}
"""Columns of `pending_articles` that no entry fills: the time, and those of the functions for consumers."""


async def columns(database: Database, table: str) -> dict[str, str]:
    found = await rows(
        database,
        "SELECT attname, format_type(atttypid, NULL) AS type FROM pg_attribute"
        f" WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped",
    )
    return {row["attname"]: row["type"].replace("timestamp with time zone", "timestamptz") for row in found}


async def test_the_writer_fills_every_column_of_an_article_with_its_type(database: Database) -> None:
    table = await columns(database, "pending_articles")
    assert {c.name: c.type for c in pending.COLUMNS} == {n: t for n, t in table.items() if n not in SET_BY_SQL}
    assert table.keys() >= SET_BY_SQL


async def test_the_writer_fills_every_column_of_the_ledger_with_its_type(database: Database) -> None:
    table = await columns(database, "feed_items")
    by_statement = {"first_seen_at", "last_seen_at", "updates"}
    assert {c.name: c.type for c in ledger.COLUMNS} == {n: t for n, t in table.items() if n not in by_statement}


async def test_the_client_gives_out_every_column_of_an_article(database: Database) -> None:
    table = await columns(database, "pending_articles")
    assert {field.name for field in fields(Article)} == table.keys() - {"claimed_hash", "last_error"}


async def test_the_page_of_tables_names_every_column_of_an_article(database: Database) -> None:
    named = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))
    table = await columns(database, "pending_articles")
    assert table.keys() - named == set()


async def test_a_feeds_state_is_made_of_columns_of_its_table(database: Database) -> None:
    table = await columns(database, "feeds")
    assert {field.name for field in fields(FeedState)} - {"has_own_headers"} <= table.keys()


async def test_a_stage_that_brings_a_new_column_adds_one_line_to_the_list(database: Database, feed_id: int) -> None:
    words = Column("words", "integer", lambda article: len(article.entry.body.split()))
    with_words = (*pending.COLUMNS, words)
    statement = insert_statement("pending_articles", with_words, set_to_now=["created_at"])
    entry = make_entry(1, body="three words here")
    article = WrittenArticle(entry.md5, feed_id, entry, 0, 0, 0)
    async with database.transaction() as connection:
        await connection.execute("ALTER TABLE pending_articles ADD COLUMN words integer")
        await connection.execute(statement.encode(), {"now": NOW, **arrays(with_words, [article])})
    assert await rows(database, "SELECT title, words FROM pending_articles") == [{"title": entry.title, "words": 3}]
