"""What one feed site of the farm is: its address, its format, and how it behaves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FeedFormat(StrEnum):
    """The format that a feed is written in."""

    RSS = "rss"
    ATOM = "atom"
    RDF = "rdf"
    JSON = "json"


class FeedKind(StrEnum):
    """How a site behaves. See `FeedKind.delivers` for those that a correct reader gets nothing from."""

    PLAIN = "plain"
    """ETag and Last-Modified with honest 304s."""
    GZIP = "gzip"
    """As plain, compressed for those who accept it; its ETag is weak."""
    GROWING = "growing"
    """As plain; the name for feeds whose purpose is to get new items (`items_per_wave`)."""
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
        """True if a correct reader gets articles from such a feed, sooner or later."""
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
    """The newest so many articles are listed; what slides out unread is lost to a reader."""
    text_length: int = 400
    """Characters of text in an article, about."""
    delay_seconds: float = 0.0
    """Waits so long before each answer, on top of the farm's own latency."""
    failures: int = 0
    """Requests that go wrong before the feed recovers (`recovers`, `throttled`, `truncated`)."""
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
