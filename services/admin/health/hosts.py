"""Hosts, that is politeness groups: how their feeds fare, and until when they are left alone."""

from __future__ import annotations

from typing import Any

from services.admin.errors import NotFound
from services.admin.feeds.listing import no_feed
from services.admin.feeds.states import FAILING
from services.admin.health.diagnosis import HostState
from services.admin.health.freshness import read_freshness
from services.admin.health.looks import bound
from shared.database.postgres import Connection
from shared.observability.display import safe_to_show
from shared.observability.secrets import mask_credentials

SAMPLE_FEEDS, SAMPLE_ATTEMPTS = 5, 4
"""The mean time of a fetch is of so many feeds of the host, those that succeeded last, and so many attempts of each."""


SECONDS = 10.0
"""A list may take so long."""


# A feed whose last attempt could not connect, and so its host, as fetchers see it.
_DOWN = """
SELECT feeds.politeness_group, max(log.started_at) AS failed_at
FROM feed_fetch_log AS log JOIN feeds ON feeds.id = log.feed_id
WHERE NOT log.ok AND log.error_class = 'connect'
    AND log.started_at > now() - make_interval(secs => %(connect_failure_seconds)s)
GROUP BY feeds.politeness_group
"""

_THROTTLED = "SELECT politeness_group FROM throttled_groups WHERE until > now()"

IN_TROUBLE = """(
    enabled AND (failures > 0 OR last_outcome = 'throttled' OR (claim_id IS NOT NULL AND issued_at IS NULL))
)"""
"""What the index feeds_in_trouble holds, in its own words; all failing feeds are among these."""

_NAMES = {
    None: "SELECT politeness_group FROM feeds WHERE {chosen} GROUP BY politeness_group",
    HostState.THROTTLED: _THROTTLED + " AND {chosen}",
    HostState.DOWN: """
        SELECT politeness_group FROM down WHERE {chosen}
            AND failed_at > coalesce((
                SELECT max(last_success_at) FROM feeds WHERE feeds.politeness_group = down.politeness_group
            ), '-infinity')
    """,
    HostState.BACKLOG: """
        SELECT politeness_group FROM feeds WHERE enabled AND due_at <= now() AND {chosen}
        UNION
        SELECT politeness_group FROM feeds
        WHERE enabled AND issued_at IS NOT NULL AND claim_expires_at > now() AND {chosen}
    """,
    HostState.FAILING: f"""
        SELECT DISTINCT politeness_group FROM feeds WHERE {IN_TROUBLE} AND {FAILING} AND {{chosen}}
    """,  # noqa: S608 - our own text
}
"""The names of hosts in a state."""

_CHOSEN = """(
    (%(after)s::text IS NULL OR politeness_group > %(after)s)
    AND (%(text)s::text IS NULL OR strpos(lower(politeness_group), lower(%(text)s)) > 0)
)"""

_HOSTS = f"""
WITH down AS MATERIALIZED ({_DOWN}),
names AS MATERIALIZED (
    SELECT politeness_group FROM ({{names}}) AS every ORDER BY politeness_group LIMIT %(limit)s
)
SELECT names.politeness_group AS host, found.feeds, found.disabled, found.due, found.in_flight, found.backlog,
    found.failing, found.last_success_at, throttled.until AS throttled_until,
    CASE WHEN down.failed_at > coalesce(found.last_success_at, '-infinity')
        THEN down.failed_at + make_interval(secs => %(connect_failure_seconds)s) END AS down_until,
    sample.mean_seconds
FROM names
CROSS JOIN LATERAL (
    SELECT count(*) AS feeds,
        count(*) FILTER (WHERE NOT enabled) AS disabled,
        count(*) FILTER (WHERE enabled AND due_at <= now()) AS due,
        count(*) FILTER (WHERE enabled AND claim_expires_at > now() AND issued_at IS NOT NULL) AS in_flight,
        count(*) FILTER (
            WHERE enabled AND (due_at <= now() OR claim_expires_at > now() AND issued_at IS NOT NULL)
        ) AS backlog,
        count(*) FILTER (WHERE {FAILING}) AS failing,
        max(last_success_at) AS last_success_at,
        (array_agg(id ORDER BY last_success_at DESC NULLS LAST))[1:{SAMPLE_FEEDS}] AS latest
    FROM feeds WHERE feeds.politeness_group = names.politeness_group
) AS found
CROSS JOIN LATERAL (
    SELECT avg(elapsed_seconds) AS mean_seconds
    FROM unnest(found.latest) AS of_feed (id) CROSS JOIN LATERAL (
        SELECT elapsed_seconds, ok FROM feed_fetch_log WHERE feed_id = of_feed.id
        ORDER BY started_at DESC LIMIT {SAMPLE_ATTEMPTS}
    ) AS last WHERE ok
) AS sample
LEFT JOIN throttled_groups AS throttled
    ON throttled.politeness_group = names.politeness_group AND throttled.until > now()
LEFT JOIN down ON down.politeness_group = names.politeness_group
ORDER BY names.politeness_group
"""  # noqa: S608 - our own text


