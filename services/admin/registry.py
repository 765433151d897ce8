"""The feed registry as the command sees it: add, list, count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
from psycopg import errors
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb

from services.fetcher.http.options import BadOptions, read_options
from shared.database.postgres import LIVELINESS, transaction_bounds
from shared.errors import ConfigurationError, DatabaseUnavailable
from shared.observability.secrets import mask_credentials
from shared.politeness import BadUrl, clean_url, politeness_group

Connection = psycopg.Connection[DictRow]


@contextmanager
def connect(database_url: str) -> Iterator[Connection]:
    """Yield a connection that commits at the end of the block.

    Raises:
        DatabaseUnavailable: nobody answers, or we are refused.
        ConfigurationError: the tables are not there.
    """
    try:
        with psycopg.connect(database_url, row_factory=dict_row, **LIVELINESS) as connection:
            connection.execute(*transaction_bounds())
            yield connection
    except errors.UndefinedTable as error:
        raise ConfigurationError("the tables are not there yet: run `feedmill migrate`") from error
    except (psycopg.OperationalError, errors.IdleInTransactionSessionTimeout) as error:
        reason = mask_credentials(" ".join(str(error).split()))
        raise DatabaseUnavailable(f"cannot use {mask_credentials(database_url)}: {reason}") from error


@dataclass(frozen=True)
class NewFeed:
    """A feed to register; `interval_seconds` fixes its interval, otherwise it adapts."""

    url: str
    name: str | None = None
    interval_seconds: float | None = None
    priority: int = 0
    config: dict[str, Any] = field(default_factory=dict, repr=False)
    """Its own `headers`, `user` and `password`, `timeout_seconds` (services/fetcher/http/options.py)."""


FIRST_CLAIM = "1 minute"
"""How long a feed that was asked while it was added waits for what came of it. If that is lost, it is due."""


def add_feed(
    connection: Connection,
    feed: NewFeed,
    proxy_hosts: frozenset[str] = frozenset(),
    claim_id: UUID | None = None,
) -> tuple[int, bool]:
    """Return the feed's id, and whether it is new. A feed that is there already stays as it is.

    With a `claim_id` a new feed is not due: the result of that claim is about to be written.

    Raises:
        ConfigurationError: the URL can't be fetched from, or its own settings can't be used; says why.
    """
    url = check_feed(feed)
    group = politeness_group(url, proxy_hosts)
    row = connection.execute(
        """
        INSERT INTO feeds (url, name, interval_seconds, priority, politeness_group, source_config, claim_id,
            claim_expires_at)
        VALUES (%(url)s, %(name)s, %(interval)s, %(priority)s, %(group)s, %(config)s, %(claim_id)s,
            CASE WHEN %(claim_id)s::uuid IS NOT NULL THEN now() + %(span)s::interval END)
        ON CONFLICT (url) DO NOTHING RETURNING id
        """,
        {
            "url": url,
            "name": feed.name,
            "interval": feed.interval_seconds,
            "priority": feed.priority,
            "group": group,
            "config": Jsonb(feed.config),
            "claim_id": claim_id,
            "span": FIRST_CLAIM,
        },
    ).fetchone()
    if row is not None:
        return row["id"], True
    there = connection.execute("SELECT id FROM feeds WHERE url = %s", [url]).fetchone()
    assert there is not None
    return there["id"], False


def is_registered(connection: Connection, url: str) -> bool:
    """Return whether there is a feed of this URL, in the form that `check_feed` gives it."""
    return connection.execute("SELECT 1 FROM feeds WHERE url = %s", [url]).fetchone() is not None


def check_feed(feed: NewFeed) -> str:
    """Return the feed's URL as it is registered.

    Raises:
        ConfigurationError: the URL can't be fetched from, or its own settings can't be used; says why.
    """
    try:
        read_options(feed.config)
        return clean_url(feed.url)
    except (BadUrl, BadOptions) as error:
        shown = mask_credentials("".join(feed.url.split()))  # a space within a password would end the URL
        raise ConfigurationError(f"{shown[:200]}: {error}") from error


def make_config(
    headers: Sequence[str], credentials: tuple[str, str] | None, timeout_seconds: float | None
) -> dict[str, Any]:
    """Return a feed's own settings as they are stored; `headers` are lines `Name: value`. Not checked further.

    Raises:
        ConfigurationError: a header without a colon.
    """
    config: dict[str, Any] = {}
    if not all(":" in line for line in headers):
        raise ConfigurationError("--header: expected 'Name: value'")
    if headers:
        lines = (line.partition(":") for line in headers)
        config["headers"] = {name.strip(): value.strip() for name, _, value in lines}
    if credentials:
        config["user"], config["password"] = credentials
    if timeout_seconds is not None:
        config["timeout_seconds"] = timeout_seconds
    return config


def list_feeds(connection: Connection) -> list[dict[str, Any]]:
    """Return what a person wants to see of every feed, by id. Credentials in URLs are masked."""
    rows = connection.execute(
        """
        SELECT id, url, coalesce(name, title) AS name, enabled, disabled_reason, priority, interval_seconds,
            poll_seconds, next_fetch_at, last_attempt_at, last_success_at, last_outcome, last_error, failures,
            claim_expires_at > now() AS in_flight
        FROM feeds ORDER BY id
        """
    ).fetchall()
    return [row | {"url": mask_credentials(row["url"])} for row in rows]
