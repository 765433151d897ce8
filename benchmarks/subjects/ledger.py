"""The ledger when it has grown: how fast articles are written beside an empty one, how large it is, what tidying costs.

`python -m benchmarks ledger` fills it with a million rows, `--quick` with 100,000, FEEDMILL_BENCH_LEDGER_ROWS says
otherwise (10 million take some ten minutes and 5 GB of disk).
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median
from uuid import uuid4

from benchmarks.bench import Bench
from benchmarks.laps import BenchError
from benchmarks.results import feed_url, new_results, repeat_results
from benchmarks.rows import Row
from services.writer.pruning import prune_ledger
from services.writer.schedule.feed_state import Rules
from services.writer.store import write_batch
from shared.database.postgres import Database
from shared.wire.results import FeedFetched

RESULTS, OF_A_BATCH, ROUNDS = 100, 25, 3
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
        filling = await _fill(grown, size)
        rates: dict[str, list[float]] = {case: [] for case in ("new", "known95", "new_empty", "known95_empty")}
        for database in (empty, grown):
            await _register(database)
        for number in range(ROUNDS + 1):
            for suffix, database in (("", grown), ("_empty", empty)):
                found = await _write(database, f"round-{number}")
                if number:
                    rates[f"new{suffix}"].append(found[0])
                    rates[f"known95{suffix}"].append(found[1])
        sizes = await _sizes(grown)
        pruning = await _prune(grown, size)
        vacuum = await _vacuum(grown)
    middle = {case: median(values) for case, values in rates.items()}
    return [
        Row(f"{name}.new", middle["new"], "articles/s", "an empty ledger", middle["new_empty"]),
        Row(f"{name}.known95", middle["known95"], "articles/s", "an empty ledger", middle["known95_empty"]),
        Row(f"{name}.fill", size / filling, "rows/s", "-", 0.0),
        Row(f"{name}.table", sizes[0] / size, "bytes/row", "its indexes", sizes[1] / size),
        Row(f"{name}.prune_a_slice", 1000 * pruning[0], "ms", "rows that it looked at", pruning[1]),
        Row(f"{name}.vacuum", vacuum, "s", "-", 0.0),
    ]


async def _fill(database: Database, size: int) -> float:
    start = time.monotonic()
    for first in range(1, size + 1, STEP):
        async with database.transaction() as connection:
            await connection.execute(FILL.encode(), {"first": first, "last": min(first + STEP - 1, size)})
    spent = time.monotonic() - start
    await _vacuum(database)
    return spent


async def _register(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO feeds (url, politeness_group) SELECT unnest(%s::text[]), 'bench.example'",
            [[feed_url(number) for number in range(1, RESULTS + 1)]],
        )


async def _write(database: Database, edition: str) -> tuple[float, float]:
    """Return the articles per second of new results, and of results that are known but for one article in twenty."""
    new = new_results(RESULTS, edition=edition, claim_id=uuid4())
    again = repeat_results(new, edition=edition, claim_id=uuid4())
    return await _write_all(database, new, RESULTS * 20), await _write_all(database, again, RESULTS)


async def _write_all(database: Database, results: Sequence[FeedFetched], expected: int) -> float:
    start, written = time.monotonic(), 0
    for first in range(0, len(results), OF_A_BATCH):
        async with database.transaction() as connection:
            found = await write_batch(
                connection,
                results[first : first + OF_A_BATCH],
                now=datetime.now(UTC),
                rules=Rules(),
                proxy_hosts=frozenset(),
            )
            written += found.new
    if written != expected:
        raise BenchError(f"{written} of {expected} articles were written")
    return sum(len(result.entries) for result in results) / (time.monotonic() - start)


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


async def _vacuum(database: Database) -> float:
    start = time.monotonic()
    async with database.transaction() as connection:
        await connection.set_autocommit(True)
        await connection.execute("VACUUM ANALYZE feed_items")
        await connection.set_autocommit(False)
    return time.monotonic() - start
