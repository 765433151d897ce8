"""Feedmill beside other clients over the same feeds: rounds in which all run, and the rows of two of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from benchmarks.bare import fetching
from benchmarks.bare.fetching import BareLoop, Fetch
from benchmarks.laps import Lap, middle_cpu_ms, middle_rate, rounds
from benchmarks.processes import FarmProcess, run_farm
from benchmarks.rows import Row

LATENCIES = (0.0, 0.1)
"""The farm's delays of each answer, in seconds."""

ITEMS = 19
BODY_BYTES = 57_000
BARE_LEAST = 400
"""The least fetches of the bare loop in one lap; the time of fewer can't be measured."""

BESIDE = "bare httpx loop"


@dataclass(frozen=True)
class Size:
    """The numbers of feeds that answer 304 and 200; the rounds of a case, and the seconds that bound them."""

    still_feeds: int
    busy_feeds: int
    rounds: int
    seconds: float


@dataclass(frozen=True)
class FeedSet:
    """The feeds of one farm, and the status that all of them answer."""

    farm: FarmProcess
    fetches: Sequence[Fetch]
    status: int


@dataclass(frozen=True)
class Comparison:
    """The laps of Feedmill and of the bare loop in one case."""

    case: str
    ours: Sequence[Lap]
    bare: Sequence[Lap]

    def rate_row(self) -> Row:
        """Return feeds per second."""
        return Row(f"{self.case}.feeds", middle_rate(self.ours), "feeds/s", BESIDE, middle_rate(self.bare))

    def cpu_row(self, process: str) -> Row:
        """Return the CPU time of this process per feed, beside that of a bare fetch."""
        value, other = middle_cpu_ms(self.ours, process), middle_cpu_ms(self.bare, fetching.PROCESS)
        return Row(f"{self.case}.{process}_cpu", value, "CPU-ms/feed", BESIDE, other)


@asynccontextmanager
async def open_feed_sets(size: Size, loop: BareLoop) -> AsyncIterator[tuple[FeedSet, FeedSet]]:
    """Yield feeds that answer 304, with the validators for it, and larger ones that answer 200."""
    async with AsyncExitStack() as stack:
        still, busy = [
            await stack.enter_async_context(run_farm(feeds=feeds, items=items, body_bytes=length, edition=edition))
            for feeds, items, length, edition in (
                (size.still_feeds, 5, 4_000, "still"),
                (size.busy_feeds, ITEMS, BODY_BYTES, "busy"),
            )
        ]
        yield (
            FeedSet(still, await loop.ask_validators(still.urls), 304),
            FeedSet(busy, [Fetch(url) for url in busy.urls], 200),
        )


async def compare(
    case: str, size: Size, *, ours: Callable[[], Awaitable[Lap]], bare: Callable[[], Awaitable[Lap]]
) -> Comparison:
    """Run both in each round; return their laps."""
    laps = await run_rounds({"ours": ours, "bare": bare}, size)
    return Comparison(case, laps["ours"], laps["bare"])


async def run_rounds(contenders: Mapping[str, Callable[[], Awaitable[Lap]]], size: Size) -> dict[str, list[Lap]]:
    """Run all in each round, another one first each time; return their laps."""
    names = list(contenders)
    laps: dict[str, list[Lap]] = {name: [] for name in names}
    for number in rounds(size.rounds, size.seconds):
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            laps[name].append(await contenders[name]())
    return laps


def error_row(subject: str, ours: Iterable[Lap], bare: Iterable[Lap]) -> Row:
    """Return the failed fetches. The farm never fails, so the client or its library did."""
    failed, failed_beside = (sum(lap.errors for lap in laps) for laps in (ours, bare))
    return Row(f"{subject}.transport_errors", failed, "fetches", BESIDE, failed_beside)
