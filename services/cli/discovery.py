"""`feedmill feeds add PAGE`: the feeds of a page, by what its head says, or else by the usual addresses.

A URL that says it is a feed is added unseen: scripts add thousands. Any other costs one unconditional GET, as the
fetcher would make it (address guard, limits, redirects), which tells a feed from a page. What a page links to is
believed without asking there. Only a page that links to none has a few usual addresses tried, a second apart.
"""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import urljoin

from services.fetcher.client import Answer, FeedClient, Request
from services.fetcher.failure import FetchFailed
from services.fetcher.options import FeedOptions
from services.fetcher.parse import NotAFeed, ParseError, parse_feed
from services.fetcher.parse.links import absolute
from services.fetcher.parse.pieces import read_attributes
from services.fetcher.trail import Trail
from shared.errors import FeedmillError
from shared.secrets import mask_credentials

MAX_REQUESTS = 5
"""All that one `feeds add` may make, redirects included."""

SPACING_SECONDS = 1.0
"""Between two requests, as between any two to one host."""

USUAL_PATHS = ("/feed", "/rss.xml", "/atom.xml", "/index.xml")
"""Tried on a page that links to no feed, in this order."""

MAX_FEEDS = 50

_SAYS_FEED = re.compile(r"feed|rss|atom|rdf|xml|json|podcast|syndic|\?", re.IGNORECASE)
_TYPES = re.compile(r"application/(?:rss|atom|rdf)\+xml|application/feed\+json|(?:application|text)/xml", re.IGNORECASE)
_LINK = re.compile(r"<link(\s[^<>]*+)>", re.IGNORECASE)
_BASE = re.compile(r"<base(\s[^<>]*+)>", re.IGNORECASE)
_COMMENT = re.compile(r"<!--(?:[^-]++|-(?!->))*+-->")


class NoFeed(FeedmillError):
    """There is no feed to add. Says what was found instead."""


@dataclass(frozen=True)
class Found:
    """A feed that a page links to."""

    url: str
    title: str = ""


def looks_meant(url: str) -> bool:
    """Return whether a URL says that it is a feed: by a word such as `feed`, `rss` or `xml`, or by a query."""
    return bool(_SAYS_FEED.search(url.partition("://")[2]))


def linked_feeds(page: str, url: str) -> list[Found]:
    """Return the feeds that the page at `url` links to, in its order, each once; in time linear to its length."""
    end = page.rfind("-->") + 3  # behind it no comment ends
    page = _COMMENT.sub("", page[:end]) + page[end:] if end > 2 else page
    base = _BASE.search(page)
    bases = [absolute(read_attributes(base[1]).get("href", ""), url)] if base else []
    found: dict[str, Found] = {}
    for link in _LINK.finditer(page):
        attributes = read_attributes(link[1])
        kind = attributes.get("type", "").partition(";")[0].strip()
        if "alternate" not in attributes.get("rel", "").lower().split() or not _TYPES.fullmatch(kind):
            continue
        address = absolute(attributes.get("href", ""), *filter(None, bases), url)
        if address and len(found) < MAX_FEEDS:
            found.setdefault(address, Found(address, " ".join(html.unescape(attributes.get("title", "")).split())))
    return list(found.values())


class Discovery:
    """One search for the feed that is meant by a URL."""

    def __init__(
        self,
        client: FeedClient,
        options: FeedOptions,
        parse_seconds: float,
        sleep: Callable[[float], None] = time.sleep,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        """Prepare; reading one answer may take `parse_seconds` of `cpu`, as in the fetcher."""
        self._client = client
        self._options = options
        self._parse_seconds = parse_seconds
        self._sleep = sleep
        self._cpu = cpu
        self._requests = 0

    def find(self, url: str) -> list[Found]:
        """Return `url` itself if a feed is there, else the feeds of the page.

        Raises:
            NoFeed: there is none; says what is there.
            FetchFailed: nothing could be had.
        """
        answer = self._get(url, url)
        reason = self._no_feed(answer)
        if not reason:
            return [Found(url)]
        found = linked_feeds(answer.body.decode("utf-8", "replace"), answer.url) or self._usual(url, answer.url)
        if not found:
            raise NoFeed(f"{mask_credentials(url)}: {reason}, and no feed was found from there")
        return found

    def _usual(self, url: str, page_url: str) -> list[Found]:
        for path in USUAL_PATHS:
            if self._requests >= MAX_REQUESTS:
                break
            address = urljoin(page_url, path)
            try:
                if not self._no_feed(self._get(address, url)):
                    return [Found(address)]
            except FetchFailed:
                continue
        return []

    def _no_feed(self, answer: Answer) -> str:
        """Return why an answer is no feed, or "" if it is one, or was meant to be one: broken, or too much to read."""
        if answer.status != 200:
            return f"the server answered {answer.status}"
        end = self._cpu() + self._parse_seconds
        try:
            parse_feed(
                answer.body,
                url=answer.url,
                content_type=answer.headers.get("content-type"),
                now=datetime.now(UTC),
                deadline=lambda: self._cpu() > end,
            )
        except NotAFeed as error:
            return str(error)
        except ParseError:
            return ""
        return ""

    def _get(self, url: str, origin: str) -> Answer:
        trail = Trail(url)
        while True:
            if self._requests:
                self._sleep(SPACING_SECONDS)
            self._requests += 1
            own = self._options.for_url(origin, trail.url)
            request = Request(trail.url, headers=own.headers, credentials=own.credentials, seconds=own.timeout_seconds)
            with self._client.get(request) as answer:
                if answer.redirect is None or self._requests >= MAX_REQUESTS:
                    return replace(answer, permit=None)
                trail = trail.follow(answer.status, answer.redirect)


def settle_url(
    url: str, discovery: Discovery, choose: Callable[[list[Found]], Found], say: Callable[[str], None]
) -> str:
    """Return the URL to register for `url`: itself, or that of the feed chosen among those of the page.

    What can't be fetched now is taken as it is: it may well be there tomorrow, and the fetcher will tell.

    Raises:
        NoFeed: there is something else.
    """
    try:
        found = discovery.find(url)
    except FetchFailed as error:
        say(f"could not be checked, taken as it is: {mask_credentials(str(error))}")
        return url
    if [one.url for one in found] == [url]:
        return url
    chosen = choose(found) if len(found) > 1 else found[0]
    say(f"a page with {len(found)} feed{'s' if len(found) > 1 else ''}; took {mask_credentials(chosen.url)}")
    return chosen.url
