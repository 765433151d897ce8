"""Registered feeds: find one, list them, look at one, change how it is polled, poll it now, remove it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from psycopg import sql

from services.admin.registry import Connection
from services.admin.tags import HAS_TAG, clean_tag
from services.fetcher.outcomes import RetryRules
from services.writer.schedule.bounds import next_slot
from shared.database import postgres
from shared.errors import ConfigurationError
from shared.observability.secrets import mask_credentials
from shared.wire.outcomes import Outcome

RESTART_SECONDS = 300.0
"""A feed that is enabled again has its first poll within this time, at a moment that depends on its id."""

WAITS_FOR_RETRY = "(enabled AND claim_id IS NOT NULL AND claim_expires_at > now() AND issued_at IS NULL)"
"""SQL: the feed's job failed softly or was skipped, and waits in the retry queue (or is on its way back)."""

_RETRIED = ", ".join(f"'{outcome}'" for outcome in Outcome if outcome.is_attempt and not outcome.is_final)

FAILING = f"(enabled AND (failures > 0 OR coalesce(last_outcome, '') IN ({_RETRIED})))"
"""SQL: the last attempt failed, whether or not it is to be retried."""

# The feed's next retry: its number (0: the job was deferred without a request) and when it leaves the retry queue.
_RETRY = f"""
{FAILING} AS failing,
CASE WHEN {WAITS_FOR_RETRY} THEN claim_expires_at - make_interval(secs => %(claim_seconds)s) END AS retry_at,
CASE WHEN {WAITS_FOR_RETRY} THEN (
    SELECT attempt + (outcome IN ({_RETRIED}))::int FROM feed_fetch_log
    WHERE feed_id = feeds.id ORDER BY started_at DESC, id DESC LIMIT 1
) END AS retry,
CASE WHEN {WAITS_FOR_RETRY} THEN %(max_retries)s::int END AS retries
"""  # noqa: S608 - our own text

_LIST = f"""
SELECT id, url, coalesce(name, title) AS name, tags, enabled, disabled_reason, priority, interval_seconds, poll_seconds,
    next_fetch_at, last_attempt_at, last_success_at, last_outcome, last_error, failures,
    claim_expires_at > now() AS in_flight, {_RETRY}
FROM feeds
WHERE (%(text)s::text IS NULL OR strpos(lower(concat_ws(' ', name, title, url)), lower(%(text)s)) > 0)
    AND (%(tag)s::text IS NULL OR {HAS_TAG})
    AND (%(after)s::bigint IS NULL OR id > %(after)s)
ORDER BY id LIMIT %(limit)s
"""  # noqa: S608 - our own text

_STATE = f"""
SELECT id, url, coalesce(name, title) AS name, tags, site_url, politeness_group, priority, enabled, disabled_reason,
    interval_seconds, shortest_seconds, longest_seconds, poll_seconds, items_per_day, ttl_seconds, skip_hours,
    skip_days, next_fetch_at, claim_expires_at, issued_at, last_attempt_at, last_success_at, last_new_at, last_outcome,
    last_error, failures, moved_to, moved_sightings, lying_since, news_gap_seconds, health.*, {_RETRY},
    (SELECT max(until) FROM throttled_groups
     WHERE throttled_groups.politeness_group = feeds.politeness_group AND until > now()) AS throttled_until
FROM feeds CROSS JOIN LATERAL (
    SELECT attempts, success_rate, mean_seconds, stale, seconds_since_success, seconds_since_news
    FROM feed_health WHERE feed_id = feeds.id
) AS health
WHERE id = %(id)s
"""  # noqa: S608 - our own text

_ATTEMPTS = """
SELECT started_at, outcome, attempt, status, items_seen, items_new, elapsed_seconds, tier, error
FROM feed_fetch_log WHERE feed_id = %s ORDER BY started_at DESC LIMIT %s
"""


def find_feed(connection: Connection, feed: str) -> int:
    """Return the id of the feed with this id or URL.

    Raises:
        ConfigurationError: there is none.
    """
    column = "id" if feed.isdecimal() and len(feed) <= 18 else "url"
    statement = sql.SQL("SELECT id FROM feeds WHERE {} = %s").format(sql.Identifier(column))
    row = connection.execute(statement, [int(feed) if column == "id" else feed]).fetchone()
    if row is None:
        raise ConfigurationError(f"there is no feed {mask_credentials(feed)}: `feedmill feeds list` shows all")
    return int(row["id"])


