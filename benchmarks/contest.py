"""Ours against the bare loop over the same feeds: rounds in which both run, and the rows that come of them."""

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
"""Seconds that the farm waits before each answer."""

ITEMS = 19
BODY_BYTES = 57_000
BARE_LEAST = 400
"""Fetches of the bare loop in one lap, at least: fewer are over before the clock can tell."""

BESIDE = "bare httpx loop"


@dataclass(frozen=True)
class Size:
    """How many feeds answer 304 and 200; how many rounds a case has, if they fit into its seconds."""

    still_feeds: int
    busy_feeds: int
    rounds: int
    seconds: float


@dataclass(frozen=True)
class Flock:
    """The feeds of one farm, and what all of them answer."""

    farm: FarmProcess
    fetches: Sequence[Fetch]
    status: int


@dataclass(frozen=True)
class Duel:
    """The laps of both sides in one case."""

    case: str
    ours: Sequence[Lap]
    theirs: Sequence[Lap]

    def rate_row(self) -> Row:
        """Return feeds per second."""
        return Row(f"{self.case}.feeds", middle_rate(self.ours), "feeds/s", BESIDE, middle_rate(self.theirs))

    def cpu_row(self, process: str) -> Row:
        """Return what one feed costs this process, beside what a bare fetch costs."""
        value, other = middle_cpu_ms(self.ours, process), middle_cpu_ms(self.theirs, fetching.PROCESS)
        return Row(f"{self.case}.{process}_cpu", value, "CPU-ms/feed", BESIDE, other)


@asynccontextmanager
async def open_flocks(size: Size, loop: BareLoop) -> AsyncIterator[tuple[Flock, Flock]]:
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
            Flock(still, await loop.ask_validators(still.urls), 304),
            Flock(busy, [Fetch(url) for url in busy.urls], 200),
        )


async def fight(
    case: str, size: Size, *, ours: Callable[[], Awaitable[Lap]], theirs: Callable[[], Awaitable[Lap]]
) -> Duel:
    """Let both run in each round, in turns first."""
    laps = await contest({"ours": ours, "theirs": theirs}, size)
    return Duel(case, laps["ours"], laps["theirs"])


async def contest(contenders: Mapping[str, Callable[[], Awaitable[Lap]]], size: Size) -> dict[str, list[Lap]]:
    """Let all run in each round, another one first each time; return their laps."""
    names = list(contenders)
    laps: dict[str, list[Lap]] = {name: [] for name in names}
    for number in rounds(size.rounds, size.seconds):
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            laps[name].append(await contenders[name]())
    return laps


def error_row(subject: str, ours: Iterable[Lap], theirs: Iterable[Lap]) -> Row:
    """Return the fetches that failed although the farm is sound: by our fault or our library's."""
    failed, failed_beside = (sum(lap.errors for lap in laps) for laps in (ours, theirs))
    return Row(f"{subject}.transport_errors", failed, "fetches", BESIDE, failed_beside)
