"""The memory of a fetcher while every thread reads a feed of 10 MB, or a feed made to fill the memory."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from benchmarks.bare.fetching import Fetch
from benchmarks.bench import Bench, open_session, publish_all, read_topology
from benchmarks.laps import BenchError
from benchmarks.messages import take_outcomes, write_jobs
from benchmarks.processes import run_services
from benchmarks.rows import Row
from benchmarks.subjects.fetcher import fetcher_settings
from local.farm.articles import write_article
from local.farm.documents import render
from local.farm.specs import FeedFormat
from shared.wire.outcomes import Outcome

FETCHES = 200
HOSTS = 20
BODY_BYTES = 10_000_000
"""The decoded size of each feed, which holds `ENTRIES` articles of about 3 KB."""

ENTRIES = 3000
START = datetime(2026, 11, 21, tzinfo=UTC)
BUDGET_BYTES = 1024**3
NAME = "fetcher-memory"

_PIECE_BYTES = 30_000
_PAUSE_SECONDS = 0.02


async def run(bench: Bench) -> list[Row]:
    """Return the rows: the peak memory of a fetcher with 200 such feeds under way at once."""
    bodies = {"large_feeds": [write_body()], "hostile": [gzip.compress(body) for body in write_hostile_bodies()]}
    return [row for name, some in bodies.items() for row in await _run(bench, name, some)]


async def _run(bench: Bench, name: str, bodies: list[bytes]) -> list[Row]:
    results, seconds = (12, 25.0) if bench.quick else (FETCHES, 90.0)
    place, topology = bench.make_place(f"memory-{name}"), read_topology()
    environment = place.environment() | fetcher_settings(FETCHES)
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(run_server(bodies))
        session = await stack.enter_async_context(open_session(place.amqp_url, topology))
        services = await stack.enter_async_context(run_services([NAME], environment))
        idle = services.peak_rss_bytes(NAME)
        await publish_all(session, write_jobs(map(Fetch, server.urls)))
        end, peak, done = time.monotonic() + seconds, 0, 0
        while done < results and time.monotonic() < end:
            await asyncio.sleep(0.2)
            peak = services.peak_rss_bytes(NAME)
            done = await session.count_ready(topology.writer.queue) or 0
        services.kill(NAME)  # it would finish its fetches first
        outcomes = await take_outcomes(session, topology.writer.queue, done, seconds=60.0)
    read = outcomes[Outcome.FETCHED.value]
    if server.most_at_once < FETCHES or not done:
        raise BenchError(f"{server.most_at_once} of {FETCHES} large feeds were under way at once: {dict(outcomes)}")
    megabyte = 1e6
    return [
        Row(f"memory.{name}.peak", peak / megabyte, "MB", "1 GiB", BUDGET_BYTES / megabyte, goal=1.0),
        Row(f"memory.{name}.above_idle", (peak - idle) / megabyte, "MB", "idle fetcher", idle / megabyte),
        Row(f"memory.{name}.read", read, "feeds", "feeds under way", FETCHES),
        Row(f"memory.{name}.turned_away", done - read, "feeds", "feeds under way", FETCHES),
    ]


class LargeServer:
    """Answers each request slowly with one of some gzipped feeds. No request gets a whole feed before all have come."""

    def __init__(self, bodies: list[bytes]) -> None:
        self.most_at_once = 0
        self.urls: list[str] = []
        self._bodies = itertools.cycle(bodies)
        self._open = 0
        self._all_came = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            self._open += 1
            body = next(self._bodies)
            self.most_at_once = max(self.most_at_once, self._open)
            if self._open == FETCHES:
                self._all_came.set()
            head = f"Content-Type: application/rss+xml\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}"
            writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\nConnection: close\r\n\r\n".encode())
            held_back = min(_PIECE_BYTES, len(body) // 2)
            writer.write(body[:held_back])
            await self._all_came.wait()
            for start in range(held_back, len(body), _PIECE_BYTES):
                writer.write(body[start : start + _PIECE_BYTES])
                await writer.drain()
                await asyncio.sleep(_PAUSE_SECONDS)
        self._open -= 1
        writer.close()


@asynccontextmanager
async def run_server(bodies: list[bytes]) -> AsyncIterator[LargeServer]:
    """Run the server on some addresses for the length of the block."""
    server = LargeServer(bodies)
    async with contextlib.AsyncExitStack() as stack:
        for number in range(HOSTS):
            host = f"127.0.0.{number + 2}"
            listening = await asyncio.start_server(server.serve, host, 0, backlog=FETCHES)
            stack.push_async_callback(listening.wait_closed)
            stack.callback(listening.close)
            port = listening.sockets[0].getsockname()[1]
            server.urls += [f"http://{host}:{port}/{feed}.xml" for feed in range(FETCHES // HOSTS)]
        yield server


def write_body() -> bytes:
    """Return a large feed, gzipped."""
    length = BODY_BYTES // ENTRIES - 700  # what surrounds an article's text
    articles = [
        write_article("large", number, published_at=START, text_length=length, edition="2026")
        for number in range(ENTRIES)
    ]
    document = render(FeedFormat.RSS, "large", articles, START).encode()
    return gzip.compress(document, compresslevel=6)


def write_hostile_bodies() -> list[bytes]:
    """Return bodies of 0.5 and 10 MB in which a few bytes become an object each. Some take all of the parse time."""
    rss, json = "<rss version='2.0'><channel><title>c</title>%s</channel></rss>", '{"title":"t","items":[%s{}]}'
    texts = []
    for size in (500_000, BODY_BYTES):
        texts += [rss % (unit * (size // len(unit))) for unit in ("<item/>", "<item><title>t</title></item>")]
        texts += [rss % ("<item><title>t</title>" + unit * (size // len(unit))) for unit in ("<link href='/'/>", "<p>")]
        texts += [json % (unit * (size // len(unit))) for unit in ("{},", '{"":0},', '{"id":1},')]
        texts.append(json % ('{"id":1,"tags":[' + '"ab",' * (size // 5) + '""]},'))
    return [text.encode() for text in texts]
