"""Draining `pending_articles` by claim and acknowledge, beside a bare queue without leases.

The bare queue does `SELECT … FOR UPDATE SKIP LOCKED` and `DELETE … WHERE md5 = ANY` of the same rows in one transaction
that stays open during the work. All workers are threads with a connection of their own. Their time in psycopg counts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg

from benchmarks.bench import Bench, read_number
from benchmarks.laps import BenchError, Contender, Lap, rate_row, run_rounds
from benchmarks.rows import Row
from feedmill_client import PendingArticles

BATCH = 50
LAP_SECONDS = 1.0
QUICK_LAP_SECONDS = 0.25
"""Short enough that the articles suffice."""
BARE = "SELECT … SKIP LOCKED, DELETE … md5 = ANY, one transaction"

# Bodies of 3 KB that compress to about half, as texts do; every column that a claim returns.
FILL = """
INSERT INTO pending_articles (md5, feed_id, entry_id, url, title, body, content_quality, content_hash, author, language,
    published_at, created_at)
SELECT md5(n::text), 1, 'tag:' || n, 'https://news.example/articles/' || n, 'The title of article ' || n,
    (SELECT string_agg(md5((n %% 1000 * 50 + m)::text) || ' and some more text that repeats ', '')
        FROM generate_series(1, 46) AS m),
    'full', md5('h' || n), 'A. Writer', 'en', now(), now() - interval '1 day' + n * interval '10 ms'
FROM generate_series(1, %s::int) AS n
"""

TAKE = """
SELECT md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash, published_at, updated_at, author,
    categories, enclosures, language, flags, duplicate_of, revision, retry_count, expiries, created_at, claimed_until,
    lease_id
FROM pending_articles WHERE claimed_until IS NULL ORDER BY created_at, md5 LIMIT %s FOR UPDATE SKIP LOCKED
"""

COUNT = "SELECT count(*) FROM pending_articles"

Drain = Callable[[str, float], int]
"""Drains until that moment of the monotonic clock; returns how many articles."""


async def run(bench: Bench) -> list[Row]:
    """Return the rows: articles per second with one and with four workers."""
    articles, most, seconds = (100_000, 3, QUICK_LAP_SECONDS) if bench.quick else (1_000_000, 7, LAP_SECONDS)
    url = bench.make_place("pending").database_url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO feeds (url, politeness_group) VALUES ('http://x/', 'x')")
        connection.execute(FILL, [articles])
        connection.execute("VACUUM ANALYZE pending_articles")
        return [await _measure_rates(connection, url, workers, most, seconds) for workers in (1, 4)]


async def _measure_rates(connection: psycopg.Connection, url: str, workers: int, most: int, seconds: float) -> Row:
    def contender(drain: Drain) -> Contender:
        return lambda: asyncio.to_thread(_lap, connection, url, workers, drain, seconds)

    contenders = {"ours": contender(_drain), BARE: contender(_drain_barely)}
    laps = await run_rounds(contenders, most, 45.0, warm_up=True)
    return rate_row(f"pending.{workers}_workers", "articles/s", BARE, laps["ours"], laps[BARE])


def _lap(connection: psycopg.Connection, url: str, workers: int, drain: Drain, lap_seconds: float) -> Lap:
    before = read_number(connection, COUNT)
    start = time.monotonic()
    with ThreadPoolExecutor(workers) as pool:
        drained = sum(pool.map(lambda _: drain(url, start + lap_seconds), range(workers)))
    seconds = time.monotonic() - start
    gone = before - read_number(connection, COUNT)
    if gone != drained or not drained:
        raise BenchError(f"{drained} articles were drained, {gone} rows are gone")
    return Lap(drained, seconds)


def _drain(url: str, until: float) -> int:
    drained = 0
    with PendingArticles(url) as pending:
        while time.monotonic() < until:
            drained += pending.ack(pending.claim(BATCH))
    return drained


def _drain_barely(url: str, until: float) -> int:
    drained = 0
    with psycopg.connect(url, prepare_threshold=None) as connection:
        while time.monotonic() < until:
            with connection.transaction():
                md5s = [row[0] for row in connection.execute(TAKE, [BATCH]).fetchall()]
                drained += connection.execute("DELETE FROM pending_articles WHERE md5 = ANY(%s)", [md5s]).rowcount
    return drained
