"""The reader, beside `feedparser.parse` and `fastfeedparser.parse` with their defaults over the same bytes: CPU time.

Both give entries with text, dates and links; ours are validated messages with plain text and hashes, feedparser's are
dictionaries with sanitised HTML, fastfeedparser's are dictionaries with the HTML as it came. One more row is
wall-clock: two threads read all cases, beside one thread that does the same work.

`FEEDMILL_BENCH_CORPUS` may name a folder of real feeds. Its files of 3 KB or more that hold a feed with an entry, in
any tier but `json`, are all read in each round.
"""

from __future__ import annotations

import io
import os
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from html import escape
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

import feedparser

from benchmarks.bench import Bench
from benchmarks.laps import BenchError, Contender, Lap, middle_cpu_ms, rate_row, run_rounds
from benchmarks.rows import Row
from local.farm.articles import write_article
from local.farm.documents import render
from local.farm.specs import FeedFormat
from services.fetcher.parse import ParseError, parse_feed

fastfeedparser: Any = None
with suppress(ImportError):  # only in the development environment; without it its rows are left out
    fastfeedparser = import_module("fastfeedparser")

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OURS = "parse_feed"
BESIDE = "feedparser.parse"
FAST = "fastfeedparser.parse"
CORPUS = "FEEDMILL_BENCH_CORPUS"
CORPUS_MIN_BYTES = 3_000
LAP_SECONDS = 0.1
"""A lap lasts so long. The feed is read again and again meanwhile, and at least once."""

_PARAGRAPH = (
    '<p class="lead">It was a <em>quiet</em> day in the caf&eacute;: <a href="https://example.org/a?x=1&amp;y=2" '
    'rel="nofollow">six people</a>, two dogs and a parrot &mdash; nobody spoke of it later, though everyone had seen '
    'what the parrot did.</p>\n<img src="https://example.org/i/{0}.jpg" alt="A parrot" width="640" height="480"/>'
    "<ul><li>First, the <strong>cake</strong></li><li>then the window</li></ul>\n"
)


@dataclass(frozen=True)
class Case:
    """A feed: its kind, its bytes, and the number of its entries."""

    name: str
    body: bytes
    entries: int


async def run(bench: Bench) -> list[Row]:
    """Return the rows of every case; needs none of the servers."""
    most, seconds = (3, 4.0 / len(_cases())) if bench.quick else (9, 20.0 / len(_cases()))
    rows: list[Row] = []
    for case in _cases():
        contenders = {
            "strict": partial(_read, case.body, "strict"),
            "lenient": partial(_read, case.body + b"<end/>", "lenient"),
            BESIDE: partial(_read_plainly, case.body),
        }
        if fastfeedparser is not None:
            contenders[FAST] = partial(_read_fast, case.body)
        laps = await _run_quietly({name: partial(_lap, case, read) for name, read in contenders.items()}, most, seconds)
        rows += _rows(case, laps)
    rows += await _corpus_rows(_corpus(os.environ.get(CORPUS)), most)
    rows.append(await _two_threads(_cases(), bench))
    return rows


