"""The reader, beside `feedparser.parse` and `fastfeedparser.parse` with their defaults over the same bytes: CPU time.

All give entries with text, dates and links; ours are validated messages with plain text and hashes, feedparser's are
dictionaries with sanitised HTML, fastfeedparser's are dictionaries with the HTML as it came. The feeds are those of
`benchmarks.feeds`: 19 articles in 57 KB, 88 shorter ones in 90 KB, and these 88 when all but one are known.

`FEEDMILL_BENCH_CORPUS` may name a folder of real feeds. Its files of 3 KB or more that hold a feed with an entry, in
any tier but `json`, are all read in each round.
"""

from __future__ import annotations

import io
import os
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from pathlib import Path

import fastfeedparser
import feedparser

from benchmarks.bench import Bench
from benchmarks.farm import ITEMS, TEXT_LENGTH
from benchmarks.feeds.site import Site
from benchmarks.feeds.styles import STYLES, Style
from benchmarks.laps import BenchError, Lap, middle_cpu_ms, rate_row, run_rounds
from benchmarks.rows import Row
from benchmarks.subjects import pipeline
from local.farm.http import Request
from services.fetcher.parse import ParsedFeed, ParseError, parse_feed

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OURS, BESIDE, FAST = "parse_feed", "feedparser.parse", "fastfeedparser.parse"
CORPUS = "FEEDMILL_BENCH_CORPUS"
CORPUS_MIN_BYTES = 3_000
LAP_SECONDS = 0.1
"""A lap lasts so long. The feed is read again and again meanwhile, and at least once."""

Read = Callable[[], int]


async def run(bench: Bench) -> list[Row]:
    """Return the rows of every style and of the corpus; needs none of the servers."""
    most, seconds = (2, 0.4) if bench.quick else (9, 2.0)
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # feedparser warns of its own use of its own names
        for style in STYLES:
            rows += await _style_rows(style, most, seconds)
        return rows + await _corpus_rows(os.environ.get(CORPUS), most)


async def _style_rows(style: Style, most: int, seconds: float) -> list[Row]:
    """Return the rows of one style. No tier but the strict one reads JSON, and feedparser reads none."""
    usual, long = _body(_site(style, ITEMS, TEXT_LENGTH)), _site(style, pipeline.ENTRIES, pipeline.TEXT_LENGTH)
    digests = _parse(_body(long), style).digests
    long.publish(1)
    grown = _body(long)
    readers: dict[str, Read] = {
        OURS: lambda: len(_parse(usual, style).entries),
        FAST: lambda: len(fastfeedparser.parse(usual).entries),
        "whole": lambda: len(_parse(grown, style).entries),
        "one new": lambda: len(_parse(grown, style, digests).entries),
    }
    if style.name != "json":
        readers["lenient"] = lambda: len(_parse(usual + b"<end/>", style, tier="lenient").entries)
        readers[BESIDE] = lambda: len(feedparser.parse(io.BytesIO(usual)).entries)
    expected = {"whole": pipeline.ENTRIES, "one new": 1}
    contenders = {name: partial(_lap, read, expected.get(name, ITEMS)) for name, read in readers.items()}
    laps = await run_rounds(contenders, most, seconds)

    def cost_row(what: str, name: str, other: str, beside: str) -> Row:
        costs = (middle_cpu_ms(laps[one], "reader") for one in (name, other))
        return Row(f"reader.{style.name}.{what}", next(costs), "CPU-ms/feed", beside, next(costs))

    rows = [cost_row("one_new_of_88", "one new", "whole", "all 88")]
    if BESIDE in laps:
        rows.append(cost_row("lenient", "lenient", BESIDE, BESIDE))
    others = [name for name in (BESIDE, FAST) if name in laps]
    return [*(cost_row(f"beside_{name.partition('.')[0]}", OURS, name, name) for name in others), *rows]


async def _corpus_rows(folder: str | None, most: int) -> list[Row]:
    """Return rows of all real feeds together. Entries are counted as our reader counts them.

    Those that the strict tier declines are among them: they cost the most.
    """
    bodies, entries = _read_corpus(folder)
    if not bodies:
        return []
    readers: dict[str, Callable[[bytes], object]] = {
        OURS: _parse_any,
        BESIDE: lambda body: feedparser.parse(io.BytesIO(body)),
        FAST: fastfeedparser.parse,
    }

    async def read_all(read: Callable[[bytes], object]) -> Lap:
        start = time.process_time()
        for body in bodies:
            with suppress(Exception):  # fastfeedparser gives up on some; its time counts
                read(body)
        return Lap(entries, time.process_time() - start)

    laps = await run_rounds({name: partial(read_all, read) for name, read in readers.items()}, most, inf)
    return [
        rate_row(f"reader.corpus_{len(bodies)}.{what}", "entries/s", name, laps[OURS], laps[name])
        for what, name in (("entries", BESIDE), ("beside_fast", FAST))
    ]


def _read_corpus(folder: str | None) -> tuple[list[bytes], int]:
    bodies, entries = [], 0
    for path in sorted(Path(folder).rglob("*")) if folder else ():
        if path.is_file() and path.stat().st_size >= CORPUS_MIN_BYTES:
            body = path.read_bytes()
            with suppress(ParseError):
                parsed = _parse_any(body)
                if parsed.entries and parsed.tier != "json":
                    bodies.append(body)
                    entries += len(parsed.entries)
    return bodies, entries


async def _lap(read: Read, expected: int) -> Lap:
    start = time.process_time()
    count, spent = 0, 0.0
    while not count or spent < LAP_SECONDS:
        if read() != expected:
            raise BenchError(f"not {expected} entries were read")
        count += 1
        spent = time.process_time() - start
    return Lap(count, spent, {"reader": spent})


def _site(style: Style, entries: int, text_length: int) -> Site:
    opened_at = NOW - timedelta(days=1)
    return Site("site", style, entries=entries, text_length=text_length, edition="reader", opened_at=opened_at)


def _body(site: Site) -> bytes:
    return site.answer(Request("127.0.0.2", 80, "GET", "/", {}, keep_alive=True)).body


def _parse(body: bytes, style: Style, known: bytes = b"", tier: str = "strict") -> ParsedFeed:
    parsed = parse_feed(body, url="https://example.org/feed", content_type=style.content_type, now=NOW, known=known)
    if parsed.tier not in {tier, "json"}:
        raise BenchError(f"the {parsed.tier} tier read what the {tier} tier should have read")
    return parsed


def _parse_any(body: bytes) -> ParsedFeed:
    return parse_feed(body, url="https://example.org/feed", content_type=None, now=NOW)
