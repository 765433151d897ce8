"""Labels of an article: written, replaced with its text, and kept through death and revival."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from feedmill_client import PendingArticles
from services.writer.store import Policy
from shared.database.postgres import Database
from shared.wire.enrichment import Enrichment, Entity, Mention
from tests.factories import make_entry, make_result
from tests.integration.writer.writing import rows, write

COLUMNS = (
    "detected_language, language_confidence, topic, topic_confidence, entities, duplicate_of, duplicate_kind,"
    " duplicate_score, flags"
)
ENTITY = Entity(name='"O\'Neil" \\ Łódź', kind="person", id="Q1", mentions=(Mention(field="body", start=4, end=8),))
FOUND = Enrichment(
    language="en",
    language_confidence=0.75,
    topic="politics",
    topic_confidence=0.5,
    entities=(ENTITY,),
    flags=("text_cut",),
)
AS_WRITTEN = {
    "detected_language": "en",
    "language_confidence": 0.75,
    "topic": "politics",
    "topic_confidence": 0.5,
    "entities": [ENTITY.model_dump(mode="json")],
    "duplicate_of": None,
    "duplicate_kind": None,
    "duplicate_score": None,
    "flags": ["date_guessed", "text_cut"],
}
NOTHING: dict[str, Any] = dict.fromkeys(
    ("detected_language", "language_confidence", "topic", "topic_confidence", "entities")
)


async def labels(database: Database, table: str = "pending_articles") -> list[dict[str, Any]]:
    return await rows(database, f"SELECT {COLUMNS} FROM {table} ORDER BY title")


async def write_entry(database: Database, feed_id: int, policy: Policy | None = None, **changes: Any) -> None:
    entry = make_entry(1, flags=("date_guessed",), **changes)
    await write(database, make_result(feed_id=feed_id, entries=(entry,)), policy=policy or Policy())


async def test_what_was_found_is_written_and_survives_death_and_revival(database: Database, feed_id: int) -> None:
    await write_entry(database, feed_id, enrichment=FOUND)
    assert await labels(database) == [AS_WRITTEN]
    async with database.transaction() as connection:
        await connection.execute("SELECT bury_articles(array_agg(md5), 'why') FROM pending_articles")
    assert await labels(database, "dead_articles") == [AS_WRITTEN]
    async with database.transaction() as connection:
        await connection.execute("SELECT revive_articles(array_agg(md5)) FROM dead_articles")
    assert await labels(database) == [AS_WRITTEN]


async def test_an_article_that_no_enricher_saw_has_no_labels_and_one_that_names_nobody_an_empty_list(
    database: Database, feed_id: int
) -> None:
    entries = (make_entry(1), make_entry(2, enrichment=Enrichment(entities=())))
    await write(database, make_result(feed_id=feed_id, entries=entries))
    found = await labels(database)
    assert [row["entities"] for row in found] == [None, []]
    assert [row["detected_language"] for row in found] == [None, None]


@pytest.mark.parametrize("requeue_updates", [False, True])
async def test_labels_change_with_the_text_and_go_if_nobody_read_it(
    database: Database, feed_id: int, *, requeue_updates: bool
) -> None:
    policy = Policy(requeue_updates=requeue_updates)
    await write_entry(database, feed_id, policy, enrichment=FOUND)
    german = Enrichment(language="de", language_confidence=1.0, entities=())
    await write_entry(database, feed_id, policy, body="Ein anderer Text.", enrichment=german)
    (row,) = await labels(database)
    assert (row["detected_language"], row["topic"], row["entities"]) == ("de", None, [])
    await write_entry(database, feed_id, policy, body="A text while the enricher is off.")
    (row,) = await labels(database)
    assert {name: row[name] for name in NOTHING} == NOTHING


async def test_an_article_that_comes_again_unchanged_keeps_its_labels(database: Database, feed_id: int) -> None:
    await write_entry(database, feed_id, enrichment=FOUND)
    await write_entry(database, feed_id)
    assert await labels(database) == [AS_WRITTEN]


@pytest.mark.parametrize("column", ["language_confidence", "topic_confidence", "duplicate_score"])
@pytest.mark.parametrize("value", ["1.01", "-0.01", "NaN"])
async def test_a_share_is_one(database: Database, feed_id: int, column: str, value: str) -> None:
    await write_entry(database, feed_id, enrichment=FOUND)
    with pytest.raises(psycopg.errors.CheckViolation):
        async with database.transaction() as connection:
            await connection.execute(f"UPDATE pending_articles SET {column} = '{value}'".encode())


async def test_the_client_gives_labels_out(database: Database, database_url: str, feed_id: int) -> None:
    await write_entry(database, feed_id, enrichment=FOUND)
    with PendingArticles(database_url) as pending:
        (article,) = pending.claim()
    assert {name: getattr(article, name) for name in AS_WRITTEN} == AS_WRITTEN


async def test_the_client_takes_articles_of_a_server_without_labels(
    database: Database, database_url: str, feed_id: int
) -> None:
    await write_entry(database, feed_id, enrichment=FOUND)
    async with database.transaction() as connection:
        for name in ("detected_language", "topic", "entities", "duplicate_kind"):
            await connection.execute(f"ALTER TABLE pending_articles DROP COLUMN {name}".encode())
    with PendingArticles(database_url) as pending:
        (article,) = pending.claim()
    assert (article.title, article.detected_language, article.entities) == ("Article 1", None, None)
