"""The writer's SQL for feeds: their state, the log of attempts, hosts that asked for a pause."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import args_row
from psycopg.types.json import Json
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from services.writer.schedule.advance import advance
from services.writer.schedule.feed_state import FeedState, NewItems, Rules
from services.writer.schedule.publication_rate import PublicationRate
from shared.database.postgres import Connection
from shared.politeness import MAX_SERVER_WAIT_SECONDS, politeness_group
from shared.wire.results import FeedFetched

log = logging.getLogger(__name__)

FOREIGN_THROTTLE_SECONDS = 30.0
"""The longest pause of a host after a 429 that a redirect from another host ran into."""

_STATE_COLUMNS = tuple(field.name for field in fields(FeedState) if field.name != "has_own_headers")
_CHANGING = tuple(name for name in _STATE_COLUMNS if name not in {"id", "url", "resumed_at"})

_LOCK = f"""
SELECT {", ".join(_STATE_COLUMNS)}, source_config ?| '{{headers,user,password}}' AS has_own_headers
FROM feeds WHERE id = ANY(%b) ORDER BY id FOR NO KEY UPDATE
"""  # noqa: S608 - names of ours

# One statement for all feeds of a batch; the table itself knows its columns' types.
_UPDATE = f"""
UPDATE feeds SET ({", ".join(_CHANGING)}) = ({", ".join(f"new.{name}" for name in _CHANGING)})
FROM json_populate_recordset(NULL::feeds, %s) AS new WHERE feeds.id = new.id
"""  # noqa: S608 - names of ours

_LOGGED_AS_SENT = (
    *("result_id", "feed_id", "queued_at", "elapsed_seconds", "final", "attempt", "status"),
    *("wire_bytes", "decoded_bytes", "tier", "error_class", "error"),
)
"""Columns of `feed_fetch_log` that are fields of `FeedFetched`."""

_LOGGED = (
    *(*_LOGGED_AS_SENT, "started_at", "ok", "outcome"),
    *("items_seen", "items_new", "items_dated", "items_full", "items_enriched", "items_language", "items_topic"),
    *("items_duplicate", "items_duplicate_title", "items_duplicate_text"),
)
_LOG = f"""
INSERT INTO feed_fetch_log ({", ".join(_LOGGED)})
SELECT {", ".join(_LOGGED)} FROM json_populate_recordset(NULL::feed_fetch_log, %s)
"""  # noqa: S608 - names of ours

_RATE = TypeAdapter(PublicationRate)


def _to_json(rows: Any) -> bytes:
    return to_json(rows, inf_nan_mode="strings")


def write_rate(rate: PublicationRate) -> Any:
    """Return the value of the column `pace`."""
    return _RATE.dump_python(rate, by_alias=True)


def read_rate(value: Any) -> PublicationRate:
    """Return the publication rate in the column `pace`; if it can't be read, a new one, so that polling goes on."""
    if not value:
        return PublicationRate()
    try:
        rate = _RATE.validate_python(value)
    except ValidationError as error:
        log.warning("a publication rate can't be read and is estimated anew: %s", error.errors(include_url=False)[0])
        return PublicationRate()
    if not rate.is_sound:
        log.warning("a publication rate can't be true and is estimated anew: %s", rate)
        return PublicationRate()
    return rate


async def lock_feeds(connection: Connection, ids: Iterable[int]) -> dict[int, FeedState]:
    """Return the feeds that still exist, locked in the order of their ids."""
    async with connection.cursor(row_factory=args_row(FeedState)) as cursor:
        await cursor.execute(_LOCK.encode(), [sorted(ids)])
        feeds = {feed.id: feed for feed in await cursor.fetchall()}
    for feed in feeds.values():
        feed.pace = read_rate(feed.pace)  # it was JSON until here
    return feeds


async def find_logged(connection: Connection, batch: Sequence[FeedFetched]) -> set[UUID]:
    """Return the ids of the results that were written before."""
    cursor = await connection.execute(
        "SELECT result_id FROM feed_fetch_log WHERE result_id = ANY(%b)", [[fetched.result_id for fetched in batch]]
    )
    return {row["result_id"] for row in await cursor.fetchall()}


async def log_attempts(
    connection: Connection, batch: Sequence[FeedFetched], new_items: Mapping[UUID, NewItems], now: datetime
) -> None:
    """Write a row for each attempt, with how many articles were new in it, and what these are like."""
    if batch:
        rows = [_log_row(fetched, new_items[fetched.result_id], now) for fetched in batch]
        await connection.execute(_LOG.encode(), [Json(rows, dumps=_to_json)])


def _log_row(fetched: FeedFetched, new: NewItems, now: datetime) -> dict[str, object]:
    """Return the attempt by column. It began between its job's queueing and now, whatever a fetcher's clock says."""
    return {
        **{name: getattr(fetched, name) for name in _LOGGED_AS_SENT},
        "started_at": max(min(fetched.started_at, now), min(fetched.queued_at, now)),
        "ok": fetched.outcome.is_success,
        "outcome": fetched.outcome.value,
        "items_seen": fetched.items_seen,
        "items_new": new.count,
        "items_dated": len(new.published),
        "items_full": new.full,
        "items_enriched": new.enriched,
        "items_language": new.with_language,
        "items_topic": new.with_topic,
        "items_duplicate": new.duplicates,
        "items_duplicate_title": new.duplicates_by_title,
        "items_duplicate_text": new.duplicates_by_text,
    }


