"""A job's digests reach the reader, and the reader's reach the result."""

from __future__ import annotations

import time
from typing import cast

import httpx

from services.fetcher.attempt import FeedFetcher, FetchLimits
from services.fetcher.clock import Clock
from services.fetcher.http.client import FeedClient, HttpResponse
from services.fetcher.http.request import HttpRequest
from services.fetcher.request import prepare_request
from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched
from tests.factories import NOW, make_job
from tests.unit.parse.feeds import rss

ITEM = "<item><title>{0}</title><link>https://news.example/posts/{0}</link></item>"


class Client:
    """Answers with a feed that lists `names`."""

    def __init__(self, *names: str) -> None:
        self.body = rss("".join(map(ITEM.format, names))).encode()

    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, request.url, httpx.Headers(), self.body, len(self.body))


def fetch(job: FetchFeed, *names: str) -> FeedFetched:
    fetcher = FeedFetcher(cast("FeedClient", Client(*names)), Clock(lambda: NOW, time.monotonic), FetchLimits())
    result, _ = fetcher.make_request(prepare_request(job, frozenset()), lambda: None)
    assert isinstance(result, FeedFetched)
    return FeedFetched.decode(*result.encode())


def test_known_entries_are_counted_and_not_sent() -> None:
    job = make_job(url="https://news.example/feed")
    first = fetch(job, "one", "two")
    assert (len(first.entries), first.known, len(first.digests)) == (2, b"", 24)
    job = FetchFeed.decode(*job.model_copy(update={"known": first.digests}).encode())
    second = fetch(job, "three", "one", "two")
    assert [entry.title for entry in second.entries] == ["three"]
    assert second.known == first.digests[8:]
    assert second.digests[:8] == first.digests[:8]
    assert second.items_seen == 3
    assert (second.feed, second.tier, second.outcome) == (first.feed, first.tier, first.outcome)
