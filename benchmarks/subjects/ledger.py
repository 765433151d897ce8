"""A grown ledger: writing articles beside an empty ledger, the size of the table, and the time of a pruning slice.

`python -m benchmarks ledger` fills it with a million rows, `--quick` with 100,000, FEEDMILL_BENCH_LEDGER_ROWS says
otherwise (10 million take some ten minutes and 5 GB of disk).
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from statistics import median
from uuid import uuid4

from benchmarks.bench import Bench, vacuum
from benchmarks.laps import BenchError, Lap, rate_row
from benchmarks.messages import ENTRIES, feed_url, new_results, repeat_results
from benchmarks.rows import Row
from benchmarks.subjects.writer import write_batches
from services.writer.pruning import prune_ledger
from shared.database.postgres import Database

RESULTS, ROUNDS = 100, 3
STEP = 500_000

FILL = """
INSERT INTO feed_items (md5, feed_id, content_hash, url, canonical, first_seen_at, last_seen_at)
SELECT md5(n::text), n %% 47000, md5(n::text) || md5((-n)::text),
    format('https://h%%s.example/2026/%%s', n %% 47000, n),
    md5(format('h%%s.example/2026/%%s', n %% 47000, n))::uuid,
    now() - interval '1 year', now() - CASE WHEN n %% 20 = 0 THEN interval '200 days' ELSE interval '1 day' END
FROM generate_series(%(first)s::bigint, %(last)s) AS n
"""


async def run(bench: Bench) -> list[Row]:
    """Return the rows; the grown ledger stands beside an empty one in the same server."""
    size = int(os.environ.get("FEEDMILL_BENCH_LEDGER_ROWS") or (100_000 if bench.quick else 1_000_000))
    name = f"ledger.{size // 1_000_000}m" if size >= 1_000_000 else f"ledger.{size // 1000}k"
    async with (
        Database(bench.make_place("empty").database_url, size=1).open() as empty,
        Database(bench.make_place("grown").database_url, size=1).open() as grown,
    ):
        await _fill(grown, size)
        for database in (empty, grown):
            await _register(database)
        laps: defaultdict[str, list[Lap]] = defaultdict(list)
        for number in range(ROUNDS + 1):
            for suffix, database in (("", grown), ("_empty", empty)):
                new, known = await _write(database, f"round-{number}")
                if number:
                    laps[f"new{suffix}"].append(new)
                    laps[f"known95{suffix}"].append(known)
        sizes = await _sizes(grown)
        pruning = await _prune(grown, size)
    return [
        rate_row(f"{name}.new", "articles/s", "an empty ledger", laps["new"], laps["new_empty"]),
        rate_row(f"{name}.known95", "articles/s", "an empty ledger", laps["known95"], laps["known95_empty"]),
        Row(f"{name}.table", sizes[0] / size, "bytes/row", "its indexes", sizes[1] / size),
        Row(f"{name}.prune_a_slice", 1000 * pruning[0], "ms", "rows that it looked at", pruning[1]),
    ]


async def _fill(database: Database, size: int) -> None:
    for first in range(1, size + 1, STEP):
        async with database.transaction() as connection:
            await connection.execute(FILL.encode(), {"first": first, "last": min(first + STEP - 1, size)})
    await vacuum(database, "feed_items")


async def _register(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO feeds (url, politeness_group) SELECT unnest(%s::text[]), 'bench.example'",
            [[feed_url(number) for number in range(1, RESULTS + 1)]],
        )


async def _write(database: Database, edition: str) -> tuple[Lap, Lap]:
    """Write new results, and results that are known but for one article in twenty."""
    new = new_results(RESULTS, edition=edition, claim_id=uuid4())
    again = repeat_results(new, edition=edition, claim_id=uuid4())
    return (
        await write_batches(database, new, expected=RESULTS * ENTRIES),
        await write_batches(database, again, expected=RESULTS),
    )


async def _sizes(database: Database) -> tuple[int, int]:
    async with database.transaction() as connection:
        cursor = await connection.execute(
            "SELECT pg_table_size('feed_items') AS heap, pg_indexes_size('feed_items') AS indexes"
        )
        row = await cursor.fetchone()
    assert row is not None
    return row["heap"], row["indexes"]


async def _prune(database: Database, size: int) -> tuple[float, float]:
    """Return the seconds that a slice takes, one row in twenty of which is deleted, and the rows of a slice."""
    seconds = []
    for number in range(8):
        start = time.monotonic()
        async with database.transaction() as connection:
            deleted = await prune_ledger(connection, f"{number * 511:03x}", 90)
        seconds.append(time.monotonic() - start)
        if not deleted and size >= 1_000_000:
            raise BenchError("nothing was pruned")
    return median(seconds), size / 4096
