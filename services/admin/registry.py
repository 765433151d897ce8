"""Registers feeds; opens the connections of commands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg import errors
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Json

from services.fetcher.http.options import BadOptions
from shared.database.postgres import LIVELINESS, LOCK_SECONDS, transaction_bounds
from shared.errors import ConfigurationError, DatabaseUnavailable
from shared.observability.secrets import mask_credentials
from shared.politeness import BadUrl, clean_url, politeness_group
from shared.wire.jobs import DEFAULT_SOURCE_TYPE

Connection = psycopg.Connection[DictRow]


@contextmanager
def connect(database_url: str) -> Iterator[Connection]:
    """Yield a connection that commits at the end of the block.

    Raises:
        DatabaseUnavailable: nobody answers, we are refused, or somebody keeps a table locked.
        ConfigurationError: the tables are not there, or of an older version.
    """
    try:
        with psycopg.connect(database_url, row_factory=dict_row, **LIVELINESS) as connection:
            connection.execute(*transaction_bounds(lock_seconds=LOCK_SECONDS))
            yield connection
    except errors.UndefinedTable as error:
        raise ConfigurationError("the tables are not there yet: run `feedmill migrate`") from error
    except (errors.UndefinedColumn, errors.UndefinedFunction) as error:
        raise ConfigurationError("the tables are older than this command: run `feedmill migrate`") from error
    except (psycopg.OperationalError, errors.IdleInTransactionSessionTimeout) as error:
        reason = mask_credentials(" ".join(str(error).split()))
        raise DatabaseUnavailable(f"cannot use {mask_credentials(database_url)}: {reason}") from error


@dataclass(frozen=True)
class NewFeed:
    """A feed to register; `interval_seconds` fixes its interval, otherwise it adapts."""

    url: str
    name: str | None = None
    interval_seconds: float | None = None
    shortest_seconds: float | None = None
    longest_seconds: float | None = None
    priority: int = 0
    config: dict[str, Any] = field(default_factory=dict, repr=False)
    """Its own settings, as the schema of its source type has them: `headers`, `user`, `password`, `timeout_seconds`."""
    source_type: str = DEFAULT_SOURCE_TYPE
    tags: tuple[str, ...] = ()
    """In the form that `clean_tag` returns, each once."""
    site_url: str | None = None
    """Of the site that the feed belongs to, until the feed itself says it."""


FIRST_CLAIM = "1 minute"
"""How long a feed that was fetched while it was added is claimed for the result. If that is lost, the feed is due."""


def add_feed(
    connection: Connection,
    feed: NewFeed,
    proxy_hosts: frozenset[str] = frozenset(),
    claim_id: UUID | None = None,
) -> tuple[int, bool]:
    """Return the feed's id, and whether it is new. A feed that is there already stays as it is.

    With a `claim_id` a new feed is not due, because the result of that claim is written next.

    Raises:
        ConfigurationError: the URL can't be fetched from, or its own settings can't be used; says why.
    """
    url = check_feed(feed)
    row = make_row(feed, url, politeness_group(url, proxy_hosts), claim_id=claim_id)
    if url in (added := insert_feeds(connection, [row])):
        return added[url], True
    there = connection.execute("SELECT id FROM feeds WHERE url = %s", [url]).fetchone()
    assert there is not None
    return there["id"], False


def make_row(
    feed: NewFeed, url: str, group: str, *, wait_seconds: float = 0.0, claim_id: UUID | None = None
) -> dict[str, Any]:
    """Return what `insert_feeds` takes.

    Args:
        feed: the feed; its `url` is not used.
        url: its URL, as `registered_url` returns it.
        group: its politeness group.
        wait_seconds: from now until its first poll is due.
        claim_id: the claim that its first result belongs to.
    """
    given = {name: value for name, value in vars(feed).items() if name != "url"}
    return {
        **given,
        "url": url,
        "politeness_group": group,
        "wait_seconds": wait_seconds,
        "claim_id": str(claim_id) if claim_id else None,
    }


def insert_feeds(connection: Connection, rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Insert feeds, in one statement; return the ids of those that are new, by URL.

    Rows are inserted in the order of their URLs (by code points), as every transaction does that inserts several.
    """
    return {row["url"]: row["id"] for row in connection.execute(*insertion(rows))}


def insertion(rows: Iterable[dict[str, Any]]) -> tuple[LiteralString, list[Any]]:
    """Return the statement of `insert_feeds` and its arguments."""
    return (
        """
        INSERT INTO feeds (url, name, site_url, tags, interval_seconds, shortest_seconds, longest_seconds, priority,
            politeness_group, source_type, source_config, next_fetch_at, claim_id, claim_expires_at)
        SELECT url, name, site_url, tags, interval_seconds, shortest_seconds, longest_seconds, priority,
            politeness_group, source_type, config, now() + make_interval(secs => wait_seconds), claim_id,
            CASE WHEN claim_id IS NOT NULL THEN now() + %s::interval END
        FROM json_to_recordset(%s) AS given (url text, name text, site_url text, tags text[],
            interval_seconds float8, shortest_seconds float8, longest_seconds float8, priority int,
            politeness_group text, source_type text, config jsonb,
            wait_seconds float8, claim_id uuid)
        ORDER BY url COLLATE "C"
        ON CONFLICT (url) DO NOTHING RETURNING id, url
        """,
        [FIRST_CLAIM, Json(list(rows), dumps=partial(json.dumps, ensure_ascii=False))],
    )


def is_registered(connection: Connection, url: str) -> bool:
    """Return whether there is a feed of this URL, in the form that `check_feed` gives it."""
    return connection.execute("SELECT 1 FROM feeds WHERE url = %s", [url]).fetchone() is not None


def check_feed(feed: NewFeed) -> str:
    """Return the feed's URL as it is registered.

    Raises:
        ConfigurationError: the URL can't be fetched from, or its own settings can't be used; says why.
    """
    try:
        return registered_url(feed)
    except (BadUrl, BadOptions) as error:
        shown = mask_credentials("".join(feed.url.split()))  # a space within a password would end the URL
        raise ConfigurationError(f"{shown[:200]}: {error}") from error


def registered_url(feed: NewFeed) -> str:
    """Return the feed's URL as it is registered. The one rule for one feed and for lists.

    Raises:
        BadUrl: the URL can't be fetched from.
        BadOptions: the source type is not installed, or the feed's own settings can't be used.
    """
    from services.fetcher.sources import find_source_type  # the readers of feeds: a list of feeds needs none

    find_source_type(feed.source_type).read_config(feed.config)
    return clean_url(feed.url)
