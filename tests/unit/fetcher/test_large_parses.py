"""Large feeds are parsed one at a time, small ones beside them, and not all at once either."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast

import httpx
import pytest

from services.fetcher.attempt import LARGE_BYTES, SMALL_AT_ONCE, FeedFetcher, FetchLimits
from services.fetcher.clock import Clock
from services.fetcher.http.client import FeedClient, HttpResponse
from services.fetcher.http.request import HttpRequest
from services.fetcher.request import prepare_request
from services.fetcher.sources import NotAFeed, ReadContext, Reading, RequestConfig, SourceType
from tests.factories import NOW, make_job


class Client:
    """Answers with the number of bytes in the URL's query."""

    def get(self, request: HttpRequest) -> HttpResponse:
        size = int(request.url.partition("?")[2])
        return HttpResponse(200, request.url, httpx.Headers(), b" " * size, size)


@pytest.mark.parametrize(("size", "most"), [(LARGE_BYTES + 1, 1), (LARGE_BYTES, SMALL_AT_ONCE)])
def test_large_feeds_are_parsed_one_at_a_time(size: int, most: int) -> None:
    lock, at_once, peak = threading.Lock(), 0, 0

    def parse(body: bytes, context: ReadContext[RequestConfig]) -> Reading:
        nonlocal at_once, peak
        with lock:
            at_once += 1
            peak = max(peak, at_once)
        time.sleep(0.1)
        with lock:
            at_once -= 1
        raise NotAFeed("nothing but spaces")

    reader = FeedFetcher(cast("FeedClient", Client()), Clock(lambda: NOW, time.monotonic), FetchLimits())
    request = prepare_request(make_job(url=f"http://news.example/?{size}"), frozenset())
    request = replace(request, source=SourceType(parse, RequestConfig))
    with ThreadPoolExecutor(2 * SMALL_AT_ONCE) as pool:
        list(
            pool.map(
                lambda _: reader.make_request(request, lambda: None),
                range(2 * SMALL_AT_ONCE if most > 1 else 4),
            )
        )
    assert peak == most
