"""Feeds per second through the whole pipeline: scheduler, fetcher and writer as processes, broker and database.

A round makes every feed of a farm due and lasts from the first claim to the last commit. 304s come from a farm whose
feeds we have already, 200s from one that replaces all its articles before each round.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

from benchmarks.bare import PROCESS, BareLoop, Fetch, conditions
from benchmarks.bench import Bench
from benchmarks.laps import BenchError, Lap, check_errors, middle_cpu_ms, middle_rate, rounds, spent
from benchmarks.processes import FarmProcess, Services, run_farm, run_services
from benchmarks.rows import Row
from benchmarks.wire import wait_until
from services.cli.registry import NewFeed, add_feed, connect

SERVICES = ("scheduler", "fetcher", "writer")
MEASURED = (*SERVICES, "broker", "database", "farm")
LATENCIES = (0.0, 0.1)
ITEMS = 19
BODY_BYTES = 57_000
LAP_SECONDS = 120.0
BARE_LEAST = 400
"""Fetches of the bare loop in one lap, at least: fewer are over before the clock can tell."""

Connection = psycopg.AsyncConnection[DictRow]


@dataclass(frozen=True)
class Size:
    """How much of it. Each of the four cases may take `seconds`."""

    still_feeds: int
    busy_feeds: int
    rounds: int
    seconds: float


FULL = Size(still_feeds=600, busy_feeds=120, rounds=5, seconds=25.0)
QUICK = Size(still_feeds=180, busy_feeds=24, rounds=2, seconds=4.0)


@dataclass(frozen=True)
class Herd:
    """The feeds of one farm, as they stand in the database."""

    farm: FarmProcess
    ids: tuple[int, ...]
    status: int
    """What every one of them answers."""


async def run(bench: Bench) -> list[Row]:
    """Return the rows of all cases."""
    size = QUICK if bench.quick else FULL
    place = bench.make_place("pipeline")
    rows: list[Row] = []
    async with contextlib.AsyncExitStack() as stack:
        bare = stack.enter_context(BareLoop(bench.threads))
        still = await stack.enter_async_context(
            run_farm(feeds=size.still_feeds, items=5, body_bytes=4_000, edition="still")
        )
        busy = await stack.enter_async_context(
            run_farm(feeds=size.busy_feeds, items=ITEMS, body_bytes=BODY_BYTES, edition="busy")
        )
        herds = [
            Herd(
                still,
                _register(place.database_url, still, await asyncio.to_thread(bare.ask_validators, still.urls)),
                304,
            ),
            Herd(busy, _register(place.database_url, busy, [Fetch(url) for url in busy.urls]), 200),
        ]
        services = await stack.enter_async_context(run_services(SERVICES, place.environment()))
        connection = await stack.enter_async_context(_connect(place.database_url))
        course = Course(bench, services, connection, bare)
        for herd in herds:
            await course.warm_up(herd)
            for latency in LATENCIES:
                rows += await course.measure(herd, latency, size)
    return rows


@asynccontextmanager
async def _connect(database_url: str) -> AsyncIterator[Connection]:
    connection = await psycopg.AsyncConnection[DictRow].connect(database_url, autocommit=True, row_factory=dict_row)
    async with connection:
        yield connection


def _register(database_url: str, farm: FarmProcess, known: Sequence[Fetch]) -> tuple[int, ...]:
    """Register the farm's feeds, not due, with the validators that are known; return their ids."""
    with connect(database_url) as connection:
        ids = []
        for fetch in known:
            id_, _ = add_feed(connection, NewFeed(fetch.url))
            validators = [fetch.headers.get("If-None-Match"), fetch.headers.get("If-Modified-Since")]
            connection.execute(
                """
                UPDATE feeds SET next_fetch_at = now() + interval '1 year', etag = %s, last_modified = %s,
                    validators_url = url
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

    async def warm_up(self, herd: Herd) -> None:
        """Run some of the feeds through everything, unmeasured."""
        await self._run_pipeline(herd, herd.ids[: self._bench.threads // 2])

    async def measure(self, herd: Herd, latency: float, size: Size) -> list[Row]:
        """Return the rows of one case, from rounds that alternate in who goes first."""
        await herd.farm.set_latency(latency)
        ours: list[Lap] = []
        theirs: list[Lap] = []
        for number in rounds(size.rounds, size.seconds):
            fetches = await self._conditional_fetches(herd)
            if herd.status == 200:
                await herd.farm.publish()
            for turn in (0, 1):
                if (number + turn) % 2:
                    ours.append(await self._run_pipeline(herd, herd.ids))
                else:
                    theirs.append(
                        await asyncio.to_thread(self._bare.run, fetches, status=herd.status, least=BARE_LEAST)
                    )
        return _rows(f"pipeline.{herd.status}.{1000 * latency:.0f}ms", ours, theirs)

    async def _conditional_fetches(self, herd: Herd) -> list[Fetch]:
        """Return what the pipeline will send, too: it knows the same validators."""
        rows = await self._query(
            "SELECT url, etag, last_modified FROM feeds WHERE id = ANY(%s) ORDER BY id", [list(herd.ids)]
        )
        return [Fetch(row["url"], conditions(row["etag"], row["last_modified"])) for row in rows]

    async def _run_pipeline(self, herd: Herd, ids: Sequence[int]) -> Lap:
        before = await self._read_cpu(herd)
        (row,) = await self._query("SELECT now() AS due_at")
        await self._query("UPDATE feeds SET next_fetch_at = now() WHERE id = ANY(%s) RETURNING id", [list(ids)])
        await wait_until(self._is_settled, what="a round", seconds=LAP_SECONDS, check=self._services.check)
        end = time.time()
        after = await self._read_cpu(herd)
        claimed_at, errors = await self._check_log(herd, row["due_at"], len(ids))
        return check_errors(Lap(len(ids), end - claimed_at.timestamp(), spent(before, after), errors))

    async def _is_settled(self) -> bool:
        (row,) = await self._query(
            "SELECT count(*) AS open FROM feeds WHERE claim_id IS NOT NULL OR next_fetch_at <= now()"
        )
        return bool(row["open"] == 0)

    async def _check_log(self, herd: Herd, since: datetime, feeds: int) -> tuple[datetime, int]:
        """Return when the round's first feed was claimed and how many failed. Raises BenchError if it went otherwise."""
        (found,) = await self._query(
            """
            SELECT count(*) AS feeds, count(*) FILTER (WHERE status = %s) AS good, sum(items_new) AS articles,
                count(*) FILTER (WHERE outcome = 'gave_up') AS errors, min(queued_at) AS claimed_at
            FROM feed_fetch_log WHERE queued_at >= %s
            """,
            [herd.status, since],
        )
        articles = found["good"] * ITEMS if herd.status == 200 else 0
        if found["feeds"] != feeds or found["good"] + found["errors"] != feeds or found["articles"] != articles:
            raise BenchError(f"of {feeds} feeds with status {herd.status} and {articles} articles the log has {found}")
        return found["claimed_at"], found["errors"]

    async def _read_cpu(self, herd: Herd) -> dict[str, float]:
        return {
            **self._services.cpu_seconds(),
            **self._bench.server_cpu_seconds(),
            "farm": await herd.farm.cpu_seconds(),
        }

    async def _query(self, query: str, parameters: Sequence[Any] = ()) -> list[DictRow]:
        cursor = await self._connection.execute(query.encode(), parameters)
        return await cursor.fetchall()


def _rows(case: str, ours: Sequence[Lap], theirs: Sequence[Lap]) -> list[Row]:
    bare_ms = middle_cpu_ms(theirs, PROCESS)
    return [
        Row(f"{case}.feeds", middle_rate(ours), "feeds/s", "bare httpx loop", middle_rate(theirs)),
        *(
            Row(f"{case}.{name}_cpu", middle_cpu_ms(ours, name), "CPU-ms/feed", "bare httpx loop", bare_ms)
            for name in MEASURED
        ),
    ]
