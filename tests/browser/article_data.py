"""Articles, consumers and dead letters for the browser."""

from __future__ import annotations

import asyncio
import json
from hashlib import md5
from typing import Any

import psycopg

from shared.broker.port import Publication
from shared.broker.rabbitmq import RabbitMQ
from shared.settings import BrokerSettings, read_settings
from shared.wire.envelope import MAX_MESSAGE_BYTES
from tests.factories import make_job

FIRST, COPY, DEAD, HELD, FAILED, DONE = (md5(str(number).encode()).hexdigest() for number in range(1, 7))
HOSTILE = "<script>document.title = 'pwned'</script> & \u202eevil"

TEXT = (
    "Berlin. The minister met Angela Merkel on Monday to speak about the new railway between Zürich and 𝒜cme town,"
    " which costs three billion and takes eleven years. Neighbours had asked for it since the war.\n\nIt opens soon. "
)

_FILL = """
INSERT INTO pending_articles (md5, feed_id, entry_id, url, title, body, content_quality, content_hash, author, language,
    categories, published_at, created_at)
SELECT md5(n::text), feed, 'tag:' || n, 'https://news.example/articles/' || n, 'The railway opens, part ' || n,
    %(text)s, 'full', 'h' || n, 'A. Writer', 'en', '{traffic,cities}', now() - n * interval '1 hour',
    now() - interval '2 hours'
FROM generate_series(1, 100) AS n, (SELECT min(id) AS feed FROM feeds) AS feeds
"""

_LEDGER = """
INSERT INTO feed_items (md5, feed_id, content_hash, url, first_seen_at, last_seen_at, duplicate_of, duplicate_kind,
    duplicate_score, entry_key)
SELECT md5(n::text), feed, 'h' || n, 'https://news.example/articles/' || n, now() - (10 - n) * interval '1 hour', now(),
    CASE WHEN n = 2 THEN md5('1') END, CASE WHEN n = 2 THEN 'text' END, CASE WHEN n = 2 THEN 0.87 END, gen_random_uuid()
FROM generate_series(1, 10) AS n, (SELECT min(id) AS feed FROM feeds) AS feeds
"""


def fill_articles(connection: psycopg.Connection[dict[str, Any]]) -> None:
    """Write articles in all states."""
    connection.execute(_FILL, {"text": TEXT})
    connection.execute(_LEDGER)
    start = TEXT.index("Angela Merkel")
    entities = [
        {
            "name": "Angela Merkel",
            "kind": "person",
            "id": "Q567",
            "mentions": [{"field": "body", "start": start, "end": start + 13}],
        },
        {"name": "Berlin", "kind": "place", "id": "Q64", "mentions": [{"field": "body", "start": 0, "end": 6}]},
    ]
    labels = {"entities": json.dumps(entities), "first": FIRST, "copy": COPY, "hostile": HOSTILE}
    connection.execute(
        "UPDATE pending_articles SET entities = %(entities)s, detected_language = 'en', language_confidence = 0.99,"
        " topic = 'politics and government', topic_confidence = 0.87, flags = '{date_ambiguous,title_cut}'"
        " WHERE md5 IN (%(first)s, %(copy)s)",
        labels,
    )
    connection.execute(
        "UPDATE pending_articles SET duplicate_of = %(first)s, duplicate_kind = 'text', duplicate_score = 0.87,"
        " title = %(hostile)s, body = replace(body, 'Monday', 'Tuesday') WHERE md5 = %(copy)s",
        labels,
    )
    connection.execute("SET application_name = 'indexer'")
    connection.execute("SELECT FROM claim_pending_articles(20)")
    held = [HELD, FIRST, COPY, FAILED]
    connection.execute("SELECT release_articles(array(SELECT md5 FROM pending_articles WHERE md5 = ANY(%s)))", [held])
    connection.execute("UPDATE pending_articles SET claimed_until = NULL WHERE md5 = ANY(%s)", [[FIRST, COPY]])
    connection.execute(
        "UPDATE pending_articles SET lease_id = gen_random_uuid(), claimed_until = now() + interval '1 day'"
        " WHERE md5 = ANY(%s)",
        [[HELD, FAILED]],
    )
    connection.execute(
        "SELECT ack_articles(ARRAY(SELECT md5 FROM pending_articles WHERE lease_id IS NOT NULL AND md5 <> ALL(%s)))",
        [[HELD, FAILED, DEAD]],
    )
    connection.execute("SELECT FROM fail_articles(%s, 'the model is away', retry_after => '1 day')", [[FAILED]])
    connection.execute("SELECT bury_articles(%s, 'the model refused it')", [[DEAD]])


def fill_letters(amqp_url: str) -> None:
    """Publish dead letters."""
    asyncio.run(_publish(amqp_url))


async def _publish(amqp_url: str) -> None:
    topology = read_settings(BrokerSettings).topology()
    broker = RabbitMQ(amqp_url, name="browser tests", max_message_bytes=MAX_MESSAGE_BYTES)
    async with broker.connect(topology) as session:
        for number in range(6):
            body, encoding = make_job(feed_id=1 + number, source_config={"password": "hunter2"}).encode()
            headers: dict[str, str | int] = {"reason": "exhausted", "feed_id": 1 + number, "attempt": 4}
            headers |= {"error": f"Bug {number}: {HOSTILE}", "died_at": "2026-01-02T03:04:05Z"}
            letter = Publication(
                topology.fetcher.dead, body, "feedmill", "feed.fetch.v1", encoding, headers, f"{number:032x}"
            )
            await session.publish(letter)
