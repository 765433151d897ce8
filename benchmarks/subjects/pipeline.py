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
from itertools import chain
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

from benchmarks.bare.fetching import BareLoop, Fetch, conditions
from benchmarks.bench import Bench, wait_until
from benchmarks.contest import BARE_LEAST, ITEMS, LATENCIES, Duel, Flock, Size, error_row, fight, open_flocks
from benchmarks.laps import BenchError, Lap, check_errors, spent
from benchmarks.processes import Services, run_services
from benchmarks.rows import Row
from services.admin.registry import NewFeed, add_feed, connect

SERVICES = ("scheduler", "fetcher", "writer")
MEASURED = (*SERVICES, "broker", "database", "farm")
LAP_SECONDS = 120.0

FULL = Size(still_feeds=600, busy_feeds=120, rounds=5, seconds=25.0)
QUICK = Size(still_feeds=150, busy_feeds=20, rounds=2, seconds=3.0)

Connection = psycopg.AsyncConnection[DictRow]


@dataclass(frozen=True)
class Herd:
    """A flock as it stands in the database."""

    flock: Flock
    ids: tuple[int, ...]


async def run(bench: Bench) -> list[Row]:
    """Return the rows of all cases."""
    size = QUICK if bench.quick else FULL
    place = bench.make_place("pipeline")
    duels: list[Duel] = []
    async with contextlib.AsyncExitStack() as stack:
        bare = stack.enter_context(BareLoop(bench.threads))
        flocks = await stack.enter_async_context(open_flocks(size, bare))
        herds = [Herd(flock, register(place.database_url, flock.fetches)) for flock in flocks]
        services = await stack.enter_async_context(run_services(SERVICES, place.environment()))
        connection = await stack.enter_async_context(open_connection(place.database_url))
        course = Course(bench, services, connection, bare)
        for herd in herds:
            await course.run_pipeline(herd, herd.ids[: bench.threads // 4])  # warms up
            duels += [await course.measure(herd, latency, size) for latency in LATENCIES]
    rows = [row for duel in duels for row in (duel.rate_row(), *map(duel.cpu_row, MEASURED))]
    ours, theirs = chain(*(duel.ours for duel in duels)), chain(*(duel.theirs for duel in duels))
    return [*rows, error_row("pipeline", ours, theirs)]


@asynccontextmanager
async def open_connection(database_url: str) -> AsyncIterator[Connection]:
    """Yield a connection to look at the database with."""
    connection = await psycopg.AsyncConnection[DictRow].connect(database_url, autocommit=True, row_factory=dict_row)
    async with connection:
        yield connection


def register(database_url: str, fetches: Sequence[Fetch]) -> tuple[int, ...]:
    """Register the feeds, not due, with the validators that are known; return their ids."""
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


class Course:
    """Runs rounds: the pipeline, and the bare loop over the same URLs."""

    def __init__(self, bench: Bench, services: Services, connection: Connection, bare: BareLoop) -> None:
        self._bench = bench
        self._services = services
        self._connection = connection
        self._bare = bare

    async def measure(self, herd: Herd, latency: float, size: Size) -> Duel:
        """Return the laps of one case."""
        farm, status = herd.flock.farm, herd.flock.status
        await farm.set_latency(latency)
        return await fight(
            f"pipeline.{status}.{1000 * latency:.0f}ms",
            size,
            ours=lambda: self.run_pipeline(herd, herd.ids),
            theirs=lambda: self._run_bare(herd),
        )

    async def run_pipeline(self, herd: Herd, ids: Sequence[int]) -> Lap:
        """Make the feeds due and wait until all are settled. What answers 200 has new articles each time."""
        if herd.flock.status == 200:
            await herd.flock.farm.publish()
        before = await self._read_cpu(herd)
        (due,) = await self._query("SELECT now() AS at")
        await self._query("UPDATE feeds SET next_fetch_at = now() WHERE id = ANY(%s) RETURNING id", [list(ids)])
        await wait_until(self._is_settled, what="a round", seconds=LAP_SECONDS, check=self._services.check)
        end = time.time()
        after = await self._read_cpu(herd)
        claimed_at, errors = await self._check_log(herd, due["at"], len(ids))
        return check_errors(Lap(len(ids), end - claimed_at.timestamp(), spent(before, after), errors))

    async def _run_bare(self, herd: Herd) -> Lap:
        """Send the headers that the pipeline would send: it has the same validators, and another wave is out."""
        if herd.flock.status == 200:
            await herd.flock.farm.publish()
        rows = await self._query("SELECT url, etag, last_modified FROM feeds WHERE id = ANY(%s)", [list(herd.ids)])
        fetches = [Fetch(row["url"], conditions(row["etag"], row["last_modified"])) for row in rows]
        return await self._bare.run(fetches, status=herd.flock.status, least=BARE_LEAST)

    async def _is_settled(self) -> bool:
        (row,) = await self._query(
            "SELECT count(*) AS open FROM feeds WHERE claim_id IS NOT NULL OR next_fetch_at <= now()"
        )
        return bool(row["open"] == 0)

    async def _check_log(self, herd: Herd, since: datetime, feeds: int) -> tuple[datetime, int]:
        """Return when the first of them was claimed, and how many failed.

        Raises:
            BenchError: anything but that went otherwise than it should.
        """
        (found,) = await self._query(
            """
            SELECT count(*) AS feeds, count(*) FILTER (WHERE status = %s) AS good, sum(items_new) AS articles,
                count(*) FILTER (WHERE outcome = 'gave_up') AS errors, min(queued_at) AS claimed_at
            FROM feed_fetch_log WHERE queued_at >= %s
            """,
            [herd.flock.status, since],
        )
        articles = found["good"] * ITEMS if herd.flock.status == 200 else 0
        if found["feeds"] != feeds or found["good"] + found["errors"] != feeds or found["articles"] != articles:
            raise BenchError(f"{feeds} feeds should answer {herd.flock.status}, but the log has {found}")
        return found["claimed_at"], found["errors"]

    async def _read_cpu(self, herd: Herd) -> dict[str, float]:
        return {
            **self._services.cpu_seconds(),
            **self._bench.server_cpu_seconds(),
            "farm": await herd.flock.farm.cpu_seconds(),
        }

    async def _query(self, query: str, parameters: Sequence[Any] = ()) -> list[DictRow]:
        cursor = await self._connection.execute(query.encode(), parameters)
        return await cursor.fetchall()
