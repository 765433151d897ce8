"""The enricher: each part over results with one new article, all of them, and the pipeline with and without it.

As the service does, `all_together` lets each part read the texts of several results; `all` takes one result at a time.
The parts run within this process, as `FEEDMILL_ENRICH` asks and as far as they are installed; the others are named.
Beside them stands what any stage does with a result: decode and encode it. The pipelines poll the same feeds, one after
the other, of which each has one new article; the articles are counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from uuid import UUID

from benchmarks.bench import Bench
from benchmarks.farm import run_farm
from benchmarks.laps import Lap, middle_cpu_ms, middle_rate, rate_row, rotated, rounds, run_rounds
from benchmarks.messages import new_results, same_results
from benchmarks.processes import Services, run_services
from benchmarks.rows import Row
from benchmarks.subjects.pipeline import (
    ENTRIES,
    SERVICES,
    TEXT_LENGTH,
    Pipeline,
    check_articles,
    open_connection,
)
from services.enricher.__main__ import TOGETHER
from services.enricher.enriching import enrich_feeds
from services.enricher.parts import Parts
from services.enricher.settings import EnrichSettings
from services.enricher.text import Text
from shared.settings import read_settings
from shared.wire.enrichment import Enrichment
from shared.wire.results import FeedFetched

CLAIM = UUID(int=18)
LAP_SECONDS = 0.2
"""A lap of a part lasts so long, and takes each result once at least."""

MOST_LOSS = 0.75
"""The pipeline with the enricher reaches so much of the speed without, at least."""

WITH, WITHOUT = "with", "without"
CHAINS = {WITH: (*SERVICES, "enricher"), WITHOUT: SERVICES}
BARE = "decode and encode"

Work = Callable[[], int]


async def run(bench: Bench) -> list[Row]:
    """Return the rows of the parts, of their memory, and of the pipeline."""
    parts = read_settings(EnrichSettings).parts()
    gc.freeze()  # as the service does
    for name, reason in parts.missing.items():
        print(f"without {name}: {reason}", file=sys.stderr)
    return [*await _part_rows(parts, quick=bench.quick), *await _pipeline_rows(bench)]


async def _part_rows(parts: Parts, *, quick: bool) -> list[Row]:
    results, most, seconds = (50, 3, 20.0) if quick else (200, 7, 120.0)
    listed = new_results(results, edition="enrich", claim_id=CLAIM)
    single = [fetched.model_copy(update={"entries": fetched.entries[:1]}) for fetched in listed]
    bodies = [fetched.encode() for fetched in single]
    works: dict[str, Work] = {
        BARE: lambda: _pass_on(bodies, Parts()),
        "all": lambda: _pass_on(bodies, parts),
        "all_together": lambda: _pass_on(bodies, parts, TOGETHER.size),
    }
    works |= {name: partial(_each, single, one) for name, one in _alone(parts).items()}
    works["all_of_20"] = partial(_pass_on, [fetched.encode() for fetched in listed[: results // 10]], parts)
    nothing = [fetched.encode() for fetched in same_results(results, claim_id=CLAIM)]
    works["nothing_new"] = lambda: _pass_on(nothing, parts)
    laps = await run_rounds({name: partial(_lap, work) for name, work in works.items()}, most, seconds)
    bare = laps.pop(BARE)
    rows: list[Row] = []
    nothing_ms = middle_cpu_ms(laps.pop("nothing_new"), "enricher")
    for name, own in laps.items():
        costs = middle_cpu_ms(own, "enricher"), middle_cpu_ms(bare, "enricher")
        rows.append(Row(f"enrich.{name}.texts", middle_rate(own), "texts/s", BARE, middle_rate(bare)))
        rows.append(Row(f"enrich.{name}.cpu", costs[0], "CPU-ms/article", BARE, costs[1]))
    return [*rows, Row("enrich.nothing_new.cpu", nothing_ms, "CPU-ms/result", "what it may cost", 0.1, goal=1.0)]


def _alone(parts: Parts) -> dict[str, Parts]:
    """Return each part that is there on its own, by its name in FEEDMILL_ENRICH."""
    alone = {
        "language": Parts(languages=parts.languages),
        "duplicates": Parts(sketches=parts.sketches),
        "topics": Parts(topics=parts.topics),
        "entities": Parts(entities=parts.entities),
    }
    return {name: part for name, part in alone.items() if part != Parts()}


def _each(results: Sequence[FeedFetched], part: Parts) -> int:
    """Let one part read the articles of each result, whose language is given."""
    for fetched in results:
        texts = [Text.of(entry, "en") for entry in fetched.entries]
        languages = ["en"] * len(texts)
        if part.languages:
            part.languages(texts)
        if part.sketches:
            part.sketches(texts, languages)
        if part.topics:
            part.topics(texts, languages)
        if part.entities:
            part.entities(texts, languages)
    return sum(len(fetched.entries) for fetched in results)


def _pass_on(bodies: Sequence[tuple[bytes, str | None]], parts: Parts, together: int = 1) -> int:
    """Decode, enrich and encode so many results at a time; return the number of articles, or of results without any."""
    articles = 0
    for start in range(0, len(bodies), together):
        results = [FeedFetched.decode(*body) for body in bodies[start : start + together]]
        if parts != Parts():
            found = enrich_feeds([(fetched.entries, fetched.feed.language) for fetched in results], parts)
            results = [_with(fetched, own) for fetched, own in zip(results, found, strict=True)]
        for fetched in results:
            fetched.encode()
            articles += len(fetched.entries)
    return articles or len(bodies)


def _with(fetched: FeedFetched, found: Sequence[Enrichment]) -> FeedFetched:
    """Return the result with what was found."""
    entries = (e.model_copy(update={"enrichment": f}) for e, f in zip(fetched.entries, found, strict=True))
    return fetched.model_copy(update={"entries": tuple(entries)})


async def _lap(work: Work) -> Lap:
    start = time.process_time()
    count, spent = 0, 0.0
    while spent < LAP_SECONDS:
        count += work()
        spent = time.process_time() - start
    return Lap(count, spent, {"enricher": spent})


async def _pipeline_rows(bench: Bench) -> list[Row]:
    """Return how fast the pipeline is with and without the enricher where each result has one new article."""
    feeds, most, seconds = (36, 3, 60.0) if bench.quick else (120, 7, 200.0)
    laps: dict[str, list[Lap]] = {name: [] for name in CHAINS}
    async with contextlib.AsyncExitStack() as stack:
        farm = await stack.enter_async_context(
            run_farm(feeds=feeds, hosts=feeds, entries=ENTRIES, text_length=TEXT_LENGTH, edition="enrich")
        )
        running = {name: await _open(stack, bench, name) for name in CHAINS}
        for pipeline, _ in running.values():
            await asyncio.to_thread(pipeline.register, farm.urls)
            await pipeline.poll()  # everything is new; this is not measured
        for number in rounds(most, seconds):
            await farm.tell("publish 1")
            for name in rotated(list(CHAINS), number):
                laps[name].append(await running[name][0].poll())
        expected = (await farm.tell("articles"))["articles"]
        for name, (pipeline, _) in running.items():
            check_articles(name, await pipeline.stored(), expected)
        services = running[WITH][1]
        memory = {name: services.peak_rss_bytes(f"{name}-{WITH}") / 1e6 for name in ("enricher", "fetcher")}
    cpu = {name: median(sum(lap.cpu.values()) * 1000 / lap.count for lap in own) for name, own in laps.items()}
    by_process = {name: _by_process(own) for name, own in laps.items()}
    return [
        rate_row("enrich.pipeline.feeds", "feeds/s", f"{WITHOUT} enricher", laps[WITH], laps[WITHOUT], MOST_LOSS),
        Row("enrich.pipeline.cpu", cpu[WITH], "CPU-ms/feed", f"{WITHOUT} enricher", cpu[WITHOUT]),
        *(
            Row(f"enrich.pipeline.{one}", ms, "CPU-ms/feed", f"{WITHOUT} enricher", by_process[WITHOUT].get(one, 0.0))
            for one, ms in by_process[WITH].items()
        ),
        Row("enrich.memory", memory["enricher"], "MB", "a fetcher", memory["fetcher"]),
    ]


def _by_process(laps: Sequence[Lap]) -> dict[str, float]:
    """Return the CPU time of each service and server, in milliseconds per feed."""
    return {name.partition("-")[0]: middle_cpu_ms(laps, name) for name in laps[0].cpu}


async def _open(stack: contextlib.AsyncExitStack, bench: Bench, name: str) -> tuple[Pipeline, Services]:
    """Start a pipeline with servers' places of its own; it is stopped with the stack."""
    place = bench.make_place("enrich")
    environment = {**place.environment(), "FEEDMILL_ENRICHER": str(name == WITH).lower()}
    services = await stack.enter_async_context(run_services([f"{one}-{name}" for one in CHAINS[name]], environment))
    return Pipeline(bench, services, place, await stack.enter_async_context(open_connection(place))), services
