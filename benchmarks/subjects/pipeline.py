"""Feeds through the whole pipeline: scheduler, fetcher and writer as processes, with broker and database.

Beside it, over the same feeds and in databases of the same server: the script that people write, and its fast twin.
Every round has new feeds, which go through the `CASES` one after the other. The contenders take turns in each. A case
lasts from the first claim to the last commit. At the end of a round every article must be there, once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from statistics import median
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

from benchmarks.bare.scripts import FastScript, Script, UsualScript
from benchmarks.bench import Bench, wait_until
from benchmarks.farm import run_farm
from benchmarks.laps import BenchError, Lap, rate_row, rotated, rounds, spent
from benchmarks.processes import Services, run_services
from benchmarks.rows import Row
from local.addresses import Addresses
from services.admin.registry import NewFeed, add_feed, connect

SERVICES = ("scheduler", "fetcher", "writer")
PROCESSES = (*SERVICES, "broker", "database")
LAP_SECONDS = 120.0
ENTRIES, TEXT_LENGTH = 88, 150
"""Of each feed. It has about 90 KB, 8 of them on the wire."""

CASES = {
    "cold": "",  # all articles are new
    "same": "",  # 304
    "grow": "publish 1",
    "grow3": "publish 3",
    "volatile": "tick",
}
"""What the farm is told before each case."""

GOALS = {"cold": 1.5, "same": 1.5, "grow": 1.0}
"""Our CPU time at most, in that of the fast script."""

OURS = "ours"
TABLES = ("feed_fetch_log", "feed_items", "feed_listings", "pending_articles")

Connection = psycopg.AsyncConnection[DictRow]
Laps = dict[tuple[str, str], list[Lap]]


async def run(bench: Bench) -> list[Row]:
    """Return the rows of all cases."""
    feeds, most, seconds = (36, 1, 60.0) if bench.quick else (120, 4, 200.0)
    async with contextlib.AsyncExitStack() as stack:
        place = bench.make_place("pipeline")
        services = await stack.enter_async_context(run_services(SERVICES, place.environment()))
        pipeline = Pipeline(bench, services, place, await stack.enter_async_context(open_connection(place)))
        scripts: dict[str, Script] = {
            kind.NAME: stack.enter_context(contextlib.closing(kind(bench.make_place("script").database_url)))
            for kind in (UsualScript, FastScript)
        }
        race = Race(pipeline, scripts)
        await race.run_round("warm-up", 0, 9)
        race.laps.clear()
        for number in rounds(most, seconds):
            await race.run_round(f"round-{number}", number, feeds)
        rows = [row for case in CASES for row in _rows(case, race.laps)]
        return [*rows, *await pipeline.size_rows()]


@asynccontextmanager
async def open_connection(place: Addresses) -> AsyncIterator[Connection]:
    """Yield a connection for queries."""
    connection = await psycopg.AsyncConnection[DictRow].connect(
        place.database_url, autocommit=True, row_factory=dict_row
    )
    async with connection:
        yield connection


class Race:
    """Rounds of all contenders, and their laps by case and contender."""

    def __init__(self, pipeline: Pipeline, scripts: Mapping[str, Script]) -> None:
        self.laps: Laps = {}
        self._pipeline = pipeline
        self._scripts = scripts
        self._expected: list[str] = []

    async def run_round(self, edition: str, number: int, feeds: int) -> None:
        """Let each contender poll the same new feeds in all cases; another one is first each time.

        Raises:
            BenchError: an article is missing, or is there twice.
        """
        async with run_farm(
            feeds=feeds, hosts=feeds, entries=ENTRIES, text_length=TEXT_LENGTH, edition=edition
        ) as farm:
            await asyncio.to_thread(self._pipeline.register, farm.urls)
            for script in self._scripts.values():
                await asyncio.to_thread(script.register, farm.urls)
            for case, command in CASES.items():
                if command:
                    await farm.tell(command)
                for name in rotated([OURS, *self._scripts], number):
                    lap = await (
                        self._pipeline.poll() if name == OURS else self._run_script(self._scripts[name], feeds)
                    )
                    self.laps.setdefault((case, name), []).append(lap)
            self._expected += (await farm.tell("articles"))["articles"]
        check_articles(OURS, await self._pipeline.stored(), self._expected)
        for name, script in self._scripts.items():
            check_articles(name, script.stored(), self._expected)

    async def _run_script(self, script: Script, feeds: int) -> Lap:
        before, start = await self._pipeline.read_cost(), time.monotonic()
        mine = time.process_time()
        await asyncio.to_thread(script.poll)
        mine = time.process_time() - mine
        seconds, cost = time.monotonic() - start, spent(before, await self._pipeline.read_cost())
        return Lap(feeds, seconds, {"script": mine, "database": cost["database"]}, wal_bytes=int(cost["wal"]))


def check_articles(name: str, stored: Sequence[str], expected: Sequence[str]) -> None:
    """Raise BenchError unless the contender has stored each expected article once, and nothing else."""
    wrong = Counter(stored)
    wrong.subtract(expected)
    if any(wrong.values()):
        lost, more = -sum(n for n in wrong.values() if n < 0), sum(n for n in wrong.values() if n > 0)
        raise BenchError(f"{name}: {lost} of {len(expected)} articles are missing, {more} too many")


class Pipeline:
    """Our services, and the feeds that are registered."""

    def __init__(self, bench: Bench, services: Services, place: Addresses, connection: Connection) -> None:
        self._bench = bench
        self._services = services
        self._place = place
        self._connection = connection
        self._ids: list[int] = []

    def register(self, urls: Sequence[str]) -> None:
        """Register new feeds, due in a year. From now on these are polled."""
        with connect(self._place.database_url) as connection:
            self._ids = [add_feed(connection, NewFeed(url))[0] for url in urls]
            # A probe would be answered 200.
            connection.execute(
                "UPDATE feeds SET next_fetch_at = now() + interval '1 year', probed_at = now() WHERE id = ANY(%s)",
                [self._ids],
            )

    async def poll(self) -> Lap:
        """Make the feeds due and wait until all are done."""
        before = await self.read_cost()
        (due,) = await self._query("SELECT now() AS at")
        await self._query("UPDATE feeds SET next_fetch_at = now() WHERE id = ANY(%s) RETURNING id", [self._ids])
        await wait_until(self._is_done, what="a round", seconds=LAP_SECONDS, check=self._services.check)
        end = time.time()
        cost = spent(before, await self.read_cost())
        (log,) = await self._query(
            """
            SELECT count(*) AS polls, count(*) FILTER (WHERE status IN (200, 304)) AS good, min(queued_at) AS claimed_at
            FROM feed_fetch_log WHERE queued_at >= %s
            """,
            [due["at"]],
        )
        if not log["polls"] == log["good"] == len(self._ids):
            raise BenchError(f"{len(self._ids)} feeds should have been polled once each, but the log has {log}")
        seconds = end - log["claimed_at"].timestamp()
        cpu = {name: seconds for name, seconds in cost.items() if name != "wal"}
        return Lap(len(self._ids), seconds, cpu, wal_bytes=int(cost["wal"]))

    async def read_cost(self) -> dict[str, float]:
        """Return the CPU seconds of each process so far, and `wal`: the bytes of the write-ahead log."""
        (row,) = await self._query("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn AS bytes")
        return {**self._services.cpu_seconds(), **self._bench.server_cpu_seconds(), "wal": float(row["bytes"])}

    async def stored(self) -> list[str]:
        """Return the links of all articles. One that the log counts twice is there twice: the primary key hides it."""
        urls = [row["url"] for row in await self._query("SELECT url FROM pending_articles")]
        (row,) = await self._query("SELECT sum(items_new)::int AS new FROM feed_fetch_log")
        return urls + ["counted twice"] * (row["new"] - len(urls))

    async def size_rows(self) -> list[Row]:
        """Return the bytes of a row of each table, with indexes, and the most memory that each service took."""
        rows = [
            Row(f"pipeline.memory.{name}", self._services.peak_rss_bytes(name) / 1e6, "MB", "-", 0.0)
            for name in SERVICES
        ]
        for table in TABLES:
            query = f"SELECT pg_total_relation_size('{table}')::float8 / count(*) AS bytes FROM {table}"
            (found,) = await self._query(query)
            rows.append(Row(f"pipeline.size.{table}", found["bytes"], "bytes/row", "-", 0.0))
        return rows

    async def _is_done(self) -> bool:
        (row,) = await self._query(
            "SELECT count(*) AS open FROM feeds WHERE claim_id IS NOT NULL OR next_fetch_at <= now()"
        )
        return bool(row["open"] == 0)

    async def _query(self, query: str, parameters: Sequence[Any] = ()) -> list[DictRow]:
        cursor = await self._connection.execute(query.encode(), parameters)
        return await cursor.fetchall()


def _rows(case: str, laps: Laps) -> list[Row]:
    """Return feeds per second, CPU time and write-ahead log beside both scripts, and each process's part of the CPU."""
    ours, fast, usual = (laps[case, name] for name in (OURS, FastScript.NAME, UsualScript.NAME))
    whole = _cpu_ms(ours)
    return [
        rate_row(f"pipeline.{case}.feeds", "feeds/s", FastScript.NAME, ours, fast),
        Row(f"pipeline.{case}.cpu", whole, "CPU-ms/feed", FastScript.NAME, _cpu_ms(fast), GOALS.get(case)),
        Row(f"pipeline.{case}.cpu_to_usual", whole, "CPU-ms/feed", UsualScript.NAME, _cpu_ms(usual)),
        *(Row(f"pipeline.{case}.{name}", _cpu_ms(ours, name), "CPU-ms/feed", "all", whole) for name in PROCESSES),
        Row(f"pipeline.{case}.wal", _wal(ours), "bytes/feed", FastScript.NAME, _wal(fast)),
    ]


def _cpu_ms(laps: Sequence[Lap], *names: str) -> float:
    """Return the CPU time of these processes, or of all, in milliseconds per feed."""
    return median(sum(lap.cpu_ms(name) for name in names or lap.cpu) for lap in laps)


def _wal(laps: Sequence[Lap]) -> float:
    return median(lap.wal_bytes / lap.count for lap in laps)
