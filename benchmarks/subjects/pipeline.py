"""Feeds per second through the whole pipeline: scheduler, fetcher and writer as processes, broker and database.

A round makes every feed of a farm due and lasts from the first claim to the last commit. 304s come from a farm whose
feeds we have already, 200s from one that replaces all its articles before each round.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

from benchmarks.bare import fetching
from benchmarks.bare.fetching import BESIDE, BareLoop, Fetch, conditions
from benchmarks.bench import Bench, wait_until
from benchmarks.farm import ITEMS, FeedSet, Size, open_feed_sets
from benchmarks.laps import BenchError, Lap, check_errors, error_row, middle_cpu_ms, rate_row, run_rounds, spent
from benchmarks.processes import Services, run_services
from benchmarks.rows import Row
from services.admin.registry import NewFeed, add_feed, connect

SERVICES = ("scheduler", "fetcher", "writer")
MEASURED = (*SERVICES, "broker", "database", "farm")
LAP_SECONDS = 120.0
LATENCIES = (0.0, 0.1)
"""The farm's delays of each answer, in seconds."""

FULL = Size(still_feeds=600, busy_feeds=120, rounds=5, seconds=25.0)
QUICK = Size(still_feeds=150, busy_feeds=20, rounds=2, seconds=3.0)

Connection = psycopg.AsyncConnection[DictRow]


@dataclass(frozen=True)
class RegisteredFeeds:
    """The feeds of a farm, and their ids in the database."""

    feed_set: FeedSet
    ids: tuple[int, ...]


