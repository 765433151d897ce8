"""Articles per second into the tables: the writer as a process, its transaction alone, and bare SQL beside them.

All store the same articles, in transactions of about 500, in databases of one server. Each round has a set of new
articles, and then one of which 95 % are those that were stored just before. Then the writer gets results with one new
article beside known entries that were not read (`grow`), and results of 304 answers (`same`).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from uuid import UUID, uuid4

import psycopg

from benchmarks.bare import sql
from benchmarks.bare.sql import BareTables, as_articles
from benchmarks.bench import Bench, open_session, read_number, read_topology
from benchmarks.laps import BenchError, Lap, middle_cpu_ms, rate_row, rotated, rounds, spent
from benchmarks.messages import ENTRIES, feed_url, grown_results, new_results, repeat_results, same_results
from benchmarks.processes import Services, run_services
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
    """Return the rows of all cases."""
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
        writer_rounds = WriterRounds(bench, contenders, registries)
        await writer_rounds.run_round("warm-up", 0, WARM_UP)
        writer_rounds.laps.clear()
        for number in rounds(most, seconds):
            await writer_rounds.run_round(f"round-{number}", number, results)
        writer_rounds.check()
    return _rows(writer_rounds.laps)


def _contenders(process: Process, database: Database, tables: BareTables) -> dict[str, dict[str, Contender]]:
    """Return the contenders by case and name."""

    def bare(store: Callable[[Sequence[sql.Article]], Lap]) -> Contender:
        async def run(results: Sequence[FeedFetched]) -> Lap:
            return await asyncio.to_thread(store, as_articles(results, datetime.now(UTC)))

        return run

    ours: dict[str, Contender] = {"process": process.write, "write_batch": partial(write_batches, database)}
    return {
        "new": {"copy": bare(tables.copy), **ours},
        "known95": {"copy": bare(tables.copy_anew), **ours, "executemany": bare(tables.insert)},
        "grow": ours,
        "same": ours,
    }


class WriterRounds:
    """Rounds of all contenders, and their laps by case and contender."""

    def __init__(
        self, bench: Bench, contenders: Mapping[str, Mapping[str, Contender]], registries: Sequence[Registry]
    ) -> None:
        self.laps: defaultdict[tuple[str, str], list[Lap]] = defaultdict(list)
        self._bench = bench
        self._contenders = contenders
        self._registries = registries
        self._new = 0

    async def run_round(self, edition: str, number: int, results: int) -> None:
        """Let each contender store the results of all cases; another one is first each time."""
        new = new_results(results, edition=edition, claim_id=uuid4())
        known = repeat_results(new, edition=edition, claim_id=uuid4())
        grown = grown_results(known, edition=edition, claim_id=uuid4())
        same = same_results(results, claim_id=uuid4())
        for case, work in (("new", new), ("known95", known), ("grow", grown), ("same", same)):
            for registry in self._registries:
                registry.claim(work[0].claim_id)
            for name in rotated(list(self._contenders[case]), number):
                before = self._bench.server_cpu_seconds()
                lap = await self._contenders[case][name](work)
                cpu = {**lap.cpu, **spent(before, self._bench.server_cpu_seconds())}
                self.laps[case, name].append(Lap(lap.count, lap.seconds, cpu))
        self._new += results * (ENTRIES + 2)

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
        """Give all feeds the claim of the next results."""
        self._connection.execute(
            "UPDATE feeds SET claim_id = %s, claim_expires_at = now() + interval '1 hour'", [claim_id]
        )

    def count(self, table: str) -> int:
        """Return how many rows a table has."""
        return read_number(self._connection, f"SELECT count(*) FROM {table}")


class Process:
    """The writer as a process. Its results wait in its queue while it is stopped."""

    def __init__(self, services: Services, session: Session, registry: Registry) -> None:
        self._services = services
        self._session = session
        self._registry = registry

    async def write(self, results: Sequence[FeedFetched]) -> Lap:
        """Queue the results while the writer is stopped, continue it, and wait for the last commit."""
        publications = [Outgoing(fetched, FeedFetched.KIND).to_publication() for fetched in results]
        expected = self._registry.count("feed_fetch_log") + len(results)

        async def done() -> bool:
            return self._registry.count("feed_fetch_log") >= expected

        seconds, cpu = await self._services.work_off(
            self._session, publications, done, what="the writer", seconds=LAP_SECONDS
        )
        return Lap(_count(results), seconds, {sql.PROCESS: cpu["writer"]})


async def write_batches(database: Database, results: Sequence[FeedFetched], expected: int | None = None) -> Lap:
    """Write in transactions of as many articles as the writer takes at once.

    Raises:
        BenchError: not as many articles as `expected` were new.
    """
    size, new = sql.BATCH // ENTRIES, 0
    wall, cpu = time.monotonic(), time.process_time()
    for start in range(0, len(results), size):
        batch, now = results[start : start + size], datetime.now(UTC)
        async with database.transaction() as connection:
            new += (await write_batch(connection, batch, now=now, rules=Rules(), proxy_hosts=frozenset())).new
    seconds, cost = time.monotonic() - wall, time.process_time() - cpu
    if expected not in {None, new}:
        raise BenchError(f"{new} of {expected} articles were written")
    return Lap(_count(results), seconds, {sql.PROCESS: cost})


def _count(results: Sequence[FeedFetched]) -> int:
    """Return the number of entries; a result without any counts as one."""
    return sum(max(len(fetched.entries), 1) for fetched in results)


def _rows(laps: Mapping[tuple[str, str], Sequence[Lap]]) -> list[Row]:
    copy, executemany = "bare COPY", "executemany ON CONFLICT"
    rows = [*_case_rows(laps, "new", "copy", copy), *_case_rows(laps, "known95", "executemany", executemany)]
    for name in ("process", "write_batch"):
        ours, bare = laps["known95", name], laps["known95", "copy"]
        rows.append(rate_row(f"writer.known95.{name}_to_copy", "articles/s", f"{copy}, empty table", ours, bare))
    return [*rows, *(_result_row(laps, case, process) for case in ("grow", "same") for process in _PROCESSES)]


_PROCESSES = {sql.PROCESS: "process_cpu", "database": "database_cpu"}


def _result_row(laps: Mapping[tuple[str, str], Sequence[Lap]], case: str, process: str) -> Row:
    """Return what a result costs that has one entry or none, beside one whose articles are all new."""
    cost = 1000 * middle_cpu_ms(laps[case, "process"], process)
    other = 1000 * ENTRIES * middle_cpu_ms(laps["new", "process"], process)
    return Row(f"writer.{case}.{_PROCESSES[process]}", cost, "CPU-µs/result", f"{ENTRIES} new articles", other)


def _case_rows(laps: Mapping[tuple[str, str], Sequence[Lap]], case: str, other: str, beside: str) -> list[Row]:
    bare = laps[case, other]
    rows = []
    for name in ("process", "write_batch"):
        ours = laps[case, name]
        rows.append(rate_row(f"writer.{case}.{name}", "articles/s", beside, ours, bare))
        rows.append(_cpu_row(f"writer.{case}.{name}_cpu", sql.PROCESS, beside, ours, bare))
    return [*rows, _cpu_row(f"writer.{case}.database_cpu", "database", beside, laps[case, "process"], bare)]


def _cpu_row(name: str, process: str, beside: str, ours: Sequence[Lap], bare: Sequence[Lap]) -> Row:
    cost, other = (1000 * middle_cpu_ms(side, process) for side in (ours, bare))
    return Row(name, cost, "CPU-µs/article", beside, other)
