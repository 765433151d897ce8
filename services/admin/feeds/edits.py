"""Changes of feeds: register one, change how it is polled, poll it now, remove it. Each leaves its audit row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg import errors, sql
from psycopg.types.json import Json

from services.admin import registry
from services.admin.actor import Actor, audit
from services.admin.errors import Conflict, Invalid
from services.admin.feeds.configs import check_config, config_for, merge_config
from services.admin.feeds.listing import no_feed
from services.admin.feeds.tags import changed_tags
from services.admin.feeds.urls import UrlRules
from services.admin.registry import NewFeed, make_row
from services.writer.schedule.bounds import next_slot
from shared.database.postgres import Connection

RESTART_SECONDS = 300.0
"""A feed that is enabled again has its first poll within this time, at a moment that depends on its id."""

_EDITED = (
    "url", "name", "tags", "enabled", "priority", "interval_seconds", "shortest_seconds", "longest_seconds",
    "source_type", "source_config", "date_order",
)  # fmt: skip

_READ = sql.SQL("SELECT id, {}, created_at, now() AS now FROM feeds WHERE id = %s").format(
    sql.SQL(", ").join(map(sql.Identifier, _EDITED))
)

_FRESH = {
    "etag": None,
    "last_modified": None,
    "validators_url": None,
    "body_hash": None,
    "moved_to": None,
    "moved_since": None,
    "moved_sightings": 0,
}
"""Columns of a feed whose next body is read like a first one."""


async def lock_feed(connection: Connection, id_: int) -> dict[str, Any]:
    """Return what people edit of a feed, with secrets; nobody else changes it before the transaction ends.

    Raises:
        NotFound: there is no such feed.
    """
    return await _read(connection, _READ + sql.SQL(" FOR NO KEY UPDATE"), id_)


async def _read(connection: Connection, statement: sql.Composed, id_: int) -> dict[str, Any]:
    cursor = await connection.execute(statement, [id_])
    row = await cursor.fetchone()
    if row is None:
        raise no_feed(id_)
    return row


def edition_of(feed: Mapping[str, Any]) -> str:
    """Return a hash of what people edit of a feed, as `lock_feed` returns it. Polls don't change it.

    It covers secrets, and everybody who reads sees it. So it is keyed with a moment that no answer shows, and short:
    nobody can try out passwords on it.
    """
    edited = json.dumps([feed[name] for name in _EDITED], sort_keys=True, default=str)
    key = feed["created_at"].isoformat().encode()
    return hashlib.blake2b(edited.encode(), digest_size=6, key=key).hexdigest()


async def read_edition(connection: Connection, id_: int) -> str:
    """Return the feed's `edition_of`. Raises NotFound."""
    return edition_of(await _read(connection, _READ, id_))


async def create_feed(
    connection: Connection, actor: Actor, feed: NewFeed, rules: UrlRules, claim_id: UUID | None = None
) -> tuple[int, bool]:
    """Register a feed; return its id, and whether it is new. A feed that is there already stays as it is.

    With a `claim_id` a new feed is not due, because the result of that claim is written next.

    Args:
        connection: in the transaction.
        actor: who registers it.
        feed: checked by `adding.check_feed`.
        rules: how hosts are grouped.
        claim_id: of the request that found it.
    """
    row = make_row(feed, feed.url, rules.group_of(feed.url), claim_id=claim_id)
    cursor = await connection.execute(*registry.insertion([row]))
    if added := await cursor.fetchone():
        shown = {name: row[name] for name in ("url", "name", "tags", "interval_seconds", "priority", "source_type")}
        await audit(connection, actor, "feed.create", added["id"], shown | {"config": sorted(feed.config)})
        return added["id"], True
    cursor = await connection.execute("SELECT id FROM feeds WHERE url = %s", [feed.url])
    there = await cursor.fetchone()
    if there is None:
        raise Conflict("the feed was removed at this moment: try again")
    return there["id"], False


async def change_feed(
    connection: Connection, actor: Actor, feed: Mapping[str, Any], given: Mapping[str, Any], rules: UrlRules
) -> None:
    """Change a feed. A shorter interval counts from now; a feed that is enabled again starts without its failures.

    Args:
        connection: in the transaction of `lock_feed`.
        actor: who changes it.
        feed: what `lock_feed` returned.
        given: what is to change: columns, `config` (merged into its settings), `add_tags`, `remove_tags`.
        rules: which URLs can be polled.

    Raises:
        Invalid: a value can't be used.
        Conflict: another feed has this URL.
    """
    columns = _plan(feed, given, rules)
    if not columns:
        return
    earliest = [columns[name] for name in ("interval_seconds", "longest_seconds") if columns.get(name)]
    if "url" in columns:
        earliest = [0.0]
    assignments = sql.SQL(", ").join(
        sql.SQL("{} = {}").format(sql.Identifier(column), sql.Placeholder(column)) for column in columns
    )
    if earliest and "next_fetch_at" not in columns:
        assignments += sql.SQL(", next_fetch_at = least(next_fetch_at, now() + make_interval(secs => %(earliest)s))")
        columns["earliest"] = min(earliest)
    try:
        await connection.execute(
            sql.SQL("UPDATE feeds SET {} WHERE id = %(id)s").format(assignments),
            {**_for_sql(columns), "id": feed["id"]},
        )
    except errors.UniqueViolation:
        raise Conflict(f"another feed has this URL already: `feedmill feeds show {given['url']}`") from None
    if {"url", "source_type", "date_order"} & columns.keys():
        await connection.execute("UPDATE feed_listings SET full_at = NULL WHERE feed_id = %s", [feed["id"]])
    shown = {name: sorted(value or ()) if name == "config" else value for name, value in given.items()}
    await audit(connection, actor, "feed.update", feed["id"], shown)