async def run(bench: Bench) -> list[Row]:
    """Return the rows of all cases."""
    size = QUICK if bench.quick else FULL
    place = bench.make_place("pipeline")
    rows: list[Row] = []
    ours: list[Lap] = []
    theirs: list[Lap] = []
    async with contextlib.AsyncExitStack() as stack:
        bare = stack.enter_context(BareLoop(bench.threads))
        feed_sets = await stack.enter_async_context(open_feed_sets(size, bare))
        registered = [RegisteredFeeds(one, register(place.database_url, one.fetches)) for one in feed_sets]
        services = await stack.enter_async_context(run_services(SERVICES, place.environment()))
        connection = await stack.enter_async_context(open_connection(place.database_url))
        rounds = PipelineRounds(bench, services, connection, bare)
        for feeds in registered:
            await rounds.run_pipeline(feeds, feeds.ids[: bench.threads // 4])  # warms up
            for latency in LATENCIES:
                laps = await rounds.measure(feeds, latency, size)
                rows += _rows(f"pipeline.{feeds.feed_set.status}.{1000 * latency:.0f}ms", laps["ours"], laps["bare"])
                ours += laps["ours"]
                theirs += laps["bare"]
    return [*rows, error_row("pipeline", BESIDE, ours, theirs)]


def _rows(case: str, ours: Sequence[Lap], bare: Sequence[Lap]) -> list[Row]:
    """Return feeds per second, and the CPU time of each process per feed beside that of a bare fetch."""
    other = middle_cpu_ms(bare, fetching.PROCESS)
    costs = [Row(f"{case}.{name}_cpu", middle_cpu_ms(ours, name), "CPU-ms/feed", BESIDE, other) for name in MEASURED]
    return [rate_row(f"{case}.feeds", "feeds/s", BESIDE, ours, bare), *costs]


@asynccontextmanager
async def open_connection(database_url: str) -> AsyncIterator[Connection]:
    """Yield a connection for queries."""
    connection = await psycopg.AsyncConnection[DictRow].connect(database_url, autocommit=True, row_factory=dict_row)
    async with connection:
        yield connection


def register(database_url: str, fetches: Sequence[Fetch]) -> tuple[int, ...]:
    """Register the feeds with their validators, due in a year; return their ids."""
    with connect(database_url) as connection:
        ids = []
        for fetch in fetches:
            id_, _ = add_feed(connection, NewFeed(fetch.url))
            validators = [fetch.headers.get("If-None-Match"), fetch.headers.get("If-Modified-Since")]
            connection.execute(
                """
                UPDATE feeds SET next_fetch_at = now() + interval '1 year', etag = %s, last_modified = %s,
                    validators_url = url, probed_at = now() -- a probe would be answered 200
                WHERE id = %s
                """,
                [*validators, id_],
            )
            ids.append(id_)
    return tuple(ids)


class PipelineRounds:
    """Rounds of the pipeline, and of the bare loop over the same URLs."""

    def __init__(self, bench: Bench, services: Services, connection: Connection, bare: BareLoop) -> None:
        self._bench = bench
        self._services = services
        self._connection = connection
        self._bare = bare

    async def measure(self, feeds: RegisteredFeeds, latency: float, size: Size) -> dict[str, list[Lap]]:
        """Return the laps of the pipeline (`ours`) and of the bare loop (`bare`) in one case."""
        await feeds.feed_set.farm.set_latency(latency)
        contenders = {
            "ours": lambda: self.run_pipeline(feeds, feeds.ids),
            "bare": lambda: self._run_bare(feeds),
        }
        return await run_rounds(contenders, size.rounds, size.seconds)

    async def run_pipeline(self, feeds: RegisteredFeeds, ids: Sequence[int]) -> Lap:
        """Make the feeds due and wait until all are done. Feeds that answer 200 have new articles each time."""
        if feeds.feed_set.status == 200:
            await feeds.feed_set.farm.publish()
        before = await self._read_cpu(feeds)
        (due,) = await self._query("SELECT now() AS at")
        await self._query("UPDATE feeds SET next_fetch_at = now() WHERE id = ANY(%s) RETURNING id", [list(ids)])
        await wait_until(self._is_done, what="a round", seconds=LAP_SECONDS, check=self._services.check)
        end = time.time()
        after = await self._read_cpu(feeds)
        claimed_at, errors = await self._check_log(feeds, due["at"], len(ids))
        return check_errors(Lap(len(ids), end - claimed_at.timestamp(), spent(before, after), errors))

    async def _run_bare(self, feeds: RegisteredFeeds) -> Lap:
        """Fetch with the validators that the pipeline would send. Feeds that answer 200 have new articles."""
        if feeds.feed_set.status == 200:
            await feeds.feed_set.farm.publish()
        rows = await self._query("SELECT url, etag, last_modified FROM feeds WHERE id = ANY(%s)", [list(feeds.ids)])
        fetches = [Fetch(row["url"], conditions(row["etag"], row["last_modified"])) for row in rows]
        return await self._bare.run(fetches, feeds.feed_set.status)

    async def _is_done(self) -> bool:
        (row,) = await self._query(
            "SELECT count(*) AS open FROM feeds WHERE claim_id IS NOT NULL OR next_fetch_at <= now()"
        )
        return bool(row["open"] == 0)

    async def _check_log(self, feeds: RegisteredFeeds, since: datetime, expected: int) -> tuple[datetime, int]:
        """Return the time of the first claim, and the number of failed fetches.

        Raises:
            BenchError: the log has other outcomes or other numbers than expected.
        """
        (found,) = await self._query(
            """
            SELECT count(*) AS feeds, count(*) FILTER (WHERE status = %s) AS good, sum(items_new) AS articles,
                count(*) FILTER (WHERE outcome = 'gave_up') AS errors, min(queued_at) AS claimed_at
            FROM feed_fetch_log WHERE queued_at >= %s
            """,
            [feeds.feed_set.status, since],
        )
        articles = found["good"] * ITEMS if feeds.feed_set.status == 200 else 0
        counts = (found["feeds"], found["good"] + found["errors"], found["articles"])
        if counts != (expected, expected, articles):
            raise BenchError(f"{expected} feeds should answer {feeds.feed_set.status}, but the log has {found}")
        return found["claimed_at"], found["errors"]

    async def _read_cpu(self, feeds: RegisteredFeeds) -> dict[str, float]:
        return {
            **self._services.cpu_seconds(),
            **self._bench.server_cpu_seconds(),
            "farm": await feeds.feed_set.farm.cpu_seconds(),
        }

    async def _query(self, query: str, parameters: Sequence[Any] = ()) -> list[DictRow]:
        cursor = await self._connection.execute(query.encode(), parameters)
        return await cursor.fetchall()