async def list_feeds(
    connection: postgres.Connection,
    rules: RetryRules,
    *,
    text: str | None,
    tag: str | None,
    limit: int,
    after: int | None = None,
) -> list[dict[str, Any]]:
    """Return what a person wants to see of every feed, by id. Credentials in URLs are masked.

    Args:
        connection: to the database.
        rules: when and how often fetchers retry.
        text: only feeds with this text in name, title or URL.
        tag: only feeds with this tag, however it is spelled.
        limit: so many at most.
        after: only feeds with a larger id.
    """
    chosen = {"text": text, "tag": None if tag is None else clean_tag(tag), "limit": limit, "after": after}
    cursor = await connection.execute(_LIST.encode(), vars(rules) | chosen)
    rows = await cursor.fetchall()
    return [row | {"url": mask_credentials(row["url"])} for row in rows]


def read_feed(connection: Connection, rules: RetryRules, id_: int) -> dict[str, Any]:
    """Return one feed's state and its health over a week. Credentials in URLs are masked."""
    row = connection.execute(_STATE.encode(), {**vars(rules), "id": id_}).fetchone()
    assert row is not None
    return row | {name: mask_credentials(row[name]) for name in ("url", "moved_to") if row[name]}


def read_attempts(connection: Connection, id_: int, most: int) -> list[dict[str, Any]]:
    """Return the feed's last attempts, the latest first."""
    return connection.execute(_ATTEMPTS, [id_, most]).fetchall()


def change_feed(connection: Connection, id_: int, changes: dict[str, Any], *, enable: bool | None) -> None:
    """Set columns of a feed, and enable or disable it (None: neither). A shorter interval counts from now.

    A feed that is enabled again starts without its earlier failures.
    """
    if enable is False:
        changes = changes | {"enabled": False, "disabled_reason": "by hand"}
    elif enable:
        first = next_slot(id_, after=datetime.now(UTC), period=RESTART_SECONDS)
        fresh = {"disabled_reason": None, "failures": 0, "gone_since": None, "next_fetch_at": first}
        changes = changes | fresh | {"enabled": True}
    if not changes:
        return
    columns = sql.SQL(", ").join(sql.SQL("{} = {}").format(sql.Identifier(c), sql.Placeholder(c)) for c in changes)
    connection.execute(sql.SQL("UPDATE feeds SET {} WHERE id = %(id)s").format(columns), {**changes, "id": id_})
    spans = [changes[name] for name in ("interval_seconds", "longest_seconds") if changes.get(name)]
    if spans:
        connection.execute(
            "UPDATE feeds SET next_fetch_at = least(next_fetch_at, now() + make_interval(secs => %s)) WHERE id = %s",
            [min(spans), id_],
        )


def make_due(connection: Connection, id_: int) -> bool:
    """Let a feed be due at once, and be read in full; False if it is disabled. A job that is under way keeps its claim.

    A feed whose last job was dropped without a request waits although it has no job. That wait ends, too.
    """
    row = connection.execute(
        """
        UPDATE feeds SET next_fetch_at = least(next_fetch_at, now()),
            claim_expires_at = CASE WHEN claim_id IS NOT NULL THEN claim_expires_at END
        WHERE id = %s AND enabled RETURNING id
        """,
        [id_],
    ).fetchone()
    connection.execute("UPDATE feed_listings SET full_at = NULL WHERE feed_id = %s", [id_])
    return row is not None


def count_pending(connection: Connection, id_: int) -> int:
    """Return how many articles of the feed are pending."""
    row = connection.execute("SELECT count(*) AS n FROM pending_articles WHERE feed_id = %s", [id_]).fetchone()
    assert row is not None
    return int(row["n"])


def remove_feed(connection: Connection, id_: int) -> None:
    """Remove a feed with its log and its pending articles."""
    # Cascading deletes lock rows in any order; consumers lock them in the order of md5.
    connection.execute("SELECT FROM feeds WHERE id = %s FOR UPDATE", [id_])
    connection.execute("SELECT FROM pending_articles WHERE feed_id = %s ORDER BY md5 FOR UPDATE", [id_])
    connection.execute("DELETE FROM feeds WHERE id = %s", [id_])