def _for_sql(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: Json(value) if name == "source_config" else value for name, value in columns.items()}


def _plan(feed: Mapping[str, Any], given: Mapping[str, Any], rules: UrlRules) -> dict[str, Any]:
    """Return the new values of columns."""
    plain = ("name", "priority", "interval_seconds", "shortest_seconds", "longest_seconds")
    columns = {name: given[name] for name in plain if name in given}
    if "date_order" in given and given["date_order"] != feed["date_order"]:
        columns |= _FRESH | {"date_order": given["date_order"], "ambiguous_since": None}
    columns |= _plan_reading(feed, given, rules)
    if {"tags", "add_tags", "remove_tags"} & given.keys():
        present = changed_tags((), given["tags"] or (), (), "body.tags") if "tags" in given else feed["tags"]
        columns["tags"] = changed_tags(present, given.get("add_tags") or (), given.get("remove_tags") or ())
    if given.get("enabled"):
        first = next_slot(feed["id"], after=feed["now"], period=RESTART_SECONDS)
        columns |= {"enabled": True, "disabled_reason": None, "failures": 0, "gone_since": None, "next_fetch_at": first}
        columns |= {} if feed["enabled"] else {"resumed_at": feed["now"]}
    elif "enabled" in given:
        columns |= {"enabled": False, "disabled_reason": "by hand"}
    check_spans({**feed, **columns})
    return columns


def check_spans(feed: Mapping[str, Any]) -> None:
    """Raise Invalid if the shortest interval is longer than the longest."""
    shortest, longest = feed["shortest_seconds"], feed["longest_seconds"]
    if shortest and longest and shortest > longest:
        raise Invalid(
            f"--shortest (shortest_seconds, {shortest:g}) is more than --longest (longest_seconds, {longest:g}): give a"
            " span from the shorter to the longer one",
            "body.shortest_seconds",
        )


def _plan_reading(feed: Mapping[str, Any], given: Mapping[str, Any], rules: UrlRules) -> dict[str, Any]:
    """Return the new values of URL, source type and config, which have to fit each other."""
    if not {"url", "source_type", "config"} & given.keys():
        return {}
    columns: dict[str, Any] = {}
    config, source_type = feed["source_config"], given.get("source_type", feed["source_type"])
    if "url" in given and (url := rules.read(given["url"])) != feed["url"]:
        config = config_for(config, feed["url"], url)  # secrets stay with the origin that they are for
        columns |= _FRESH | {"url": url, "politeness_group": rules.group_of(url)}
    if source_type != feed["source_type"]:
        columns |= _FRESH | {"source_type": source_type}
    if "config" in given:
        config = merge_config(config, given["config"])
    if "config" in given or source_type != feed["source_type"]:
        config = check_config(source_type, config)
    return columns | ({"source_config": config} if config != feed["source_config"] else {})


async def make_due(connection: Connection, actor: Actor, id_: int) -> None:
    """Let a feed be due at once, and be read in full. A job that is under way keeps its claim.

    A feed whose last job was dropped without a request waits although it has no job. That wait ends, too.

    Raises:
        NotFound: there is no such feed.
        Conflict: it is disabled.
    """
    feed = await lock_feed(connection, id_)
    if not feed["enabled"]:
        raise Conflict(f"feed {id_} is disabled: `feedmill feeds set {id_} --enable`")
    await connection.execute(
        """
        UPDATE feeds SET next_fetch_at = least(next_fetch_at, now()),
            claim_expires_at = CASE WHEN claim_id IS NOT NULL THEN claim_expires_at END
        WHERE id = %s
        """,
        [id_],
    )
    await connection.execute("UPDATE feed_listings SET full_at = NULL WHERE feed_id = %s", [id_])
    await audit(connection, actor, "feed.fetch", id_)


async def remove_feed(connection: Connection, actor: Actor, id_: int) -> int:
    """Remove a feed with its log and its pending articles; return how many articles that were."""
    # Cascading deletes lock rows in any order; consumers lock them in the order of md5.
    await connection.execute("SELECT FROM feeds WHERE id = %s FOR UPDATE", [id_])
    cursor = await connection.execute("SELECT FROM pending_articles WHERE feed_id = %s ORDER BY md5 FOR UPDATE", [id_])
    pending = cursor.rowcount
    cursor = await connection.execute("DELETE FROM feeds WHERE id = %s RETURNING url", [id_])
    if (row := await cursor.fetchone()) is None:
        raise no_feed(id_)
    await audit(connection, actor, "feed.delete", id_, {"url": row["url"], "pending_articles": pending})
    return pending
