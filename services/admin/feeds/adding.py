"""Adds a feed: checks what a person gave, looks for the feed behind a URL, writes what that look fetched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from services.admin import registry
from services.admin.feeds import discovery
from services.admin.feeds.configs import check_config, config_for
from services.admin.feeds.discovery import Found
from services.admin.feeds.edits import check_spans
from services.admin.feeds.host_slot import patient_slot
from services.admin.feeds.tags import changed_tags
from services.admin.feeds.urls import UrlRules
from services.admin.registry import NewFeed
from services.fetcher.__main__ import make_client
from services.fetcher.settings import FetcherSettings
from services.writer.handler import WriteArticles
from services.writer.settings import WriterSettings
from shared.database.postgres import Database
from shared.errors import FeedmillError
from shared.settings import read_settings
from shared.wire.jobs import DEFAULT_SOURCE_TYPE
from shared.wire.results import FeedFetched

PATIENCE_SECONDS = 60.0
"""How long a search may wait for a host that others ask, too."""

REQUEST_SECONDS = 20.0
"""The longest time of one request of a search, since a person waits."""


class SeveralFeeds(FeedmillError):
    """A page links to several feeds, and the person wants to choose."""

    def __init__(self, url: str, feeds: list[Found]) -> None:
        super().__init__(
            f"{url}: this page links to {len(feeds)} feeds. Choose one of `candidates`, and add its URL with"
            " `check` false"
        )
        self.feeds = feeds


@dataclass(frozen=True)
class Looked:
    """The feed to register, and what a person should know."""

    found: Found
    notes: tuple[str, ...] = ()


def check_feed(given: Mapping[str, Any], rules: UrlRules, found_at: str | None = None) -> NewFeed:
    """Return the feed to register, with its URL as it is registered.

    Args:
        given: the fields of a `NewFeed`.
        rules: which URLs can be polled.
        found_at: the page that led to its URL, to whose origin headers and credentials belong.

    Raises:
        Invalid: a value can't be used; says which and why.
        ConfigurationError: a tag can't be used.
    """
    feed = NewFeed(**given)
    check_spans(vars(feed))
    url, config = rules.read(feed.url), check_config(feed.source_type, feed.config)
    return replace(
        feed,
        url=url,
        config=config_for(config, rules.read(found_at), url) if found_at else config,
        tags=tuple(changed_tags((), feed.tags, (), "body.tags")),
    )


def needs_look(feed: NewFeed, check: bool | None) -> bool:
    """Return whether the URL is to be requested; with `check` None only if it does not look like a feed's.

    A source type of its own reads something else than feeds: its URL is only requested if a person says so.
    """
    if check is None:
        return feed.source_type == DEFAULT_SOURCE_TYPE and not discovery.looks_like_feed(feed.url)
    return check


@dataclass(frozen=True)
class How:
    """What a person wants a search to do."""

    unless_registered: bool = True
    """Don't request a URL that is registered already."""
    ask: bool = False
    """Of several feeds of a page let the person choose; otherwise the first is taken."""


def look(database_url: str, feed: NewFeed, settings: FetcherSettings, how: How) -> Looked:
    """Request the feed's URL; return the feed to register: that of a page, if the URL is a page's.

    It waits for its slots, so it belongs in a thread. It ends after PATIENCE_SECONDS and a request, at most.

    Args:
        database_url: the lock that spaces requests to a host.
        feed: as `check_feed` returns it.
        settings: the fetcher's.
        how: what the person wants.

    Raises:
        NoFeed: something else is there.
        SeveralFeeds: see `How.ask`.
        HostBusy: too many others ask the same host.
    """
    settings, config = _in_a_hurry(settings, feed.config)
    end = time.monotonic() + PATIENCE_SECONDS
    notes: list[str] = []

    def choose(found: list[Found]) -> Found:
        if how.ask:
            raise SeveralFeeds(feed.url, found)
        return found[0]

    with registry.connect(database_url) as connection:
        if how.unless_registered and registry.is_registered(connection, feed.url):
            return Looked(Found(feed.url))
        connection.commit()  # the slots begin transactions of their own
        client = make_client(settings)
        slot = patient_slot(connection, PATIENCE_SECONDS, lambda: end - time.monotonic())
        try:
            search = discovery.Discovery(client, settings, config, slot, source_type=feed.source_type)
            return Looked(discovery.choose_feed(feed.url, search, choose, notes.append), tuple(notes))
        finally:
            client.close()


def _in_a_hurry(settings: FetcherSettings, config: dict[str, Any]) -> tuple[FetcherSettings, dict[str, Any]]:
    """Return settings and a feed's config with which no request takes longer than REQUEST_SECONDS."""
    seconds = min(settings.fetch_deadline_seconds, REQUEST_SECONDS)
    if (config.get("timeout_seconds") or 0.0) > REQUEST_SECONDS:
        config = config | {"timeout_seconds": REQUEST_SECONDS}
    return settings.model_copy(update={"fetch_deadline_seconds": seconds}), config


def found_feed(feed: NewFeed, found: Found) -> tuple[NewFeed, FeedFetched | None]:
    """Return the feed to register for what was found, and the result of its first poll, if it was requested."""
    fetched = found.fetched if found.fetched and found.fetched.status is not None else None
    config = config_for(feed.config, feed.url, found.url)
    return replace(feed, url=found.url, config=config), fetched


def write_first_poll(database_url: str, id_: int, fetched: FeedFetched) -> None:
    """Write the result of a new feed's first poll: articles, validators and state, in one transaction."""
    asyncio.run(_write(database_url, fetched.model_copy(update={"feed_id": id_})))


async def _write(database_url: str, fetched: FeedFetched) -> None:
    settings = read_settings(WriterSettings)
    database = Database(
        database_url, size=1, prepared=settings.prepared_statements, statement_seconds=settings.statement_seconds
    )
    async with database.open():
        await database.require_schema()
        write = WriteArticles(
            database,
            rules=settings.rules(),
            proxy_hosts=settings.proxy_host_set(),
            now=lambda: datetime.now(UTC),
            policy=settings.policy(),
        )
        await write([fetched])
