"""A body that takes too long to read ends its own attempt, and nothing else."""

from __future__ import annotations

import ipaddress
import time
from itertools import count

from services.fetcher.attempt import FeedFetcher, FetchLimits
from services.fetcher.clock import Clock
from services.fetcher.http.client import ClientLimits, FeedClient
from services.fetcher.request import prepare_request
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched
from tests.factories import NOW, make_job
from tests.integration.fetcher.raw_server import answer, saying, serving
from tests.unit.parse.feeds import rss

FEED = rss("<item><title>One</title></item>" * 100).encode()


def test_a_parse_beyond_its_budget_is_unparseable_and_the_thread_goes_on() -> None:
    client = FeedClient(ClientLimits(), user_agent="t", allowed=(ipaddress.ip_network("127.0.0.0/8"),))
    cpu = count()  # a second passes with every look at the clock
    clock = Clock(now=lambda: NOW, monotonic=time.monotonic, cpu=lambda: float(next(cpu)))
    found: list[FeedFetched | object] = []
    with serving(saying(answer(200, FEED, ETag='"1"'))) as server:
        for seconds in (3.0, 1_000_000.0):
            reader = FeedFetcher(client, clock, FetchLimits(parse_seconds=seconds))
            job = make_job(url=server.url(), validators_url=server.url())
            found.append(reader.make_request(prepare_request(job, frozenset()), lambda: None)[0])
    client.close()
    late, in_time = found
    assert isinstance(late, FeedFetched)
    assert isinstance(in_time, FeedFetched)
    assert (late.outcome, late.error_class, late.etag) == (Outcome.UNPARSEABLE, "unparseable", None)
    assert "longer than a feed is worth" in (late.error or "")
    assert in_time.outcome is Outcome.FETCHED
