"""Loops that fetch and do nothing else: what a fetch costs before Feedmill adds anything."""

from __future__ import annotations

import asyncio
import gzip
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from ipaddress import ip_network
from itertools import chain, repeat
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httpx

from benchmarks.laps import BenchError, Lap, check_errors
from services.fetcher.http.client import ClientLimits, FeedClient
from services.fetcher.http.decoding import ACCEPT_ENCODING
from services.fetcher.http.failure import FetchFailed
from services.fetcher.http.request import ACCEPT, HttpRequest

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


class Loop(ABC):
    """Fetches in so many threads. The body is read and decompressed, and thrown away. A context manager."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027 - not every loop holds something
        """Close the loop's client, if it has one."""

    @abstractmethod
    def ask(self, fetch: Fetch) -> int:
        """Fetch once; return the status, or `FAILED`. Called from many threads."""

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

    def _fetch_all(self, work: Iterator[Fetch]) -> Counter[int]:
        """Let each thread take the next fetch from one iterator (`next` of it holds the interpreter's lock)."""

        def fetch_until_done(_: int) -> Counter[int]:
            return Counter(map(self.ask, work))

        with ThreadPoolExecutor(self._threads) as pool:
            return sum(pool.map(fetch_until_done, range(self._threads)), Counter())


class BareLoop(Loop):
    """One shared `httpx.Client`, and no more than that.

    Without `keep_alive` no idle connection is kept, as the fetcher does it: `Connection: close`, since even a pool that
    keeps none may close one that another thread was just given (encode/httpcore#1110). With it: 2,000 of them, what one
    would write without a thought.
    """

    def __init__(self, threads: int, *, keep_alive: bool = False) -> None:
        super().__init__(threads)
        self._client = httpx.Client(
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=2000 if keep_alive else 0),
            headers=HEADERS if keep_alive else {**HEADERS, "Connection": "close"},
            timeout=30.0,
            trust_env=False,
        )

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def ask(self, fetch: Fetch) -> int:
        """Fetch once, through the pool."""
        try:
            return self._client.get(fetch.url, headers=fetch.headers).status_code
        except httpx.TransportError:
            return FAILED

    async def ask_validators(self, urls: Sequence[str]) -> list[Fetch]:
        """Return each URL with the headers that get a 304 from now on."""
        return await asyncio.to_thread(lambda: list(map(self._ask_validators, urls)))

    def _ask_validators(self, url: str) -> Fetch:
        headers = self._client.get(url).headers
        return Fetch(url, conditions(headers["etag"], headers["last-modified"]))


def conditions(etag: str | None, last_modified: str | None) -> dict[str, str]:
    """Return the headers of a conditional request."""
    named = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    return {name: value for name, value in named.items() if value}


class StandardLoop(Loop):
    """`http.client`, a connection for each fetch: the fastest in plain Python that needs nothing installed."""

    def ask(self, fetch: Fetch) -> int:
        """Fetch once."""
        url = urlsplit(fetch.url)
        connection = HTTPConnection(str(url.hostname), url.port, timeout=30.0)
        try:
            connection.request("GET", url.path, headers={**HEADERS, "Connection": "close", **fetch.headers})
            answer = connection.getresponse()
            body = answer.read()
            if answer.headers["Content-Encoding"] == "gzip":
                gzip.decompress(body)
        except (HTTPException, OSError):
            return FAILED
        finally:
            connection.close()
        return answer.status


class ClientLoop(Loop):
    """The fetcher's own client with all its checks, without messages, scoreboard and reading."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self._client = FeedClient(ClientLimits(), user_agent="feedmill-bench", allowed=(ip_network("127.0.0.0/8"),))

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def ask(self, fetch: Fetch) -> int:
        """Fetch once."""
        named = fetch.headers
        request = HttpRequest(fetch.url, named.get("If-None-Match"), named.get("If-Modified-Since"))
        try:
            with self._client.get(request) as answer:
                return answer.status
        except FetchFailed:
            return FAILED
