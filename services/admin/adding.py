"""Adds a feed: looks for it behind a URL, registers it, and writes the result if that look was its first poll."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from services.admin import discovery, registry
from services.admin.discovery import Found
from services.admin.host_slot import host_slot
from services.admin.registry import NewFeed
from services.fetcher.__main__ import make_client
from services.fetcher.settings import FetcherSettings
from services.writer.handler import WriteArticles
from services.writer.settings import WriterSettings
from shared.database.postgres import Database
from shared.settings import read_settings
from shared.wire.results import FeedFetched


def find_feed(
    database_url: str,
    feed: NewFeed,
    *,
    check: bool | None,
    choose: Callable[[list[Found]], Found],
    say: Callable[[str], None],
) -> Found:
    """Return the feed to register: that of a page, if the URL is a page's.

    Args:
        database_url: registered feeds, and the lock that spaces requests to a host.
        feed: its URL, as `check_feed` returns it, and its own settings.
        check: whether to request the URL; None: only if it does not look like a feed's and is not registered.
        choose: returns one of several feeds of a page.
        say: shows a sentence to the person.

    Raises:
        NoFeed: something else is there.
    """
    url = feed.url
    if check is False or (check is None and discovery.looks_like_feed(url)):
        return Found(url)
    settings = read_settings(FetcherSettings)
    with registry.connect(database_url) as connection:
        if check is None and registry.is_registered(connection, url):
            return Found(url)
        connection.commit()  # the slots begin transactions of their own
        client = make_client(settings)
        try:
            search = discovery.Discovery(
                client, settings, feed.config, lambda group, seconds: host_slot(connection, group, seconds)
            )
            return discovery.choose_feed(url, search, choose, say)
        finally:
            client.close()


def register(database_url: str, feed: NewFeed, found: Found, proxy_hosts: frozenset[str]) -> tuple[int, bool]:
    """Register the feed that was found for `feed`; return its id, and whether it is new.

    A new feed that was requested already has had its first poll: the result is written, and the feed is not due.
    """
    config = discovery.config_for(feed.config, feed.url, found.url)
    fetched = found.fetched if found.fetched and found.fetched.status is not None else None
    with registry.connect(database_url) as connection:
        claim_id = fetched.claim_id if fetched else None
        new = replace(feed, url=found.url, config=config)
        id_, is_new = registry.add_feed(connection, new, proxy_hosts, claim_id)
    if is_new and fetched:
        asyncio.run(_write(database_url, fetched.model_copy(update={"feed_id": id_})))
    return id_, is_new


async def _write(database_url: str, fetched: FeedFetched) -> None:
    """Write articles, validators and state in one transaction."""
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
