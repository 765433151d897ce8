"""The feed sites: the address, format and behaviour of each, and the list of sites of the demo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from ipaddress import IPv4Address
from itertools import count, cycle


class FeedFormat(StrEnum):
    """The format that a feed is written in."""

    RSS = "rss"
    ATOM = "atom"
    RDF = "rdf"
    JSON = "json"


class FeedKind(StrEnum):
    """How a site behaves. A correct reader gets no article from some kinds (`FeedKind.delivers`)."""

    PLAIN = "plain"
    """ETag and Last-Modified with honest 304s."""
    GZIP = "gzip"
    """As plain, compressed for those who accept it; its ETag is weak."""
    GROWING = "growing"
    """As plain, with new items in each wave (`items_per_wave`)."""
    SLOW = "slow"
    """As plain, answers after `delay_seconds`."""
    REFUSED = "refused"
    """Nothing listens on this host: the connection is refused."""
    ERROR_500 = "error_500"
    """Always 500."""
    RECOVERS = "recovers"
    """500 for the first `failures` requests, then plain."""
    NOT_FOUND = "not_found"
    """Always 404."""
    GONE = "gone"
    """Always 410."""
    MOVED = "moved"
    """301 to `moved_host` and `moved_path`, where the feed is plain."""
    THROTTLED = "throttled"
    """429 with `Retry-After` for the first `failures` requests, then plain."""
    MALFORMED = "malformed"
    """Not well-formed XML; a tolerant reader still gets every entry. Not for JSON."""
    HTML = "html"
    """A web page with status 200 and no feed in it."""
    SHARED = "shared"
    """As plain; its first article is the one of `shared_group`, listed by other feeds as well."""
    TRUNCATED = "truncated"
    """Half of the announced bytes for the first `failures` requests, then plain."""
    NO_VALIDATORS = "no_validators"
    """Neither ETag nor Last-Modified: the same body again and again."""

    @property
    def delivers(self) -> bool:
        """Whether a correct reader gets articles from such a feed in the end."""
        return self not in _FRUITLESS


_FRUITLESS = {FeedKind.REFUSED, FeedKind.ERROR_500, FeedKind.NOT_FOUND, FeedKind.GONE, FeedKind.HTML}


@dataclass(frozen=True, slots=True)
class FeedSpec:
    """One feed of the farm. `name` is unique in a farm and part of every link and title of the feed."""

    name: str
    host: str
    """The loopback address that it is served from, e.g. `127.0.0.2`."""
    path: str
    kind: FeedKind
    format: FeedFormat = FeedFormat.RSS
    items: int = 8
    """Articles that it lists before the first wave."""
    items_per_wave: int = 0
    """New articles at each `Farm.publish()`."""
    window: int = 100
    """The feed lists its newest articles, so many at most."""
    text_length: int = 400
    """Characters of text in an article, about."""
    delay_seconds: float = 0.0
    """The delay of each answer."""
    failures: int = 0
    """Requests that fail before the feed recovers (`recovers`, `throttled`, `truncated`)."""
    retry_after_seconds: int = 1
    moved_host: str = ""
    moved_path: str = ""
    shared_group: str = ""

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise ValueError(f"feed {self.name!r}: the path {self.path!r} does not begin with a slash")
        if self.kind is FeedKind.MOVED and not (self.moved_host and self.moved_path.startswith("/")):
            raise ValueError(f"feed {self.name!r}: a moved feed needs moved_host and moved_path")
        if self.kind is FeedKind.MALFORMED and self.format is FeedFormat.JSON:
            raise ValueError(f"feed {self.name!r}: there is no tolerant reading of malformed JSON")
        if self.window < max(self.items, self.items_per_wave):
            raise ValueError(f"feed {self.name!r}: a window of {self.window} hides articles at once")


_FIRST_HOST = IPv4Address("127.0.0.2")
"""Not 127.0.0.1, where other servers of the machine listen."""

_FILE_NAMES = {
    FeedFormat.RSS: "rss.xml",
    FeedFormat.ATOM: "atom.xml",
    FeedFormat.RDF: "index.rdf",
    FeedFormat.JSON: "feed.json",
}
_XML_FORMATS = (FeedFormat.RSS, FeedFormat.ATOM, FeedFormat.RDF)


@dataclass(frozen=True)
class _Group:
    """Feeds of one kind, distributed over hosts of their own."""

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
