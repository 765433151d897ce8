"""The values that the reader's modules exchange, its result and its errors.

A tier only reads: its `RawFeed` holds the feed's own statements. `entries` makes articles of them for all tiers.

    ParseError
    ├── NotAFeed       the bytes are something else: an HTML page, an empty body, a sitemap
    └── Unparseable    the body is meant to be a feed, but is too broken to be read
        └── OutOfTime  the deadline passed while it was read
    Declined           raised by a tier for the next one to read the document; never leaves the reader
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeVar

from shared.wire.jobs import DateOrder
from shared.wire.results import Entry, FeedInfo, ServerHints


class ParseError(Exception):
    """The body gave no feed. The message says what was found instead."""


class NotAFeed(ParseError):
    """The body is something other than a feed."""


class Unparseable(ParseError):
    """The body is meant to be a feed and can't be read."""


class OutOfTime(Unparseable):
    """The deadline has passed; no other tier is asked."""


Deadline = Callable[[], bool]
"""Returns whether the time is up. It is called very often, so it has to be quick."""


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


def seldom(is_late: Deadline, questions: int = 16) -> Deadline:
    """Return a deadline that asks `is_late` once in so many questions: a clock of CPU time takes over a microsecond."""
    left = 1

    def ask() -> bool:
        nonlocal left
        left -= 1
        if left:
            return False
        left = 1 if is_late() else questions
        return left == 1

    return ask


class Declined(Exception):
    """The tier is not sure of its answer: the next tier reads the document."""


@dataclass(frozen=True, slots=True)
class FeedFacts:
    """A feed's statements about itself, for people (`feedmill parse`). Addresses are absolute, or ""."""

    self_url: str = ""
    """Its own address (`rel=self`, JSON Feed's `feed_url`); the topic for its hubs."""
    hubs: tuple[str, ...] = ()
    """WebSub hubs that push its updates."""
    icon: str = ""
    image: str = ""
    """A larger picture: RSS `image`, Atom `logo`, a podcast's cover."""
    update_period: str = ""
    """`sy:updatePeriod`, `updateFrequency`, `updateBase` as they stand; their interval is in the hints."""
    update_frequency: str = ""
    update_base: str = ""


@dataclass(frozen=True, slots=True)
class ParsedFeed:
    """The reader's answer."""

    feed: FeedInfo
    hints: ServerHints
    """Only the hints within the feed: `ttl_seconds`, `skip_hours`, `skip_days`."""
    format: str
    """What the feed is written in: `rss`, `atom`, `rdf` or `json`."""
    tier: str
    """How tolerant its reader was: `strict`, `lenient`, `json` or `salvage`."""
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]
    """What is wrong with the feed although it was read, for people; each kind once."""
    facts: FeedFacts = field(default_factory=FeedFacts)
    known: bytes = b""
    """Digests of listed entries that are not in `entries`, since the caller knows them (`FeedFetched.known`)."""
    digests: bytes = b""
    """Digests of the context and of `entries` (`FeedFetched.digests`); empty if nothing can be recognised."""
    date_order: DateOrder | None = None
    """What stands first in dates such as 03/04/2026, as one of the feed's dates proves (`FeedFetched.date_order`)."""


# A feed has many of these three, and a named tuple is made five times as fast as a frozen dataclass.


class Text(NamedTuple):
    """A text as it is in the feed, and whether it is HTML or plain."""

    value: str = ""
    is_html: bool = False
    base: str = ""
    """The base of its relative links, if the feed declares one (`xml:base`)."""


class RawEnclosure(NamedTuple):
    """An enclosure as it is in the feed; the URL may be relative or hostile."""

    url: str
    type: str = ""
    length: str = ""


class RawEntry(NamedTuple):
    """An entry as it is in the feed: URLs are unchecked, texts unchanged, dates not yet within bounds."""

    guid: str = ""
    guid_is_link: bool = True
    """False if the feed says that the guid is no URL (`isPermaLink="false"`)."""
    link: str = ""
    title: Text = Text()
    bodies: tuple[Text, ...] = ()
    """The full text, then the shorter ones. The first that is not empty becomes the body."""
    published_at: datetime | str | None = None
    """A moment, or the text of a date that only the feed's other dates can explain (`dates.Date`)."""
    updated_at: datetime | str | None = None
    authors: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    enclosures: tuple[RawEnclosure, ...] = ()
    language: str = ""

    def is_empty(self) -> bool:
        """Return whether it has no content for an article."""
        return not (self.link or self.guid or self.title.value or self.enclosures or any(b.value for b in self.bodies))


@dataclass(frozen=True, slots=True)
class RawFeed:
    """A feed as a tier read it."""

    format: str = ""
    title: Text = Text()  # noqa: RUF009  # immutable
    link: str = ""
    language: str = ""
    authors: tuple[str, ...] = ()
    """The authors of entries without an author, in Atom and JSON Feed. RSS has no such rule."""
    hints: ServerHints = field(default_factory=ServerHints)
    entries: tuple[RawEntry, ...] = ()
    warnings: tuple[str, ...] = ()
    facts: FeedFacts = field(default_factory=FeedFacts)
    empty: int = 0
    """The number of entries without any content. They are not in `entries`, since there may be a million of them."""
    places: tuple[int, ...] = field(default=(), compare=False)
    """The place in the document of each of `entries`, with empty ones counted. Only tiers with a `scope` say so."""
    scope: str | None = field(default=None, compare=False)
    """All that one entry's meaning depends on outside of its source, but for the tags around it and the fields here.

    None: the tier can't tell, or the source of one entry may change another.
    """
