"""Source types: how the body that a URL gives becomes entries. `feed` (RSS, Atom, RDF, JSON Feed) is one of them.

A source type is one module: a reader, a schema for the feed's settings, and a `SourceType` that holds both. It is
registered as an entry point of its distribution, under the name that the column `feeds.source_type` holds:

    [project.entry-points."feedmill.source_types"]
    sitemap = "my_package.sitemap:SITEMAP"

Feedmill's own are registered in the same way (pyproject.toml). No service knows one by name. Everything about requests
(headers, credentials, time-outs, redirects, politeness, retries) is the same for all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from services.fetcher.http.options import BadOptions, RequestConfig, read_config
from services.fetcher.parse.entries import build_entries, read_info
from services.fetcher.parse.model import Deadline, NotAFeed, RawEntry, RawFeed, Text, Unparseable
from shared.errors import ConfigurationError
from shared.wire.jobs import DateOrder
from shared.wire.results import Entry, FeedInfo, ServerHints

__all__ = [
    "NotAFeed",
    "RawEntry",
    "RawFeed",
    "ReadContext",
    "Reading",
    "RequestConfig",
    "SourceType",
    "Text",
    "Unparseable",
    "find_source_type",
    "load_source_types",
    "make_reading",
]

GROUP = "feedmill.source_types"

C = TypeVar("C", bound=RequestConfig)


@dataclass(frozen=True)
class ReadContext(Generic[C]):
    """The arguments of a reader besides the bytes."""

    url: str
    """The address of the body, against which relative links are resolved."""
    content_type: str | None
    """The HTTP header."""
    now: datetime
    """Aware; dates in the far future are clamped to it."""
    config: C
    """The feed's settings (`source_config`), checked."""
    max_entries: int = 5000
    """Of more entries, the newest are kept."""
    keep_html: bool = False
    """Whether entries keep their bodies as HTML that is safe to show, too."""
    known: bytes = b""
    """Digests from an earlier reading (`FetchFeed.known`). A reader need not read these entries, but may."""
    date_order: DateOrder | None = None
    """What is known to stand first in dates such as 03/04/2026."""
    deadline: Deadline | None = None
    """Says whether the time is up. A slow reader asks it again and again, and raises Unparseable when it is."""


@dataclass(frozen=True)
class Reading:
    """The contents of a body, as a reader found them."""

    entries: tuple[Entry, ...]
    feed: FeedInfo = FeedInfo()  # noqa: RUF009  # immutable
    hints: ServerHints = ServerHints()  # noqa: RUF009  # immutable
    """The body's wishes about polling: `ttl_seconds`, `skip_hours`, `skip_days`."""
    tier: str | None = None
    """How tolerant the reader had to be, for the fetch log."""
    notices_cuts: bool = True
    """Whether a body that was cut short would have failed. If not, its validators are not kept."""
    known: bytes = b""
    """Digests of entries that the body lists and the reader left out (`FeedFetched.known`)."""
    digests: bytes = b""
    """Digests by which the next reading may recognise `entries` (`FeedFetched.digests`); empty: it can't."""
    date_order: DateOrder | None = None
    """What stands first in dates such as 03/04/2026, as one of the body's dates proves."""


@dataclass(frozen=True)
class SourceType(Generic[C]):
    """One way to read what a URL gives."""

    read: Callable[[bytes, ReadContext[C]], Reading]
    """Pure and safe to call from many threads. Raises NotAFeed if the body is something else, and Unparseable if it is
    too broken to be read; both say what was found. Any other error counts as a bug: the job is retried, then
    dead-lettered."""
    config: type[C]
    """The schema of a feed's settings: `RequestConfig` or a class that extends it. A field with `repr=False` is a
    secret: it can be set, and nobody is shown it."""
    summary: str = ""
    """For people: what it reads."""

    def read_config(self, config: Mapping[str, object]) -> C:
        """Return a feed's settings. Raises BadOptions, which names the field and what is expected."""
        return read_config(self.config, config) if config else _read_nothing(self.config)


@cache
def _read_nothing(schema: type[C]) -> C:
    """Return the settings of the feeds that have none of their own: most of them."""
    return read_config(schema, {})


def make_reading(raw: RawFeed, context: ReadContext[C]) -> Reading:
    """Return the reading of a body whose entries are in `raw`.

    The entries become what a feed's entries become: links absolute, texts plain, dates checked, duplicates dropped.
    """
    feed = read_info(raw, context.url)
    built = build_entries(
        raw,
        bases=tuple(filter(None, (feed.site_url, context.url))),
        language=feed.language,
        now=context.now,
        max_entries=context.max_entries,
        keep_html=context.keep_html,
        deadline=context.deadline,
        date_order=context.date_order,
    )
    return Reading(built.entries, feed, raw.hints, date_order=built.date_order)


@cache
def load_source_types() -> Mapping[str, SourceType[Any]]:
    """Return the source types that are installed, by name.

    Raises:
        ConfigurationError: there is none, two have the same name, or one can't be loaded.
    """
    points = entry_points(group=GROUP)
    if not points:
        raise ConfigurationError(f"no source type is installed (entry point group {GROUP}): install Feedmill again")
    twice = [name for name, count in Counter(point.name for point in points).items() if count > 1]
    if twice:
        raise ConfigurationError(f"the source type {twice[0]!r} is registered twice: uninstall one of the packages")
    found: dict[str, SourceType[Any]] = {}
    for point in points:
        try:
            found[point.name] = source = point.load()
        except Exception as error:
            raise ConfigurationError(
                f"the source type {point.name!r} ({point.value}) can't be loaded: {error}"
            ) from error
        if not isinstance(source, SourceType):
            raise ConfigurationError(f"the source type {point.name!r} ({point.value}) is no SourceType")
    return found


def find_source_type(name: str) -> SourceType[Any]:
    """Return the source type of this name.

    Raises:
        BadOptions: it is not installed here; says which ones are, and what to do.
    """
    known = load_source_types()
    if name not in known:
        raise BadOptions(
            f"source_type: {name[:50]!r} is not installed here (installed: {', '.join(sorted(known))}); install the"
            f" package that brings it with every fetcher, or change the feed's source type"
        )
    return known[name]
