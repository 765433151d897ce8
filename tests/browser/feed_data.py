"""Feeds in many states, for their pages."""

from __future__ import annotations

import json
from typing import Any

import psycopg

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(1)</script>'

_INSERT = """
INSERT INTO feeds (id, url, politeness_group, name, tags) OVERRIDING SYSTEM VALUE VALUES
    (1001, 'https://late.example/a/rather/long/address/of/a/feed/that/does/not/fit/into/a/narrow/column.xml',
        'late.example', 'Late News', '{news,europe/berlin}'),
    (1002, 'https://slow.example/feed', 'slow.example', 'Slow Weekly', '{}'),
    (1003, 'https://slow.example/other', 'slow.example', NULL, '{}'),
    (1004, 'https://paused.example/feed', 'paused.example', 'Paused', '{news}'),
    (1005, 'https://evil.example/feed?x=%%22%%3E%%3Cscript', 'evil.example', %s, ARRAY[%s]),
    (1006, 'https://down.example/feed', 'down.example', 'Down Today', '{}')
"""

_STATES = (
    "UPDATE feeds SET failures = 4, last_outcome = 'hard_error', last_error = 'the server answered 404',"
    " last_attempt_at = now() - interval '2 hours', last_success_at = now() - interval '3 days',"
    " last_new_at = now() - interval '3 days', next_fetch_at = now() + interval '9 hours', poll_seconds = 1800,"
    " items_per_day = 12.5, ttl_seconds = 600, news_gap_seconds = 7200, longest_seconds = 86400 WHERE id = 1001",
    "UPDATE feeds SET last_outcome = 'fetched', last_attempt_at = now() - interval '5 minutes', poll_seconds = 3600,"
    " last_success_at = now() - interval '5 minutes', next_fetch_at = now() - interval '1 minute' WHERE id = 1002",
    "UPDATE feeds SET claim_id = gen_random_uuid(), issued_at = now() - interval '3 minutes',"
    " claim_expires_at = now() + interval '2 hours' WHERE id = 1003",
    "UPDATE feeds SET enabled = false, disabled_reason = 'by hand' WHERE id = 1004",
    "UPDATE feeds SET claim_id = gen_random_uuid(), claim_expires_at = now() + interval '90 minutes', failures = 1,"
    " last_outcome = 'soft_error', last_attempt_at = now(), last_error = 'connection refused' WHERE id = 1006",
    "INSERT INTO throttled_groups VALUES ('slow.example', now() + interval '2 hours')",
)

_LOG = """
INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome, final, attempt,
    status, items_seen, items_new, wire_bytes, decoded_bytes, error_class, error)
SELECT gen_random_uuid(), 1001, at, at, 0.3, NOT fails, CASE WHEN fails THEN 'hard_error' ELSE 'fetched' END, true, 0,
    CASE WHEN fails THEN 404 ELSE 200 END, 20, CASE WHEN fails THEN 0 ELSE extract(hour FROM at)::int % 3 END, 0, 0,
    CASE WHEN fails THEN 'http_404' END, CASE WHEN fails THEN 'the server answered 404' END
FROM generate_series(now() - interval '20 days', now() - interval '2 hours', interval '6 hours') AS at
CROSS JOIN LATERAL (SELECT at > now() - interval '3 days' AS fails) AS found
"""

_DOWN = """
INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome, final, attempt,
    items_seen, items_new, wire_bytes, decoded_bytes, error_class, error)
VALUES (gen_random_uuid(), 1006, now(), now(), 0.3, false, 'soft_error', false, 0, 0, 0, 0, 0, 'connect', 'refused')
"""


def fill_feeds(connection: psycopg.Connection[dict[str, Any]]) -> None:
    """Write feeds that fail, wait for their host, are under way, paused, hostile, or at a host that is down."""
    connection.execute(_INSERT, [HOSTILE, HOSTILE])
    for statement in (*_STATES, _LOG, _DOWN):
        connection.execute(statement.encode())
    hours = [0, 0, 0, 0, 1, 5, 12, 20, 18, 9, 6, 5, 8, 7, 5, 4, 6, 9, 7, 4, 2, 1, 0, 0]
    pace = {"rhythm": [*hours, 25, 22, 24, 21, 20, 9, 8], "rhythm_since": "2026-10-01T00:00:00Z"}
    connection.execute("UPDATE feeds SET pace = %s WHERE id = 1001", [json.dumps(pace)])
