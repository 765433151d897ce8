"""A loop that fetches and does nothing else: the cost of a fetch before Feedmill adds anything."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Self

import httpx

from benchmarks.laps import BenchError, Lap, check_errors
from services.fetcher.http.decoding import ACCEPT_ENCODING
from services.fetcher.http.request import ACCEPT

PROCESS = "bare"
BESIDE = "bare httpx loop"
LEAST = 400
"""The least fetches in one lap: the time of fewer can't be measured."""
FAILED = 0
"""In place of a status: the fetch failed."""

HEADERS = {"User-Agent": "feedmill-bench", "Accept": ACCEPT, "Accept-Encoding": ACCEPT_ENCODING}


@dataclass(frozen=True)
class Fetch:
    """One URL and the headers of a conditional request for it."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)


class BareLoop:
    """One shared `httpx.Client` in so many threads, and no more than that. The body is read and thrown away.

    Without `keep_alive` no idle connection is kept, as the fetcher does it: `Connection: close`, since even a pool that
    keeps none may close one that another thread was just given (encode/httpcore#1110). With it: 2,000 of them, what one
    would write without a thought. A context manager.
    """

    def __init__(self, threads: int, *, keep_alive: bool = False) -> None:
        self._threads = threads
        self._client = httpx.Client(
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=2000 if keep_alive else 0),
            headers=HEADERS if keep_alive else {**HEADERS, "Connection": "close"},
            timeout=30.0,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    async def run(self, fetches: Sequence[Fetch], status: int) -> Lap:
        """Fetch all of them, and again until there were at least `LEAST` fetches.

        Raises:
            BenchError: an answer had another status.
        """
        times = max(1, -(-LEAST // len(fetches)))
        work = chain.from_iterable(repeat(fetches, times))
        wall, cpu = time.monotonic(), time.process_time()
        statuses = await asyncio.to_thread(self._fetch_all, work)
        seconds, cost, count = time.monotonic() - wall, time.process_time() - cpu, times * len(fetches)
        errors = statuses.pop(FAILED, 0)
        if statuses != {status: count - errors}:
            raise BenchError(f"the bare loop expected {count} times {status} and got {dict(statuses)}")
        return check_errors(Lap(count, seconds, {PROCESS: cost}, errors))

    async def ask_validators(self, urls: Sequence[str]) -> list[Fetch]:
        """Return each URL with the headers that get a 304 from now on."""
        return await asyncio.to_thread(lambda: list(map(self._ask_validators, urls)))

    def _fetch_all(self, work: Iterator[Fetch]) -> Counter[int]:
        """Let each thread take the next fetch from one iterator (`next` of it holds the interpreter's lock)."""

        def fetch_until_done(_: int) -> Counter[int]:
            return Counter(map(self._fetch, work))

        with ThreadPoolExecutor(self._threads) as pool:
            return sum(pool.map(fetch_until_done, range(self._threads)), Counter())

    def _fetch(self, fetch: Fetch) -> int:
        try:
            return self._client.get(fetch.url, headers=fetch.headers).status_code
        except httpx.TransportError:
            return FAILED

    def _ask_validators(self, url: str) -> Fetch:
        headers = self._client.get(url).headers
        return Fetch(url, {"If-None-Match": headers["etag"], "If-Modified-Since": headers["last-modified"]})
