"""What the rooms of the reader hand to each other, and what comes out.

    bytes ─ charset ─► text ─ document ─► Document ─ strict, or else lenient ─► RawFeed ─ entries ─► ParsedFeed
                            ├ json ──────────────────────────────────────────────►
                            └ salvage, for what the others refuse ───────────────►

A tier only *reads*: it gives what the feed says, in `RawFeed`. What an entry becomes is decided once, in
`entries`, so that no tier can give another answer than its neighbour.

    ParseError
    ├── NotAFeed       the bytes are something else: an HTML page, an empty body, a sitemap
    └── Unparseable    a feed was meant, but it is too broken to be read
        └── OutOfTime  reading it takes more than it is worth
    Declined           by the strict tier, for the lenient one to read
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeVar

from shared.wire.results import Entry, FeedInfo, ServerHints


class ParseError(Exception):
    """The body gave no feed. The message says what was found instead."""


class NotAFeed(ParseError):
    """The body is something other than a feed."""


class Unparseable(ParseError):
    """The body means to be a feed and cannot be read."""


class OutOfTime(Unparseable):
    """The caller's budget is spent; no other tier is asked."""


Deadline = Callable[[], bool]
"""Tells whether the time is up. Asked again and again while a feed is read, so it has to be quick."""


def check_time(is_late: Deadline | None) -> None:
    """Raise OutOfTime if the time is up."""
    if is_late is not None and is_late():
        raise OutOfTime("reading it takes longer than a feed is worth")


T = TypeVar("T")


def timely(items: Iterable[T], is_late: Deadline | None) -> Iterator[T]:
    """Yield `items`; raise OutOfTime before the next one if the time is up."""
    for item in items:
        check_time(is_late)
        yield item


class Declined(Exception):
    """The strict tier is not sure of its answer; the lenient tier's stands. Never leaves the reader."""


@dataclass(frozen=True, slots=True)
class FeedFacts:
    """What a feed says of itself and the pipeline does not need; addresses absolute, or ""."""

    self_url: str = ""
    """Its own address (`rel=self`, JSON Feed's `feed_url`); the topic for its hubs."""
    hubs: tuple[str, ...] = ()
    """WebSub hubs that push its updates."""
    icon: str = ""
    image: str = ""
    """A larger picture: RSS `image`, Atom `logo`, a podcast's cover."""
    update_period: str = ""
    """`sy:updatePeriod`, `updateFrequency`, `updateBase` as they stand; the pace they make is in the hints."""
    update_frequency: str = ""
    update_base: str = ""


RawFacts = FeedFacts
"""Before addresses are made absolute."""


@dataclass(frozen=True, slots=True)
class ParsedFeed:
    """A feed that was read."""

    feed: FeedInfo
    hints: ServerHints
    """Only what the feed itself says: `ttl_seconds`, `skip_hours`, `skip_days`."""
    tier: str
    """Which reader took the body: `strict`, `lenient`, `json` or `salvage`."""
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]
    """What was wrong and put up with, for people; each kind once."""
    facts: FeedFacts = field(default_factory=FeedFacts)


# Of these three there are many: a named tuple is made in a fifth of the time that a frozen dataclass takes.


class Text(NamedTuple):
    """A text as the feed carries it, and whether it is HTML or plain."""

    value: str = ""
    is_html: bool = False
    base: str = ""
    """Where its relative links start from, if the feed says so (`xml:base`)."""


class RawEnclosure(NamedTuple):
    """An enclosure as the feed carries it; the URL may be relative or hostile."""

    url: str
    type: str = ""
    length: str = ""


class RawEntry(NamedTuple):
    """An entry as the feed carries it: URLs unchecked, texts as they came, dates read but not judged."""

    guid: str = ""
    guid_is_link: bool = True
    """False if the feed says that the guid is no address (`isPermaLink="false"`)."""
    link: str = ""
    title: Text = Text()
    bodies: tuple[Text, ...] = ()
    """The full text first, then its shorter forms. The first that is not empty becomes the body."""
    published_at: datetime | str | None = None
    """A moment, or a text that names one only within its feed (`dates.Date`)."""
    updated_at: datetime | str | None = None
    authors: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    enclosures: tuple[RawEnclosure, ...] = ()
    language: str = ""

    def is_empty(self) -> bool:
        """Return whether it has nothing that an article could be made of."""
        return not (self.link or self.guid or self.title.value or self.enclosures or any(b.value for b in self.bodies))


@dataclass(frozen=True, slots=True)
class RawFeed:
    """A feed as a tier read it."""

    title: Text = Text()  # noqa: RUF009  # immutable
    link: str = ""
    language: str = ""
    authors: tuple[str, ...] = ()
    """Who wrote the entries that name no author (Atom and JSON Feed say so; RSS does not)."""
    hints: ServerHints = field(default_factory=ServerHints)
    entries: tuple[RawEntry, ...] = ()
    warnings: tuple[str, ...] = ()
    facts: FeedFacts = field(default_factory=FeedFacts)
    empty: int = 0
    """Entries that say nothing and are not among `entries`: there may be a million of them."""
