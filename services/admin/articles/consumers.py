"""Who drains pending articles, how fast, and what waits for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, LiteralString

from services.admin.health.looks import bound
from shared.database.postgres import Connection
from shared.observability.secrets import mask_credentials

MOST_COUNTED = 10_000
"""Articles in one state are counted up to here: a count of all would read a million rows."""

MOST_CALLS = 50_000
"""Calls that are read before a writer has added them up: without one they grow and grow."""

MOST_CONSUMERS = 50
MOST_REASONS = 5
BARS = 60
"""Minutes of the picture."""

KEEP_SECONDS = 5.0
PATIENCE_SECONDS = 5.0

KINDS: tuple[LiteralString, ...] = ("claimed", "acknowledged", "failed", "released")

_CALLS: LiteralString = """
WITH calls AS (
    SELECT minute, NULL AS at, consumer, kind, articles FROM consumer_minutes WHERE minute > now() - interval '1 day'
    UNION ALL
    SELECT date_trunc('minute', at, 'UTC'), at, consumer, kind, articles FROM (
        SELECT at, consumer, kind, articles FROM consumer_calls LIMIT %(calls)s
    ) AS known WHERE at > now() - interval '1 day'
)
"""

_HOUR: LiteralString = "AND minute > now() - interval '1 hour'"
_SUMS: LiteralString = ", ".join(
    f"coalesce(sum(articles) FILTER (WHERE kind = '{kind}' {_HOUR}), 0)::bigint AS {kind}" for kind in KINDS
)

_CONSUMERS: LiteralString = f"""{_CALLS}
SELECT consumer, greatest(max(minute), max(at)) AS last_at,
    coalesce(max(at) >= max(minute), false) AS is_exact, {_SUMS},
    coalesce(sum(articles) FILTER (WHERE kind = 'acknowledged'), 0)::bigint AS acknowledged_in_a_day
FROM calls WHERE consumer <> '' GROUP BY consumer ORDER BY last_at DESC, acknowledged DESC, consumer
LIMIT %(most)s
"""  # noqa: S608 - our own text

_MINUTES: LiteralString = f"""{_CALLS}
SELECT minute, kind, sum(articles)::bigint AS articles FROM calls
WHERE minute > now() - make_interval(mins => %(minutes)s) GROUP BY minute, kind
"""  # noqa: S608 - our own text

# Each by the beginning of an index.
_STATES: Mapping[str, LiteralString] = {
    "new": "FROM pending_articles WHERE claimed_until IS NULL",
    "claimed": "FROM pending_articles WHERE claimed_until > now() AND lease_id IS NOT NULL",
    "waiting_for_retry": "FROM pending_articles WHERE claimed_until > now() AND lease_id IS NULL",
    "lease_expired": "FROM pending_articles WHERE claimed_until <= now() AND lease_id IS NOT NULL",
    "died_in_an_hour": "FROM dead_articles WHERE failed_at > now() - interval '1 hour'",
    "dead": "FROM dead_articles",
}

_FIGURES: LiteralString = """
SELECT now() AS as_of,
    least(
        (SELECT created_at FROM pending_articles WHERE claimed_until IS NULL ORDER BY created_at LIMIT 1),
        (SELECT min(created_at) FROM (
            SELECT created_at FROM pending_articles WHERE claimed_until IS NOT NULL LIMIT %(most)s
        ) AS given)
    ) AS oldest_at,
    (SELECT coalesce(sum(items_new), 0) FROM feed_fetch_log
     WHERE items_new > 0 AND started_at > now() - interval '1 hour') AS came_in_an_hour,
    (SELECT count(*) FROM (SELECT FROM consumer_calls LIMIT %(calls)s) AS known) AS calls
"""

_REASONS: LiteralString = """
SELECT left(error, 120) AS error, count(*) AS articles FROM (
    SELECT error FROM dead_articles WHERE failed_at > now() - interval '1 day' ORDER BY failed_at DESC LIMIT 5000
) AS died GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %s
"""

# Another role's connections show their name and nothing of what they do.
_CONNECTED: LiteralString = """
SELECT application_name AS name, usename AS role, count(*) AS connections FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
    AND application_name = 'feedmill consumer'
GROUP BY 1, 2 ORDER BY 1, 2
"""


@dataclass(frozen=True)
class Consumer:
    """What one consumer did within the last hour. Articles."""

    name: str
    """A token's name over HTTP; else the application and user of a connection."""
    last_at: datetime
    """Its last call that did something."""
    is_exact: bool
    """Whether that is its moment; else the minute in which it was."""
    claimed: int
    acknowledged: int
    failed: int
    released: int
    acknowledged_in_a_day: int


