"""The data of all browser tests: what the pages show."""

from __future__ import annotations

from typing import Any

import psycopg

from services.admin.registry import NewFeed, add_feed, connect
from tests.browser.article_data import fill_articles
from tests.browser.feed_data import fill_feeds

_A_DAY_OF_FETCHES = """
INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome, final, attempt,
    items_seen, items_new, wire_bytes, decoded_bytes, error_class, error)
SELECT gen_random_uuid(), feeds.id, at, at, 0.2, NOT fails, CASE WHEN fails THEN 'soft_error' ELSE 'fetched' END,
    NOT fails, 0, 10, CASE WHEN fails THEN 0 ELSE extract(hour FROM at)::int % 5 END, 1000, 3000,
    CASE WHEN fails THEN 'timeout' END, CASE WHEN fails THEN 'no answer within 30 s' END
FROM feeds
CROSS JOIN generate_series(now() - interval '23 hours', now() - interval '1 minute', interval '20 minutes') AS at
CROSS JOIN LATERAL (SELECT feeds.id % 4 = 0 AND extract(hour FROM at)::int % 3 = 0 AS fails) AS found
"""


def fill(database_url: str) -> None:
    """Write feeds, fetches and articles. An owner of a page adds a function of his own here."""
    with connect(database_url) as connection:
        for number in range(12):
            add_feed(connection, NewFeed(f"http://host{number % 4}.example/feed{number}.xml"))
        _fill_overview(connection)
        fill_feeds(connection)
        fill_articles(connection)


def _fill_overview(connection: psycopg.Connection[dict[str, Any]]) -> None:
    connection.execute(_A_DAY_OF_FETCHES)
    connection.execute(
        "UPDATE feeds SET failures = 3, last_outcome = 'soft_error', last_attempt_at = now() WHERE id % 4 = 0"
    )
    connection.execute("UPDATE feeds SET last_outcome = 'fetched', last_success_at = now() WHERE id % 4 > 0")
