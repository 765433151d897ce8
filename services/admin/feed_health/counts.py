"""How many feeds are how."""

from __future__ import annotations

from collections.abc import Mapping

from services.admin.feed_health.rule import Word
from services.admin.health.alarms.measured import FeedsInUse
from shared.database.postgres import Connection


async def count_words(connection: Connection) -> dict[Word, int]:
    """Return how many feeds have each word; all words are there."""
    cursor = await connection.execute("SELECT word, count(*) AS feeds FROM feed_words GROUP BY word")
    found = {row["word"]: row["feeds"] for row in await cursor.fetchall()}
    return {word: found.get(word, 0) for word in Word}


def in_use(words: Mapping[Word, int]) -> FeedsInUse:
    """Return how many feeds are polled and were asked already, and how many of these fail."""
    unasked = {Word.NEW, Word.DISABLED, Word.GONE, Word.DUPLICATE}
    return FeedsInUse(sum(feeds for word, feeds in words.items() if word not in unasked), words.get(Word.FAILING, 0))
