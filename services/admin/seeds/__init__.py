"""The seed file: feeds that are registered once per URL, ever, so that what a person removes stays removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from services.admin.registry import Connection, NewFeed, connect, insert_feeds, make_row
from services.admin.seeds.files import read_seeds
from services.admin.subscriptions.first_polls import FirstPolls
from services.admin.subscriptions.importing import CHUNK, in_transaction
from services.fetcher.settings import FetcherSettings
from shared.politeness import politeness_group
from shared.settings import read_settings


@dataclass(frozen=True)
class Seeded:
    """What a seed file gave."""

    listed: int
    """Feeds in it, each once."""
    added: int = 0
    there: int = 0
    """Feeds that were registered already when the file named them first."""


def load_seeds(database_url: str, file: str) -> Seeded:
    """Register the feeds of a seed file that were never seeded before.

    Several processes may load it at once: a URL belongs to the transaction that notes it first. One that ends in the
    middle leaves whole chunks, and the next start adds the rest.

    Args:
        database_url: with the tables of this version.
        file: OPML, CSV, a list of URLs, or YAML; `default` is the one of this package.

    Raises:
        ConfigurationError: the file can't be used, and nothing of it was loaded; names file, line and reason.
        DatabaseUnavailable: as `connect`.
    """
    settings = read_settings(FetcherSettings)
    proxy_hosts = settings.proxy_host_set()
    feeds = read_seeds(file)
    first_polls = FirstPolls(settings.limits().interval_of)
    done = Seeded(len(feeds))
    with connect(database_url) as connection:
        connection.commit()
        connection.prepare_threshold = None  # a PgBouncer in transaction mode may be between us and the server
        for start in range(0, len(feeds), CHUNK):
            chunk = feeds[start : start + CHUNK]
            load = partial(_load, connection, chunk, first_polls, proxy_hosts)
            new, added = in_transaction(connection, load)
            done = replace(done, added=done.added + added, there=done.there + new - added)
    return done


def _load(
    connection: Connection, chunk: Sequence[NewFeed], first_polls: FirstPolls, proxy_hosts: frozenset[str]
) -> tuple[int, int]:
    """Register feeds; return how many were noted as seeded, and how many of them are new."""
    noted = connection.execute(
        'INSERT INTO seeded_feeds (url) SELECT url FROM unnest(%s::text[]) AS url ORDER BY url COLLATE "C"'
        " ON CONFLICT DO NOTHING RETURNING url",
        [[feed.url for feed in chunk]],
    )
    new = {row["url"] for row in noted}
    rows = []
    for feed in chunk:
        if feed.url in new:
            group = politeness_group(feed.url, proxy_hosts)
            rows.append(make_row(feed, feed.url, group, wait_seconds=first_polls.next_wait(group)))
    return len(new), len(insert_feeds(connection, rows)) if rows else 0