async def _run_quietly(contenders: Mapping[str, Contender], most: int, seconds: float) -> dict[str, list[Lap]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # feedparser warns of its own use of its own names
        return await run_rounds(contenders, most, seconds)


def _corpus(folder: str | None) -> list[Case]:
    """Return the real feeds. Those that the strict tier declines are among them: they cost the most."""
    found = []
    for path in sorted(Path(folder).rglob("*")) if folder else ():
        if path.is_file() and path.stat().st_size >= CORPUS_MIN_BYTES:
            body = path.read_bytes()
            with suppress(ParseError):
                parsed = parse_feed(body, url="https://example.org/feed", content_type=None, now=NOW)
                if parsed.entries and parsed.tier != "json":
                    found.append(Case(path.name, body, len(parsed.entries)))
    return found


async def _corpus_rows(cases: list[Case], most: int) -> list[Row]:
    """Return rows of all these feeds together. Entries are counted as our reader counts them."""
    if not cases:
        return []
    readers: dict[str, Callable[[bytes], object]] = {
        OURS: partial(parse_feed, url="https://example.org/feed", content_type=None, now=NOW),
        BESIDE: _read_plainly,
    }
    if fastfeedparser is not None:
        readers[FAST] = _read_fast

    async def read_all(read: Callable[[bytes], object]) -> Lap:
        start = time.process_time()
        for case in cases:
            with suppress(Exception):  # fastfeedparser gives up on some; its time counts
                read(case.body)
        return Lap(sum(case.entries for case in cases), time.process_time() - start)

    laps = await _run_quietly({name: partial(read_all, read) for name, read in readers.items()}, most, inf)
    return [
        rate_row(f"reader.corpus_{len(cases)}.{what}", "entries/s", name, laps[OURS], laps[name])
        for what, name in (("entries", BESIDE), ("beside_fast", FAST))
        if name in laps
    ]


async def _two_threads(cases: list[Case], bench: Bench) -> Row:
    """Return how many entries a second two threads of one process read. One interpreter lets one of them run."""
    times = 4 if bench.quick else 20

    async def read_in(threads: int) -> Lap:
        start = time.monotonic()
        with ThreadPoolExecutor(threads) as pool:
            count = sum(pool.map(lambda case: _read(case.body, "strict"), cases * times))
        return Lap(count, time.monotonic() - start)

    laps = await run_rounds({"one": partial(read_in, 1), "two": partial(read_in, 2)}, 3, inf)
    return rate_row("reader.two_threads", "entries/s", "one thread", laps["two"], laps["one"])


def _rows(case: Case, laps: dict[str, list[Lap]]) -> list[Row]:
    size = f"{case.name}_{case.entries}x{len(case.body) // case.entries // 100 / 10}kb"
    other = laps[BESIDE]
    rows = [rate_row(f"reader.{size}.entries", "entries/s", BESIDE, laps["strict"], other)]
    for tier in ("strict", "lenient"):
        cost = middle_cpu_ms(laps[tier], "reader") * case.entries
        beside = middle_cpu_ms(other, "reader") * case.entries
        rows.append(Row(f"reader.{size}.{tier}", cost, "CPU-ms/feed", BESIDE, beside))
    if FAST in laps:
        rows.append(rate_row(f"reader.{size}.beside_fast", "entries/s", FAST, laps["strict"], laps[FAST]))
    return rows


async def _lap(case: Case, read: Callable[[], int]) -> Lap:
    start = time.process_time()
    count, spent = 0, 0.0
    while not count or spent < LAP_SECONDS:
        found = read()
        if found != case.entries:
            raise BenchError(f"{found} of {case.entries} entries of {case.name} were read")
        count += found
        spent = time.process_time() - start
    return Lap(count, spent, {"reader": spent})


def _read(body: bytes, tier: str) -> int:
    parsed = parse_feed(body, url="https://example.org/feed", content_type="text/xml; charset=utf-8", now=NOW)
    if parsed.tier != tier:
        raise BenchError(f"the {parsed.tier} tier read what the {tier} tier should have read")
    return len(parsed.entries)


def _read_plainly(body: bytes) -> int:
    return len(feedparser.parse(io.BytesIO(body)).entries)


def _read_fast(body: bytes) -> int:
    return len(fastfeedparser.parse(body).entries)


def _cases() -> list[Case]:
    farm = [
        write_article("bench", number, published_at=NOW - timedelta(hours=number), text_length=2_560, edition="reader")
        for number in range(19)
    ]
    return [
        Case("farm_rss", render(FeedFormat.RSS, "bench", farm, NOW).encode(), 19),
        Case("farm_atom", render(FeedFormat.ATOM, "bench", farm, NOW).encode(), 19),
        Case("farm_rdf", render(FeedFormat.RDF, "bench", farm, NOW).encode(), 19),
        Case("rss", _blog_rss(entries=10, paragraphs=6), 10),
        Case("rss", _blog_rss(entries=50, paragraphs=10), 50),
        Case("atom", _blog_atom(entries=30, paragraphs=6), 30),
        Case("headlines", _headlines(entries=100), 100),
    ]


def _blog_rss(*, entries: int, paragraphs: int) -> bytes:
    items = "".join(
        f"<item>\n<title>A parrot &amp; a cake, part {n}</title>\n<link>https://example.org/{n}</link>\n"
        f'<guid isPermaLink="false">https://example.org/?p={n}</guid>\n<dc:creator><![CDATA[Ada]]></dc:creator>\n'
        f"<pubDate>Mon, 02 Feb 2026 10:{n % 60:02}:00 +0000</pubDate>\n<category><![CDATA[Birds]]></category>\n"
        f"<description><![CDATA[<p>It was a quiet day &#8230;</p>]]></description>\n"
        f"<content:encoded><![CDATA[{_PARAGRAPH.format(n) * paragraphs}]]></content:encoded>\n"
        f"<wfw:commentRss>https://example.org/{n}/feed/</wfw:commentRss>\n<slash:comments>3</slash:comments>\n</item>\n"
        for n in range(entries)
    )
    names = {
        "content": "http://purl.org/rss/1.0/modules/content/",
        "dc": "http://purl.org/dc/elements/1.1/",
        "slash": "http://purl.org/rss/1.0/modules/slash/",
        "wfw": "http://wellformedweb.org/CommentAPI/",
    }
    declared = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in names.items())
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"{declared}><channel><title>Birds</title>'
        f"<link>https://example.org</link><language>en-US</language>\n{items}</channel></rss>"
    ).encode()


def _blog_atom(*, entries: int, paragraphs: int) -> bytes:
    items = "".join(
        f"<entry><id>tag:example.org,2026:{n}</id><title type='html'>A parrot &amp;amp; a cake, part {n}</title>"
        f"<link rel='alternate' type='text/html' href='https://example.org/{n}'/><author><name>Ada</name></author>"
        f"<published>2026-02-02T10:{n % 60:02}:00.000-08:00</published><updated>2026-02-02T11:00:00Z</updated>"
        f"<category term='Birds'/><content type='html'>{escape(_PARAGRAPH.format(n) * paragraphs)}</content></entry>\n"
        for n in range(entries)
    )
    return (
        '<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><title>Birds</title><link href="https://example.org"/>'
        f"<updated>2026-02-02T11:00:00Z</updated>{items}</feed>"
    ).encode()


def _headlines(*, entries: int) -> bytes:
    items = "".join(
        f"<item><title>Parrot seen at the window again, no. {n}</title><link>https://example.org/{n}</link>"
        f"<description>Once more a parrot was seen at the window of the café.</description>"
        f"<pubDate>Mon, 02 Feb 2026 10:{n % 60:02}:00 GMT</pubDate><guid>https://example.org/{n}</guid></item>"
        for n in range(entries)
    )
    return f'<rss version="2.0"><channel><title>News</title>{items}</channel></rss>'.encode()
