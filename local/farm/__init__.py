"""The feed farm: many good and bad feed sites on loopback, and a record of all articles that they published.

One HTTP/1.1 server in a thread of its own plays all of them: each on an address of its own (127.0.0.2 …), all on
one port; or, for clients elsewhere, under names that lead to one address.
`feedmill demo` and the end-to-end tests read from it and compare what was delivered with `Farm.expected_articles()`.

    with Farm(demo_specs()) as farm:
        httpx.get(farm.url(farm.specs[0]))
        farm.publish()

specs: the sites of the demo. articles, documents: what they publish. site: how one feed answers.
router: all sites behind one lock. http, server: HTTP/1.1, sockets and the thread. farm: the class `Farm`.
count, service: `feedmill farm`, for the fetchers of other containers.
"""

from local.farm.farm import Farm
from local.farm.router import AccessRecord, HostLoad
from local.farm.specs import FeedFormat, FeedKind, FeedSpec, demo_specs, named_specs

__all__ = [
    "AccessRecord",
    "Farm",
    "FeedFormat",
    "FeedKind",
    "FeedSpec",
    "HostLoad",
    "demo_specs",
    "named_specs",
]
