"""The needs of an installation (docs/explanation/performance.md): a registered feed, and what waits at the broker.

`pipeline` measures CPU, memory and the other tables.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from uuid import uuid4

from benchmarks.bare.fetching import Fetch
from benchmarks.bench import Bench, open_session, publish_all, read_topology
from benchmarks.cpu import rss_bytes
from benchmarks.messages import ENTRIES, new_results, write_jobs
from benchmarks.rows import Row
from services.admin.registry import connect
from shared.broker.port import Outgoing
from shared.wire.results import FeedFetched

KNOWN = 60
"""Entries that a job says are known."""

FEEDS = """
INSERT INTO feeds (url, politeness_group, etag, last_modified, validators_url, body_hash, next_fetch_at, pace)
SELECT format('https://host%%s.example/feed/%%s.xml', n %% 5000, n), format('host%%s.example', n %% 5000),
    md5(n::text), 'Sat, 21 Nov 2026 12:00:00 GMT', format('https://host%%s.example/feed/%%s.xml', n %% 5000, n),
    md5(n::text) || md5(n::text), now() + interval '1 year', %s
FROM generate_series(1, %s) AS n
"""


async def run(bench: Bench) -> list[Row]:
    """Return the rows; sizes have nothing beside them."""
    return [*_registry(bench), *await _pile_up(bench)]


def _registry(bench: Bench) -> list[Row]:
    """Return the bytes of a registered feed, its publication rate included."""
    number = 10_000 if bench.quick else 50_000
    pace = '{"mean": 1.5, "echo": [' + ", ".join(["0.0417"] * 24) + "]}"
    place = bench.make_place("registry")
    with connect(place.database_url) as connection:
        connection.execute(FEEDS, [pace, number])
        (size,) = connection.execute("SELECT pg_total_relation_size('feeds')::float8 AS bytes").fetchall()
    return [_bytes("feeds", size["bytes"] / number, "a feed")]


async def _pile_up(bench: Bench) -> list[Row]:
    """Return the bytes of waiting jobs and results on the broker's disk and in its memory."""
    jobs, results = (5_000, 100) if bench.quick else (40_000, 1_000)
    node, topology = bench.servers.rabbitmq, read_topology()
    fetches = [Fetch(f"https://host{n % 5000}.example/feed/{n}.xml", {"If-None-Match": f'"{n}"'}) for n in range(jobs)]
    rows = []
    new = new_results(results, edition="pile", claim_id=uuid4())
    for name, publications in (
        ("job", write_jobs(fetches)),
        (f"job_{KNOWN}_known", write_jobs(fetches, KNOWN)),
        ("result", [Outgoing(result, FeedFetched.KIND).to_publication() for result in new]),
    ):
        async with open_session(bench.make_place(f"pile_{name}").amqp_url, topology) as session:
            disk, memory = _bytes_under(node.directory / "cluster"), _rss(bench)
            await publish_all(session, publications)
            disk, memory = _bytes_under(node.directory / "cluster") - disk, _rss(bench) - memory
        body = sum(len(publication.body) for publication in publications)
        what = f"a waiting {name}" + (f" of {ENTRIES} articles" if name == "result" else "")
        rows += [
            _bytes(f"{name}.body", body / len(publications), what),
            _bytes(f"{name}.broker_disk", disk / len(publications), what),
            _bytes(f"{name}.broker_memory", memory / len(publications), what),
        ]
    return rows


def _rss(bench: Bench) -> int:
    """Return the memory of the broker."""
    return sum(map(rss_bytes, bench.servers.rabbitmq.process_ids()))


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
