"""MANNERS 14: how requests towards one host follow each other, as the host sees it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from local.servers import Servers
from tests.manners.jobs import Fetcher, running_fetcher
from tests.manners.replies import after, fresh, redirect
from tests.manners.sites import Site, serving

INTERVAL_SECONDS = 0.1
CONCURRENCY = 2
STALL_SECONDS = 1.5

LOOPBACK_SECONDS = 0.005
"""A request arrives within this time after it left."""

SLOW = after(0.4, fresh())


@pytest.fixture(scope="module")
def fetcher(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fetcher]:
    settings = {
        "FEEDMILL_HOST_CONCURRENCY": str(CONCURRENCY),
        "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": str(INTERVAL_SECONDS),
    }
    with running_fetcher(servers, tmp_path_factory.mktemp("wire"), **settings) as fetcher:
        yield fetcher


def popular(feeds: int, slow: int) -> Site:
    """Return a host with so many feeds, the first ones answering slowly."""
    pages = {f"/{number}": [SLOW if number < slow else fresh()] for number in range(feeds)}
    return Site(pages, tuple(pages))


def urls(site: Site) -> list[str]:
    return [site.url(path) for path in site.feeds]


def all_answered(site: Site, visits: int) -> bool:
    return sum(visit.ended is not None for visit in site.visits) >= visits


def check_the_distance_of_starts(site: Site) -> None:
    arrivals = sorted(visit.arrived for visit in site.visits)
    assert min(after - before for before, after in pairwise(arrivals)) >= INTERVAL_SECONDS - LOOPBACK_SECONDS


def check_the_concurrency(site: Site) -> None:
    for visit in site.visits:
        beside = [
            other
            for other in site.visits
            if other.arrived <= visit.arrived and other.ended is not None and visit.arrived < other.ended
        ]
        assert len(beside) <= CONCURRENCY


def test_14_starts_towards_one_host_keep_distance_and_concurrency_beside_other_hosts(fetcher: Fetcher) -> None:
    busy = popular(feeds=30, slow=4)
    others = [Site({"/feed": [fresh()]}) for _ in range(10)]
    with serving(busy, *others):
        fetcher.fetch([*urls(busy), *(other.url() for other in others)])
        busy.wait(lambda: all_answered(busy, 30))
        check_the_distance_of_starts(busy)
        check_the_concurrency(busy)
        for other in others:
            (visit,) = other.wait_for(1)
            assert visit.arrived < busy.visits[-1].arrived


def test_14_distance_and_concurrency_hold_after_a_stall(fetcher: Fetcher) -> None:
    site = popular(feeds=12, slow=5)
    with serving(site):
        fetcher.fetch(urls(site))
        site.wait(lambda: len(site.visits) >= 3)
        os.kill(fetcher.pid, signal.SIGSTOP)
        before = len(site.visits)
        time.sleep(STALL_SECONDS)  # the stall itself
        os.kill(fetcher.pid, signal.SIGCONT)
        site.wait(lambda: all_answered(site, 12))
        assert before < 12
        check_the_distance_of_starts(site)
        check_the_concurrency(site)


def test_14_distance_holds_where_redirects_of_other_hosts_lead(fetcher: Fetcher) -> None:
    hub = popular(feeds=8, slow=2)
    hub.pages = {**hub.pages, **{f"/from-{number}": [fresh()] for number in range(8)}}
    spokes = [Site({"/feed": [redirect(hub, f"/from-{number}")]}) for number in range(8)]
    with serving(hub, *spokes):
        fetcher.fetch([url for pair in zip(urls(hub), [spoke.url() for spoke in spokes], strict=True) for url in pair])
        hub.wait(lambda: all_answered(hub, 16))
        check_the_distance_of_starts(hub)
        check_the_concurrency(hub)
