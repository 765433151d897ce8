"""The sites of the demo and of the bench."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from itertools import count, cycle

from local.farm.specs import FeedFormat, FeedKind, FeedSpec

_FIRST_HOST = IPv4Address("127.0.0.2")
"""Not 127.0.0.1: other servers of the machine live there."""

_FILE_NAMES = {
    FeedFormat.RSS: "rss.xml",
    FeedFormat.ATOM: "atom.xml",
    FeedFormat.RDF: "index.rdf",
    FeedFormat.JSON: "feed.json",
}
_XML_FORMATS = (FeedFormat.RSS, FeedFormat.ATOM, FeedFormat.RDF)

_MARKUP_PER_ARTICLE = 560
"""Characters around an article's text, in the middle between the four formats."""


@dataclass(frozen=True)
class _Group:
    """So many feeds of one kind, dealt out over hosts that they have to themselves."""

    kind: FeedKind
    feeds: int
    hosts: int
    items_per_wave: int = 0
    delay_seconds: float = 0.0
    failures: int = 0


_DEMO = (
    _Group(FeedKind.PLAIN, feeds=12, hosts=4),
    _Group(FeedKind.GZIP, feeds=8, hosts=3, items_per_wave=1),
    _Group(FeedKind.GROWING, feeds=12, hosts=4, items_per_wave=2),
    _Group(FeedKind.SLOW, feeds=2, hosts=1, delay_seconds=1.5),
    _Group(FeedKind.REFUSED, feeds=2, hosts=1),
    _Group(FeedKind.ERROR_500, feeds=2, hosts=1),
    _Group(FeedKind.RECOVERS, feeds=4, hosts=2, failures=2),
    _Group(FeedKind.NOT_FOUND, feeds=2, hosts=1),
    _Group(FeedKind.GONE, feeds=2, hosts=1),
    _Group(FeedKind.MOVED, feeds=4, hosts=2),
    _Group(FeedKind.THROTTLED, feeds=4, hosts=2, failures=1),
    _Group(FeedKind.MALFORMED, feeds=3, hosts=1),
    _Group(FeedKind.HTML, feeds=2, hosts=1),
    _Group(FeedKind.SHARED, feeds=4, hosts=4),
    _Group(FeedKind.TRUNCATED, feeds=4, hosts=1, failures=1),
    _Group(FeedKind.NO_VALIDATORS, feeds=4, hosts=1),
)


def loopback_host(number: int) -> str:
    """Return the farm's address number 0, 1, …: 127.0.0.2, 127.0.0.3, …."""
    return str(_FIRST_HOST + number)


def demo_specs() -> list[FeedSpec]:
    """Return the sites of `feedmill demo`: every kind, every format in about equal shares."""
    hosts = count()
    formats = cycle(FeedFormat)
    new_home = loopback_host(next(hosts))
    specs: list[FeedSpec] = []
    for group in _DEMO:
        own_hosts = [loopback_host(next(hosts)) for _ in range(group.hosts)]
        own_formats = cycle(_XML_FORMATS) if group.kind is FeedKind.MALFORMED else formats
        specs.extend(_group_specs(group, own_hosts, own_formats, new_home))
    return specs


def named_specs(specs: Iterable[FeedSpec], domain: str) -> list[FeedSpec]:
    """Return the same sites under names: 127.0.0.7 becomes `site-7.DOMAIN`."""

    def name(host: str) -> str:
        return f"site-{host.rpartition('.')[2]}.{domain}" if host else ""

    return [replace(spec, host=name(spec.host), moved_host=name(spec.moved_host)) for spec in specs]


def bench_specs(feeds: int, hosts: int, items: int, body_bytes: int) -> list[FeedSpec]:
    """Return `feeds` compressed feeds on `hosts` hosts, each `body_bytes` long (about, when decoded).

    Every wave replaces all the items of a feed, so that a round after a `publish()` brings `feeds` × `items` new
    articles.
    """
    text_length = max(80, body_bytes // items - _MARKUP_PER_ARTICLE)
    formats = cycle(FeedFormat)
    return [
        FeedSpec(
            name=f"bench-{number:05}",
            host=loopback_host(number % hosts),
            path=f"/{number:05}/{_FILE_NAMES[feed_format]}",
            kind=FeedKind.GZIP,
            format=feed_format,
            items=items,
            items_per_wave=items,
            window=items,
            text_length=text_length,
        )
        for number, feed_format in zip(range(feeds), formats, strict=False)
    ]


def _group_specs(group: _Group, hosts: list[str], formats: Iterator[FeedFormat], new_home: str) -> Iterator[FeedSpec]:
    for number in range(group.feeds):
        feed_format = next(formats)
        name = f"{group.kind.value.replace('_', '-')}-{number + 1}"
        path = f"/{name}/{_FILE_NAMES[feed_format]}"
        yield FeedSpec(
            name=name,
            host=hosts[number % len(hosts)],
            path=path,
            kind=group.kind,
            format=feed_format,
            items=5 + number * 3 % 8,
            items_per_wave=group.items_per_wave,
            delay_seconds=group.delay_seconds,
            failures=group.failures,
            moved_host=new_home if group.kind is FeedKind.MOVED else "",
            moved_path=f"/new-home{path}" if group.kind is FeedKind.MOVED else "",
            shared_group=f"newswire-{number % 2 + 1}" if group.kind is FeedKind.SHARED else "",
        )
