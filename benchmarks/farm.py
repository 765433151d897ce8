"""The farm of `benchmarks.feeds` in its process, and the sets of feeds that all clients fetch from it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.bare.fetching import BareLoop, Fetch
from benchmarks.laps import BenchError

FARM_SECONDS = 60.0
ANSWER_BYTES = 16 * 1024 * 1024

ITEMS = 19
TEXT_LENGTH = 1_200
"""Characters of an article: with its markup and the other fields 19 of them make a feed of about 57 KB."""


class FarmProcess:
    """A feed farm in a process of its own. Made by `run_farm`."""

    def __init__(self, process: asyncio.subprocess.Process, urls: Sequence[str]) -> None:
        self._process = process
        self.urls = urls

    async def tell(self, command: str) -> dict[str, Any]:
        """Send a command of `python -m benchmarks.feeds`, and return the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())
        answer = await _read_answer(self._process)
        if "error" in answer:
            raise BenchError(f"the farm: {answer['error']}")
        return answer


@asynccontextmanager
async def run_farm(
    *, feeds: int, entries: int, text_length: int, edition: str, hosts: int | None = None
) -> AsyncIterator[FarmProcess]:
    """Run a farm for the length of the block. Without `hosts` there is a host for every twelve feeds."""
    numbers = {"feeds": feeds, "hosts": hosts or max(4, feeds // 12), "entries": entries, "text-length": text_length}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.feeds", "--edition", edition),
        *(word for name, number in numbers.items() for word in (f"--{name}", str(number))),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=ANSWER_BYTES,
        start_new_session=True,  # Ctrl-C is for us; it ends when its standard input closes, also if we are killed
    )
    try:
        yield FarmProcess(process, (await _read_answer(process))["urls"])
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def _read_answer(process: asyncio.subprocess.Process) -> dict[str, Any]:
    """Return the farm's next line. Raises BenchError if it has ended or is stuck."""
    assert process.stdout is not None
    try:
        async with asyncio.timeout(FARM_SECONDS):
            line = await process.stdout.readline()
    except TimeoutError:
        raise BenchError(f"the farm did not answer within {FARM_SECONDS:.0f} s") from None
    if not line:
        raise BenchError("the farm ended")
    answer: dict[str, Any] = json.loads(line)
    return answer


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


@asynccontextmanager
async def open_feed_sets(size: Size, loop: BareLoop) -> AsyncIterator[tuple[FeedSet, FeedSet]]:
    """Yield feeds that answer 304, with the validators for it, and larger ones that answer 200."""
    async with AsyncExitStack() as stack:
        still_farm = run_farm(feeds=size.still_feeds, entries=5, text_length=100, edition="still")
        busy_farm = run_farm(feeds=size.busy_feeds, entries=ITEMS, text_length=TEXT_LENGTH, edition="busy")
        still, busy = [await stack.enter_async_context(farm) for farm in (still_farm, busy_farm)]
        yield (
            FeedSet(still, await loop.ask_validators(still.urls), 304),
            FeedSet(busy, [Fetch(url) for url in busy.urls], 200),
        )
