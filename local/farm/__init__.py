"""The feed farm: many feed sites on loopback, good ones and bad ones, with a ledger of what they published.

One HTTP/1.1 server in a thread of its own plays all of them: each on an address of its own (127.0.0.2 …), all on
one port; or, for clients elsewhere, under names that lead to one address.
`feedmill demo`, the end-to-end tests and `make bench` read from it and compare what was delivered with
`Farm.expected_articles()`. `python -m local.farm` runs one in its own process.

    with Farm(demo_specs()) as farm:
        httpx.get(farm.url(farm.specs[0]))
        farm.publish()
        assert farm.unserved()

Rooms: specs (what a site is) · catalogue (the demo's and the bench's sites) · articles (what they write) ·
documents (how it looks in each format) · site (how one feed answers) · router (all of them, under one lock) ·
connection (HTTP/1.1) · server (sockets and the thread) · farm (the door).
"""

from local.farm.farm import Farm
from local.farm.router import AccessRecord, HostLoad
from local.farm.site import Freshness
from local.farm.specs import FeedFormat, FeedKind, FeedSpec, bench_specs, demo_specs, named_specs

__all__ = [
    "AccessRecord",
    "Farm",
    "FeedFormat",
    "FeedKind",
    "FeedSpec",
    "Freshness",
    "HostLoad",
    "bench_specs",
    "demo_specs",
    "named_specs",
]
