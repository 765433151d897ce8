"""Articles per second into the tables: the writer as a process, its transaction alone, and bare SQL beside them.

All store the same articles, in transactions of about 500, in databases of one server. Each round has a set of new
articles, and then one of which 95 % are those that were stored just before.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

import psycopg

from benchmarks.bare import sql
from benchmarks.bare.sql import BareTables, as_articles
from benchmarks.bench import Bench, open_session, publish_all, read_topology, wait_until
from benchmarks.laps import BenchError, Lap, middle_cpu_ms, middle_rate, rounds, spent
from benchmarks.processes import Services, run_services
from benchmarks.results import ENTRIES, feed_url, new_results, repeat_results
from benchmarks.rows import Row
from services.writer.schedule.feed_state import Rules
from services.writer.store import write_batch
from shared.broker.port import Outgoing, Session
from shared.database.postgres import Database
from shared.wire.results import FeedFetched

LAP_SECONDS = 60.0
WARM_UP = 10
"""Results of the first, unmeasured round."""

Contender = Callable[[Sequence[FeedFetched]], Awaitable[Lap]]


async def run(bench: Bench) -> list[Row]:
    """Return the rows for new articles and for 95 % known ones."""
    results, most, seconds = (100, 2, 12.0) if bench.quick else (250, 5, 75.0)
    whole, alone = bench.make_place("writer"), bench.make_place("write_batch")
    async with contextlib.AsyncExitStack() as stack:
        tables = stack.enter_context(contextlib.closing(BareTables(alone.database_url)))
        database = await stack.enter_async_context(Database(alone.database_url, size=2).open())
        session = await stack.enter_async_context(open_session(whole.amqp_url, read_topology()))
        services = await stack.enter_async_context(run_services(["writer"], whole.environment()))
        registries = [
            Registry(stack.enter_context(psycopg.connect(place.database_url, autocommit=True)), results)
            for place in (whole, alone)
        ]
        contenders = _contenders(Process(services, session, registries[0]), database, tables)
        course = Course(bench, contenders, registries)
        await course.run_round("warm-up", 0, WARM_UP)
        course.laps.clear()
        for number in rounds(most, seconds):
            await course.run_round(f"round-{number}", number, results)
        course.check()
    return _rows(course.laps)


def _contenders(process: Process, database: Database, tables: BareTables) -> dict[str, dict[str, Contender]]:
    """Return who stores the articles, by case and name."""

    async def transaction_alone(results: Sequence[FeedFetched]) -> Lap:
        return await _write_batches(database, results)

    def bare(store: Callable[[Sequence[sql.Article]], Lap]) -> Contender:
        async def run(results: Sequence[FeedFetched]) -> Lap:
            return await asyncio.to_thread(store, as_articles(results, datetime.now(UTC)))

        return run

    ours: dict[str, Contender] = {"process": process.write, "write_batch": transaction_alone}
    return {
        "new": {"copy": bare(tables.copy), **ours},
        "known95": {"copy": bare(tables.copy_anew), **ours, "executemany": bare(tables.insert)},
    }


class Course:
    """Runs rounds and keeps the laps, by case and contender."""

    def __init__(
        self, bench: Bench, contenders: Mapping[str, Mapping[str, Contender]], registries: Sequence[Registry]
    ) -> None:
        self.laps: defaultdict[tuple[str, str], list[Lap]] = defaultdict(list)
        self._bench = bench
        self._contenders = contenders
        self._registries = registries
        self._new = 0

    async def run_round(self, edition: str, number: int, results: int) -> None:
        """Let everyone store new articles, then mostly known ones; in another order each time."""
        new = new_results(results, edition=edition, claim_id=uuid4())
        known = repeat_results(new, edition=edition, claim_id=uuid4())
        for case, work in (("new", new), ("known95", known)):
            for registry in self._registries:
                registry.claim(work[0].claim_id)
            names = list(self._contenders[case])
            for name in names[number % len(names) :] + names[: number % len(names)]:
                before = self._bench.server_cpu_seconds()
                lap = await self._contenders[case][name](work)
                cpu = {**lap.cpu, **spent(before, self._bench.server_cpu_seconds())}
                self.laps[case, name].append(Lap(lap.count, lap.seconds, cpu))
        self._new += results * (ENTRIES + 1)

    def check(self) -> None:
        """Raise BenchError unless every article is in both databases, once."""
        for registry in self._registries:
            if registry.count("pending_articles") != self._new:
                raise BenchError(f"expected {self._new} articles, found {registry.count('pending_articles')}")


class Registry:
    """The feeds that the results belong to, in one database."""

    def __init__(self, connection: psycopg.Connection, feeds: int) -> None:
        self._connection = connection
        for feed_id in range(1, feeds + 1):
            connection.execute(
                "INSERT INTO feeds (url, politeness_group, next_fetch_at) VALUES (%s, 'bench', now() + '1 year')",
                [feed_url(feed_id)],
            )

    def claim(self, claim_id: UUID) -> None:
        """Give all feeds the claim that the next results answer to."""
        self._connection.execute(
            "UPDATE feeds SET claim_id = %s, claim_expires_at = now() + interval '1 hour'", [claim_id]
        )

    def count(self, table: str) -> int:
        """Return how many rows a table has."""
        row = self._connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
        assert row is not None
        return int(row[0])


class Process:
    """The whole writer: results wait in its queue until it may go."""

    def __init__(self, services: Services, session: Session, registry: Registry) -> None:
        self._services = services
        self._session = session
        self._registry = registry

    async def write(self, results: Sequence[FeedFetched]) -> Lap:
        """Queue the results, let the writer go, and wait for the last commit."""
        publications = [Outgoing(fetched, FeedFetched.KIND).to_publication() for fetched in results]
        expected = self._registry.count("feed_fetch_log") + len(results)
        with self._services.held_still():
            await publish_all(self._session, publications)
            before = self._services.cpu_seconds()
        start = time.monotonic()

        async def done() -> bool:
            return self._registry.count("feed_fetch_log") >= expected

        end = await wait_until(done, what="the writer", seconds=LAP_SECONDS, check=self._services.check)
        cpu = {sql.PROCESS: spent(before, self._services.cpu_seconds())["writer"]}
        return Lap(len(results) * ENTRIES, end - start, cpu)


async def _write_batches(database: Database, results: Sequence[FeedFetched]) -> Lap:
    """Write in transactions of as many articles as the writer takes at once."""
    size = sql.BATCH // ENTRIES
    wall, cpu = time.monotonic(), time.process_time()
    for start in range(0, len(results), size):
        async with database.transaction() as connection:
            await write_batch(
                connection,
                results[start : start + size],
                now=datetime.now(UTC),
                rules=Rules(),
                proxy_hosts=frozenset(),
            )
    seconds, cost = time.monotonic() - wall, time.process_time() - cpu
    return Lap(len(results) * ENTRIES, seconds, {sql.PROCESS: cost})


def _rows(laps: Mapping[tuple[str, str], Sequence[Lap]]) -> list[Row]:
    copy, executemany = "bare COPY", "executemany ON CONFLICT"
    rows = [*_case_rows(laps, "new", "copy", copy), *_case_rows(laps, "known95", "executemany", executemany)]
    for name in ("process", "write_batch"):
        ours, theirs = middle_rate(laps["known95", name]), middle_rate(laps["known95", "copy"])
        rows.append(Row(f"writer.known95.{name}_to_copy", ours, "articles/s", f"{copy}, empty table", theirs))
    return rows


def _case_rows(laps: Mapping[tuple[str, str], Sequence[Lap]], case: str, other: str, beside: str) -> list[Row]:
    theirs = laps[case, other]
    rows = []
    for name in ("process", "write_batch"):
        ours = laps[case, name]
        rows.append(Row(f"writer.{case}.{name}", middle_rate(ours), "articles/s", beside, middle_rate(theirs)))
        cpu = [1000 * middle_cpu_ms(side, sql.PROCESS) for side in (ours, theirs)]
        rows.append(Row(f"writer.{case}.{name}_cpu", cpu[0], "CPU-µs/article", beside, cpu[1]))
    cpu = [1000 * middle_cpu_ms(side, "database") for side in (laps[case, "process"], theirs)]
    return [*rows, Row(f"writer.{case}.database_cpu", cpu[0], "CPU-µs/article", beside, cpu[1])]