async def note_throttles(connection: Connection, batch: Sequence[FeedFetched], proxy_hosts: frozenset[str]) -> None:
    """Store which hosts asked for a pause: fetchers know it, too, but forget it when they restart.

    A pause lasts a day at most, whatever a fetcher's clock says. If a redirect from another host led there, it lasts
    only seconds: the redirect's author may have chosen the one page that asks for a day. Past pauses are deleted last,
    without waiting for any lock.
    """
    until: dict[tuple[str, float], datetime] = {}
    for fetched in batch:
        if fetched.status == 429 and fetched.not_before is not None:
            group = politeness_group(fetched.final_url or fetched.url, proxy_hosts)
            is_own = group == politeness_group(fetched.url, proxy_hosts)
            key = group, MAX_SERVER_WAIT_SECONDS if is_own else FOREIGN_THROTTLE_SECONDS
            until[key] = max(until.get(key, fetched.not_before), fetched.not_before)
    if not until:
        return
    await connection.execute(
        """
        INSERT INTO throttled_groups (politeness_group, until)
        SELECT politeness_group, max(least(until, now() + make_interval(secs => most)))
        FROM unnest(%b::text[], %b::float8[], %b::timestamptz[]) AS asked (politeness_group, most, until)
        GROUP BY 1 ORDER BY 1
        ON CONFLICT (politeness_group) DO UPDATE SET until = greatest(throttled_groups.until, excluded.until)
        """,
        [[group for group, _ in until], [most for _, most in until], list(until.values())],
    )
    await connection.execute(
        """
        DELETE FROM throttled_groups WHERE politeness_group IN (
            SELECT politeness_group FROM throttled_groups WHERE until < now() FOR UPDATE SKIP LOCKED
        )
        """
    )


async def advance_feeds(
    connection: Connection,
    feeds: Mapping[int, FeedState],
    batch: Sequence[FeedFetched],
    new_items: Mapping[UUID, NewItems],
    originals: Mapping[int, int | None],
    now: datetime,
    rules: Rules,
    proxy_hosts: frozenset[str],
) -> Counter[str]:
    """Write the feeds' states after the results; return how claims ended (`store.Written.claims`).

    `originals` says of which feed some of them are a duplicate, or of none.
    """
    after = dict(feeds)
    claims: Counter[str] = Counter()
    for fetched in batch:
        if end := _end_of_claim(after[fetched.feed_id], fetched):
            claims[end] += 1
        after[fetched.feed_id] = advance(
            after[fetched.feed_id], fetched, new=new_items[fetched.result_id], now=now, rules=rules
        )
    for id_, original in originals.items():
        if after[id_] is not feeds[id_]:
            after[id_].duplicate_of = original
    changed = [state for id_, state in after.items() if vars(state) != vars(feeds[id_])]
    moved = sorted((s for s in changed if s.url != feeds[s.id].url), key=lambda state: state.url)  # the order of locks
    if changed:
        rows = [vars(state) | {"pace": write_rate(state.pace)} for state in changed]
        await connection.execute(_UPDATE.encode(), [Json(rows, dumps=_to_json)])
    for state in moved:
        await _move(connection, state, politeness_group(state.url, proxy_hosts))
    return claims


def _end_of_claim(feed: FeedState, fetched: FeedFetched) -> str | None:
    """Return how this result ends the claim that it belongs to; None if the job comes back."""
    if feed.claim_id != fetched.claim_id:
        return "late"
    if not fetched.final:
        return None
    if not fetched.outcome.is_attempt:
        return "dropped"
    return "completed" if fetched.outcome.is_success else "failed"


async def _move(connection: Connection, feed: FeedState, group: str) -> None:
    """Give a feed its new URL. If another feed that is polled has it, disable this one as a duplicate."""
    cursor = await connection.execute(
        """
        UPDATE feeds SET url = %(url)s, politeness_group = %(group)s
        WHERE id = %(id)s AND NOT EXISTS (SELECT 1 FROM feeds WHERE url = %(url)s)
        """,
        {"id": feed.id, "url": feed.url, "group": group},
    )
    if cursor.rowcount:
        return
    cursor = await connection.execute(
        """
        UPDATE feeds
        SET enabled = false,
            disabled_reason = left(format('duplicate: moved for good to the URL of feed %%s', other.id), 500)
        FROM (SELECT id FROM feeds WHERE url = %(url)s AND enabled) AS other
        WHERE feeds.id = %(id)s AND feeds.id <> other.id
        RETURNING disabled_reason
        """,
        {"id": feed.id, "url": feed.url},
    )
    if row := await cursor.fetchone():
        log.warning("feed disabled: %s", row["disabled_reason"], extra={"feed_id": feed.id})