async def list_hosts(
    connection: Connection,
    *,
    connect_failure_seconds: float,
    state: HostState | None = None,
    text: str | None = None,
    limit: int,
    after: str | None = None,
) -> list[dict[str, Any]]:
    """Return hosts by name.

    Args:
        connection: to the database.
        connect_failure_seconds: how long fetchers leave a host alone that they could not connect to.
        state: only hosts in this state.
        text: only hosts with this text in their name.
        limit: so many at most.
        after: only hosts that come after this name.
    """
    names = _NAMES[state].format(chosen=_CHOSEN)
    values = {"connect_failure_seconds": connect_failure_seconds, "text": text, "limit": limit, "after": after}
    await bound(connection, SECONDS)
    cursor = await connection.execute(_HOSTS.format(names=names).encode(), values)
    return await cursor.fetchall()


async def read_host(connection: Connection, host: str, *, connect_failure_seconds: float) -> dict[str, Any]:
    """Return one host, with its `freshness`.

    Raises:
        NotFound: no feed has it.
    """
    values = {"connect_failure_seconds": connect_failure_seconds, "host": host, "limit": 1}
    names = "SELECT %(host)s::text AS politeness_group"
    cursor = await connection.execute(_HOSTS.format(names=names).encode(), values)
    row = await cursor.fetchone()
    if row is None or not (row["feeds"] or row["throttled_until"]):
        raise NotFound(f"no feed is at the host {safe_to_show(host)}: `feedmill hosts` shows all")
    return row | {"freshness": await read_freshness(connection, host=host)}


async def read_host_of(connection: Connection, feed_id: int, *, connect_failure_seconds: float) -> dict[str, Any]:
    """Return the host of a feed, as `read_host`.

    Raises:
        NotFound: there is no such feed.
    """
    values = {"connect_failure_seconds": connect_failure_seconds, "feed_id": feed_id, "limit": 1}
    names = "SELECT politeness_group FROM feeds WHERE id = %(feed_id)s"
    cursor = await connection.execute(_HOSTS.format(names=names).encode(), values)
    row = await cursor.fetchone()
    if row is None:
        raise no_feed(feed_id)
    return row


_TROUBLES = f"""
SELECT id AS feed_id, coalesce(name, title) AS name, url, last_attempt_at AS at, last_outcome AS outcome,
    last_error AS error, failures
FROM feeds
WHERE politeness_group = %(host)s AND {IN_TROUBLE} AND last_attempt_at IS NOT NULL
ORDER BY last_attempt_at DESC LIMIT %(limit)s
"""  # noqa: S608 - our own text

_JOBS = """
SELECT id AS feed_id, coalesce(name, title) AS name, url, issued_at, claim_expires_at FROM feeds
WHERE politeness_group = %(host)s AND issued_at IS NOT NULL AND claim_expires_at > now()
ORDER BY issued_at, id LIMIT %(limit)s
"""


async def list_troubles(connection: Connection, host: str, *, limit: int) -> list[dict[str, Any]]:
    """Return the host's feeds whose last attempt failed, or was asked to wait, the latest first: why it is left alone.

    URLs and errors are masked.
    """
    return await _list_masked(connection, _TROUBLES, host, limit)


async def list_jobs(connection: Connection, host: str, *, limit: int) -> list[dict[str, Any]]:
    """Return the host's feeds with a job that has no result yet, the longest issued first. URLs are masked."""
    return await _list_masked(connection, _JOBS, host, limit)


async def _list_masked(connection: Connection, statement: str, host: str, limit: int) -> list[dict[str, Any]]:
    cursor = await connection.execute(statement.encode(), {"host": host, "limit": limit})
    return [
        row | {name: mask_credentials(row[name]) for name in ("url", "error") if row.get(name)}
        for row in await cursor.fetchall()
    ]
