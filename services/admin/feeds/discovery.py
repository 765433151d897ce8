"""Finds the feeds of a page: by the links in its head, else at a few usual addresses.

A URL that looks like a feed's is taken without a request: scripts add thousands. Any other URL costs one unconditional
GET. If a feed is there, that GET is its first poll: it is made and read as in the fetcher, and its result is written.
The feeds that a page links to are not requested. Only for a page without such links the usual addresses are tried.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from services.admin.feeds.configs import config_for
from services.admin.feeds.host_slot import LeftAlone, Slot
from services.admin.feeds.single_fetch import SingleFetch
from services.admin.feeds.urls import without_feed
from services.fetcher.attempt import Client
from services.fetcher.clock import Clock
from services.fetcher.http.address_guard import Blocked, check_host
from services.fetcher.outcomes import WAIT_STATUSES
from services.fetcher.parse.document import read_attributes
from services.fetcher.parse.text.links import absolute
from services.fetcher.settings import FetcherSettings
from shared.errors import FeedmillError
from shared.observability.display import safe_to_show
from shared.politeness import BadUrl, host_of
from shared.wire.jobs import DEFAULT_SOURCE_TYPE
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched

MAX_REQUESTS = 5
"""Of one search, redirects included."""

USUAL_PATHS = ("/feed", "/rss.xml", "/atom.xml", "/index.xml")
"""Tried on a page that links to no feed, in this order."""

MAX_FEEDS = 50

_SAYS_FEED = re.compile(r"feed|rss|atom|rdf|xml|json|podcast|syndic", re.IGNORECASE)
_TYPES = re.compile(r"application/(?:rss|atom|rdf)\+xml|application/feed\+json|(?:application|text)/xml", re.IGNORECASE)
_LINK = re.compile(r"<link(\s[^<>]*+)>", re.IGNORECASE)
_BASE = re.compile(r"<base(\s[^<>]*+)>", re.IGNORECASE)
_COMMENT = re.compile(r"<!--(?:[^-]++|-(?!->))*+-->")


class NoFeed(FeedmillError):
    """There is no feed to add. Says what was found instead."""


@dataclass(frozen=True)
class Found:
    """A feed that was found."""

    url: str
    title: str = ""
    """As the page that links to it calls it."""
    fetched: FeedFetched | None = None
    """The final result of a request there, as the writer takes it; None if none was made."""


def looks_like_feed(url: str) -> bool:
    """Return whether a URL holds a word such as `feed`, `rss` or `xml`."""
    return bool(_SAYS_FEED.search(url.partition("://")[2]))


def linked_feeds(page: str, url: str) -> list[Found]:
    """Return the feeds that the page at `url` links to, in its order, each once; in time linear to its length."""
    end = page.rfind("-->") + 3  # no comment ends after this place
    page = _COMMENT.sub("", page[:end]) + page[end:] if end > 2 else page
    base = _BASE.search(page)
    bases = [absolute(read_attributes(base[1]).get("href", ""), url)] if base else []
    found: dict[str, Found] = {}
    for link in _LINK.finditer(page):
        attributes = read_attributes(link[1])
        kind = attributes.get("type", "").partition(";")[0].strip()
        if "alternate" not in attributes.get("rel", "").lower().split() or not _TYPES.fullmatch(kind):
            continue
        address = absolute(without_feed(attributes.get("href", "")), *filter(None, bases), url)
        if address and len(found) < MAX_FEEDS:
            found.setdefault(address, Found(address, " ".join(html.unescape(attributes.get("title", "")).split())))
    return list(found.values())


class Discovery:
    """One search for the feed that a person means by a URL.

    Args:
        client: makes the requests.
        settings: the fetcher's: how a feed is read, how hosts are grouped, which distance they are given.
        config: the feed's own settings (`source_config`).
        slot: waits until a request to a politeness group may start (`host_slot`); yields what to call when it leaves.
        source_type: what reads the URL. Only pages that lead to a `feed` are searched.
    """

    def __init__(
        self,
        client: Client,
        settings: FetcherSettings,
        config: dict[str, Any],
        slot: Slot,
        clock: Clock | None = None,
        source_type: str = DEFAULT_SOURCE_TYPE,
    ) -> None:
        self._source_type = source_type
        self._fetching = SingleFetch(client, settings, slot, MAX_REQUESTS, clock)
        self._allowed = settings.allowed()
        self._config = config

    def find(self, url: str) -> list[Found]:
        """Return `url` itself if a feed is there, or if that is unknown now; otherwise the feeds of the page.

        Raises:
            NoFeed: there is none. The message says what is there.
        """
        fetched = self._fetching.fetch_to_write(url, self._config, self._source_type)
        if fetched is None:
            raise NoFeed(f"{safe_to_show(url)}: more than {MAX_REQUESTS} redirects")
        if fetched.status is None or fetched.outcome.may_be_feed:
            return [Found(url, fetched=fetched)]
        is_page = fetched.outcome is Outcome.NOT_A_FEED and self._source_type == DEFAULT_SOURCE_TYPE
        if not is_page or self._fetching.answer is None:
            raise NoFeed(f"{safe_to_show(url)}: {fetched.error}")
        page = self._fetching.answer
        linked = linked_feeds(page.body.decode("utf-8", "replace"), page.url)
        found = [feed for feed in linked if self._may_be_polled(feed.url)] if linked else self._usual(url, page.url)
        if not found:
            where = "its links to feeds lead to refused addresses" if linked else "no feed was found from there"
            raise NoFeed(f"{safe_to_show(url)}: {fetched.error}, and {where}")
        return found

    def _may_be_polled(self, url: str) -> bool:
        """Whether fetchers would ask this host, as far as its name tells."""
        try:
            check_host(host_of(url), self._allowed)
        except (BadUrl, Blocked):
            return False
        return True

    def _usual(self, origin: str, page_url: str) -> list[Found]:
        for path in USUAL_PATHS:
            if not self._fetching.may_ask:
                break
            address = urljoin(page_url, path)
            fetched = self._fetching.fetch_to_write(address, config_for(self._config, origin, address))
            if fetched and fetched.outcome in {Outcome.FETCHED, Outcome.UNPARSEABLE}:
                return [Found(address, fetched=fetched)]
            if fetched and fetched.status in WAIT_STATUSES:
                break
        return []


def choose_feed(
    url: str, discovery: Discovery, choose: Callable[[list[Found]], Found], say: Callable[[str], None]
) -> Found:
    """Return what to register for `url`: itself, or the feed chosen among those of the page.

    A URL that can't be fetched now is taken as it is: a feed may be there tomorrow.

    Raises:
        NoFeed: something else is there.
    """
    try:
        found = discovery.find(url)
    except LeftAlone as error:
        say(f"could not be checked, taken as it is: {error}")
        return Found(url)
    if found[0].url == url:
        if found[0].fetched and not found[0].fetched.outcome.is_success:
            say(f"could not be checked, taken as it is: {found[0].fetched.error}")
        return found[0]
    chosen = choose(found) if len(found) > 1 else found[0]
    say(f"a page with {len(found)} feed{'s' if len(found) > 1 else ''}; took {safe_to_show(chosen.url)}")
    return chosen
