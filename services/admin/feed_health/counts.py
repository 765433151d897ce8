"""How many feeds are how."""

from __future__ import annotations

from services.admin.feed_health.rule import Word
from shared.database.postgres import Connection


async def count_words(connection: Connection) -> dict[Word, int]:
    """Return how many feeds have each word; all words are there."""
    cursor = await connection.execute("SELECT word, count(*) AS feeds FROM feed_words GROUP BY word")
    found = {row["word"]: row["feeds"] for row in await cursor.fetchall()}
    return {word: found.get(word, 0) for word in Word}
