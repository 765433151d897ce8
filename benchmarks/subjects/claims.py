"""The claim of 500 feeds from a registry of a million, beside the barest statement that gives no feed twice.

The bare one takes the feeds that have been due for longest and knows no groups. Both commit. The client's time counts.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial

from benchmarks.bench import Bench, vacuum
from benchmarks.laps import BenchError, Lap, middle_ms, run_rounds
from benchmarks.rows import Row
from services.scheduler.store import claim_due_feeds
from shared.database.postgres import Connection, Database

LIMIT = 500
CLAIM_SECONDS = 3600.0
ONE_HOST = 14_000
BESIDE = "UPDATE … the longest due, SKIP LOCKED"

# Every hundredth is due. Hosts have from one feed (most) to some hundreds.
FILL = """
INSERT INTO feeds (url, politeness_group, next_fetch_at, etag, last_modified, validators_url, title)
SELECT url, host,
    now() + CASE WHEN n %% 100 = 0 THEN -random() * interval '1 hour' ELSE random() * interval '1 day' END,
    md5(url), 'Sat, 21 Nov 2026 10:00:00 GMT', url, 'The title of a feed ' || n
FROM (
    SELECT n, host, format('https://%%s/feeds/%%s.xml', host, n) AS url
    FROM (
        SELECT n, format('h%%s.example', floor(%(feeds)s * 0.3 * power(random(), 2))::int) AS host
        FROM generate_series(1, %(feeds)s) AS n
    ) AS numbered
) AS named
"""

MOVE_TO_ONE_HOST = """
UPDATE feeds SET politeness_group = 'one.example', next_fetch_at = now() - interval '1 day'
WHERE id <= %(most)s AND issued_at IS NULL
"""

BARE = """
WITH due AS (
    SELECT id FROM feeds WHERE enabled AND priority = 0 AND due_at <= now()
    ORDER BY due_at LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE feeds
SET claim_id = gen_random_uuid(), claim_expires_at = now() + make_interval(secs => %(claim_seconds)s), issued_at = now()
FROM due WHERE feeds.id = due.id
RETURNING feeds.id, url, source_type, source_config, etag, last_modified, validators_url, body_hash, cursor_at,
    politeness_group, claim_id, claim_expires_at
"""


async def run(bench: Bench) -> list[Row]:
    """Return the rows: one feed in a hundred is due; one host has 14,000 that were due before all others; all are."""
    feeds, most = (500_000, 3) if bench.quick else (1_000_000, 9)
    rows = []
    async with Database(bench.make_place("claims").database_url, size=1).open() as database:
        await _change(database, FILL, {"feeds": feeds})
        rows.append(await _measure(database, f"{feeds // 1000}k_one_percent_due", most))
        await _change(database, MOVE_TO_ONE_HOST, {"most": ONE_HOST})
        rows.append(await _measure(database, f"{feeds // 1000}k_{ONE_HOST // 1000}k_of_one_host_first", most))
        await _change(database, "UPDATE feeds SET next_fetch_at = now() - random() * interval '1 day'", {})
        rows.append(await _measure(database, f"{feeds // 1000}k_all_due", most))
    return rows


async def _change(database: Database, statement: str, arguments: dict[str, int]) -> None:
    async with database.transaction() as connection:
        await connection.execute(statement.encode(), arguments)
    await vacuum(database, "feeds")


async def _measure(database: Database, case: str, most: int) -> Row:
    contenders = {"ours": partial(_lap, database, _claim), BESIDE: partial(_lap, database, _claim_barely)}
    laps = await run_rounds(contenders, most, 60.0, warm_up=True)
    return Row(f"claims.{case}", middle_ms(laps["ours"]), "ms", BESIDE, middle_ms(laps[BESIDE]))


async def _lap(database: Database, claim: Callable[[Connection], Awaitable[int]]) -> Lap:
    start = time.monotonic()
    async with database.transaction() as connection:
        claimed = await claim(connection)
    if claimed != LIMIT:
        raise BenchError(f"{claimed} of {LIMIT} feeds were claimed")
    return Lap(1, time.monotonic() - start)


async def _claim(connection: Connection) -> int:
    return (await claim_due_feeds(connection, limit=LIMIT, claim_seconds=CLAIM_SECONDS)).feeds


async def _claim_barely(connection: Connection) -> int:
    await connection.execute("SET LOCAL jit = off")
    cursor = await connection.execute(BARE.encode(), {"limit": LIMIT, "claim_seconds": CLAIM_SECONDS}, prepare=False)
    return len(await cursor.fetchall())
