"""The needs of an installation (docs/explanation/performance.md): bytes on disk, memory, connections.

`pipeline` measures CPU. Here polls that bring nothing (304) and polls that bring 19 new articles go through the real
services, and the rows say how much the tables and the write-ahead log grew. Then jobs and results pile up in queues
that nobody reads.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import psycopg

from benchmarks.bare.fetching import BareLoop, Fetch
from benchmarks.bench import Bench, open_session, publish_all, read_number, read_topology
from benchmarks.cpu import peak_rss_bytes, rss_bytes
from benchmarks.farm import ITEMS, Size, open_feed_sets
from benchmarks.messages import ENTRIES, new_results, write_jobs
from benchmarks.processes import Services, run_services
from benchmarks.rows import Row
from benchmarks.subjects.pipeline import SERVICES, PipelineRounds, RegisteredFeeds, open_connection, register
from local.addresses import Addresses
from services.admin.registry import connect
from shared.broker.port import Outgoing
from shared.wire.results import FeedFetched

TABLES = ("feeds", "pending_articles", "feed_items", "feed_fetch_log")
FEEDS = """
INSERT INTO feeds (url, politeness_group, etag, last_modified, validators_url, body_hash, next_fetch_at, pace)
SELECT format('https://host%%s.example/feed/%%s.xml', n %% 5000, n), format('host%%s.example', n %% 5000),
    md5(n::text), 'Sat, 21 Nov 2026 12:00:00 GMT', format('https://host%%s.example/feed/%%s.xml', n %% 5000, n),
    md5(n::text) || md5(n::text), now() + interval '1 year', %s