@dataclass(frozen=True)
class Minute:
    """What all consumers did in one minute. Articles."""

    at: datetime
    claimed: int = 0
    acknowledged: int = 0
    failed: int = 0
    expired: int = 0
    """Articles whose consumer went silent, when somebody else claimed them."""


@dataclass(frozen=True)
class Draining:
    """How pending articles are drained.

    A count of `MOST_COUNTED` of articles in a state means: so many or more; one above it is PostgreSQL's estimate.
    """

    as_of: datetime
    new: int
    """Articles that nobody was given yet."""
    claimed: int
    waiting_for_retry: int
    lease_expired: int
    """Articles whose consumer went silent, and that nobody has claimed since."""
    dead: int
    died_in_an_hour: int
    came_in_an_hour: int
    oldest_at: datetime | None
    """When the oldest pending article came; None: none is pending."""
    consumers: Sequence[Consumer]
    minutes: Sequence[Minute]
    """The last `BARS`, the oldest first."""
    reasons: Sequence[tuple[str, int]]
    """The most frequent errors of articles that died within a day."""
    calls: int
    """Calls that no writer has added up yet; of `MOST_CALLS` or more only so many are in the figures."""
    connected: Sequence[tuple[str, int]]
    """Connections of the client `feedmill_client` by role: those that wait, too."""

    def in_an_hour(self, kind: str) -> int:
        """Return how many articles were `claimed`, `acknowledged`, `failed` or `expired` within the last hour."""
        return sum(getattr(minute, kind) for minute in self.minutes)

    @property
    def lag_seconds(self) -> float | None:
        """The age of the oldest pending article; None: none is pending."""
        return None if self.oldest_at is None else max((self.as_of - self.oldest_at).total_seconds(), 0.0)


async def read_draining(connection: Connection) -> Draining:
    """Return how pending articles are drained."""
    await bound(connection, PATIENCE_SECONDS)
    (figures,) = await _rows(connection, _FIGURES, {"most": MOST_COUNTED, "calls": MOST_CALLS})
    consumers = await _rows(connection, _CONSUMERS, {"most": MOST_CONSUMERS, "calls": MOST_CALLS})
    minutes = await _rows(connection, _MINUTES, {"minutes": BARS, "calls": MOST_CALLS})
    reasons = await _rows(connection, _REASONS, [MOST_REASONS])
    connected = await _rows(connection, _CONNECTED, None)
    counts: Mapping[str, Any] = {state: await _count(connection, rows) for state, rows in _STATES.items()}
    return Draining(
        **figures,
        **counts,
        consumers=[Consumer(mask_credentials(row.pop("consumer")), **row) for row in consumers],
        minutes=_every_minute(minutes, figures["as_of"]),
        reasons=[(row["error"], row["articles"]) for row in reasons],
        connected=[(row["role"], row["connections"]) for row in connected],
    )


async def _count(connection: Connection, rows: LiteralString) -> int:
    """Return how many there are; of `MOST_COUNTED` or more what the planner takes them for, if that is not less."""
    (found,) = await _rows(connection, f"SELECT count(*) AS n FROM (SELECT {rows} LIMIT %s) AS rows", [MOST_COUNTED])  # noqa: S608 - our own text
    if found["n"] < MOST_COUNTED:
        return int(found["n"])
    (plan,) = await _rows(connection, f"EXPLAIN (FORMAT JSON) SELECT {rows}", None)
    return max(int(plan["QUERY PLAN"][0]["Plan"]["Plan Rows"]), MOST_COUNTED)


def _every_minute(rows: Sequence[dict[str, Any]], as_of: datetime) -> list[Minute]:
    found: dict[datetime, dict[str, int]] = {}
    for row in rows:
        if row["kind"] in Minute.__dataclass_fields__:
            found.setdefault(row["minute"], {})[row["kind"]] = row["articles"]
    last = as_of.replace(second=0, microsecond=0)
    moments = [last - timedelta(minutes=back) for back in reversed(range(BARS))]
    return [Minute(moment, **found.get(moment, {})) for moment in moments]


async def _rows(connection: Connection, query: LiteralString, values: Any) -> list[dict[str, Any]]:
    return await (await connection.execute(query, values)).fetchall()