FROM generate_series(1, %s) AS n
"""


async def run(bench: Bench) -> list[Row]:
    """Return the rows; sizes have nothing beside them."""
    return [*await _grow(bench), *_registry(bench), *await _pile_up(bench)]


async def _grow(bench: Bench) -> list[Row]:
    """Return the disk space of polls, and the memory of the services."""
    rounds, size = (3, Size(150, 30, 1, 1.0)) if bench.quick else (10, Size(600, 120, 1, 1.0))
    place, rows = bench.make_place("sizing"), []
    async with contextlib.AsyncExitStack() as stack:
        bare = stack.enter_context(BareLoop(bench.threads))
        registered = [
            RegisteredFeeds(feed_set, register(place.database_url, feed_set.fetches))
            for feed_set in await stack.enter_async_context(open_feed_sets(size, bare))
        ]
        services = await stack.enter_async_context(run_services(SERVICES, place.environment()))
        rows += [_memory(f"{name}.idle", rss_bytes(services.pid(name))) for name in SERVICES]
        rows += [_memory("broker.idle", _family_rss(bench.servers.rabbitmq.process_ids()))]
        pipeline = PipelineRounds(
            bench, services, await stack.enter_async_context(open_connection(place.database_url)), bare
        )
        for feeds in registered:
            await pipeline.run_pipeline(feeds, feeds.ids)  # from here on the feeds' state no longer changes
            before = _database_sizes(place)
            for _ in range(rounds):
                await pipeline.run_pipeline(feeds, feeds.ids)
            polls = rounds * len(feeds.ids)
            rows += _growth(feeds.feed_set.status, before, _database_sizes(place), polls)
        rows += [_memory(f"{name}.most", peak_rss_bytes(services.pid(name))) for name in SERVICES]
        rows += [_memory("broker.loaded", _family_rss(bench.servers.rabbitmq.process_ids()))]
        rows += [row for name in SERVICES for row in _connections(bench, services, name)]
    return rows


def _growth(status: int, before: Mapping[str, int], after: Mapping[str, int], polls: int) -> list[Row]:
    grown = {name: after[name] - before[name] for name in before}
    rows = [
        _bytes(f"{status}.wal", grown["wal"] / polls, "a poll"),
        _bytes(f"{status}.log", grown["feed_fetch_log"] / polls, "a poll"),
    ]
    if status == 200:
        articles = polls * ITEMS
        rows += [
            _bytes(f"{status}.{name}", grown[name] / articles, "an article")
            for name in ("pending_articles", "feed_items")
        ]
    return rows


def _database_sizes(place: Addresses) -> dict[str, int]:
    """Return the bytes of each table with its indexes and TOAST, and those of the write-ahead log so far."""
    with psycopg.connect(place.database_url, autocommit=True) as connection:
        sizes = {name: read_number(connection, f"SELECT pg_total_relation_size('{name}')") for name in TABLES}
        return sizes | {"wal": read_number(connection, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")}


def _registry(bench: Bench) -> list[Row]:
    """Return the bytes of a registered feed, its publication rate included."""
    number = 10_000 if bench.quick else 50_000
    pace = '{"mean": 1.5, "echo": [' + ", ".join(["0.0417"] * 24) + "]}"
    place = bench.make_place("registry")
    with connect(place.database_url) as connection:
        connection.execute(FEEDS, [pace, number])
    return [_bytes("feeds", _database_sizes(place)["feeds"] / number, "a feed")]


async def _pile_up(bench: Bench) -> list[Row]:
    """Return the bytes of waiting jobs and results on the broker's disk and in its memory."""
    jobs, results = (5_000, 100) if bench.quick else (40_000, 1_000)
    node, topology = bench.servers.rabbitmq, read_topology()
    fetches = [Fetch(f"https://host{n % 5000}.example/feed/{n}.xml", {"If-None-Match": f'"{n}"'}) for n in range(jobs)]
    rows = []
    new = new_results(results, edition="pile", claim_id=uuid4())
    for name, publications in (
        ("job", write_jobs(fetches)),
        ("result", [Outgoing(result, FeedFetched.KIND).to_publication() for result in new]),
    ):
        async with open_session(bench.make_place(f"pile_{name}").amqp_url, topology) as session:
            disk, memory = _bytes_under(node.directory / "cluster"), _family_rss(node.process_ids())
            await publish_all(session, publications)
            disk, memory = _bytes_under(node.directory / "cluster") - disk, _family_rss(node.process_ids()) - memory
        body = sum(len(publication.body) for publication in publications)
        what = f"a waiting {name}" + (f" of {ENTRIES} articles" if name == "result" else "")
        rows += [
            _bytes(f"{name}.body", body / len(publications), what),
            _bytes(f"{name}.broker_disk", disk / len(publications), what),
            _bytes(f"{name}.broker_memory", memory / len(publications), what),
        ]
    return rows


def _connections(bench: Bench, services: Services, name: str) -> list[Row]:
    """Return the number of connections of a service to each server after its work."""
    ports = {"amqp": bench.servers.rabbitmq.identity.amqp_port, "postgres": bench.servers.postgres.identity.port}
    return [
        Row(f"sizing.{name}.{server}", _count_connections(services.pid(name), port), "connections", "-", 0.0)
        for server, port in ports.items()
    ]


def _count_connections(pid: int, port: int) -> int:
    """Return the TCP connections of a process to a port of this machine."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.add(str(entry.readlink()).removeprefix("socket:[").removesuffix("]"))
    lines = Path(f"/proc/{pid}/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    fields = [line.split() for line in lines]
    return sum(field[9] in inodes and int(field[2].rpartition(":")[2], 16) == port for field in fields)


def _family_rss(pids: Sequence[int]) -> int:
    return sum(map(rss_bytes, pids))


def _bytes_under(directory: Path) -> int:
    """Return the bytes that the files below take on the disk. A file that vanishes meanwhile does not count."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += Path(folder, name).stat().st_blocks * 512
    return total


def _bytes(name: str, value: float, of: str) -> Row:
    return Row(f"sizing.{name}", value, f"bytes/{of.removeprefix('a ').removeprefix('an ')}", "-", 0.0)


def _memory(name: str, value: float) -> Row:
    return Row(f"sizing.{name}", value / 1_000_000, "MB", "-", 0.0)
