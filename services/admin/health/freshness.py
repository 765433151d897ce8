"""How fresh articles are: the time from their publication to their row, of a feed, a host, or all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Self, get_args

from services.admin.errors import NotFound
from services.writer.freshness.buckets import percentile
from services.writer.freshness.rows import SUMMED
from services.writer.freshness.rules import Counted, LeftOut
from shared.database.postgres import Connection
from shared.observability.display import safe_to_show

Span = Literal["hour", "day", "week"]

HOURS: Mapping[Span, int] = {"hour": 1, "day": 24, "week": 168}
"""So many whole hours (UTC) are counted, and the present one."""

# Both tables' keys begin with the hour. OFFSET 0 keeps the planner from reading a whole table in place of these hours.
_HOURS = f"""
WITH hours AS MATERIALIZED (
    SELECT at FROM generate_series(
        %(present)s - interval '{HOURS["week"]} hours', %(present)s, interval '1 hour'
    ) AS hour (at)
)
"""  # noqa: S608 - our own text

_OF_FEED = """
SELECT hours.at, kind, bucket, articles FROM hours CROSS JOIN LATERAL (
    SELECT kind, bucket, articles FROM feed_freshness WHERE at = hours.at AND feed_id = %(feed)s OFFSET 0
) AS counts
"""

# Hours that are not summed up yet are counted from their feeds.
_OF_HOST = f"""
SELECT hours.at, kind, bucket, articles FROM hours CROSS JOIN LATERAL (
    SELECT kind, bucket, articles FROM host_freshness WHERE at = hours.at AND politeness_group = %(host)s OFFSET 0
) AS counts
UNION ALL
SELECT hours.at, kind, bucket, articles FROM hours CROSS JOIN LATERAL (
    SELECT kind, bucket, articles FROM feed_freshness
    WHERE at = hours.at
        AND (%(host)s = '' OR feed_id IN (SELECT id FROM feeds WHERE politeness_group = %(host)s)) OFFSET 0
) AS counts
WHERE hours.at > coalesce((
    SELECT max(at) FROM hours WHERE EXISTS (
        SELECT FROM host_freshness WHERE at = hours.at AND politeness_group = '' AND kind = '{SUMMED}' OFFSET 0
    )
), '-infinity')
"""  # noqa: S608 - our own text

_TOTALS = f"""
SELECT kind, bucket,
    coalesce(sum(articles) FILTER (WHERE at >= %(present)s - interval '{HOURS["hour"]} hours'), 0)::bigint AS hour,
    coalesce(sum(articles) FILTER (WHERE at >= %(present)s - interval '{HOURS["day"]} hours'), 0)::bigint AS day,
    sum(articles)::bigint AS week
FROM ({{found}}) AS found GROUP BY kind, bucket
"""  # noqa: S608 - our own text


@dataclass(frozen=True)
class Percentiles:
    """Spans in seconds within which 50, 95 and 99 % of the articles came: never too small, at most 10 % too large."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, counts: Mapping[int, int]) -> Self | None:
        """Return the percentiles of what is counted by bucket; None: nothing is."""
        found = [percentile(counts, share) for share in (0.5, 0.95, 0.99)]
        return cls(*(seconds for seconds in found if seconds is not None)) if None not in found else None


@dataclass(frozen=True)
class Freshness:
    """How fresh the articles of one span are."""

    since: datetime
    """When the first hour that is counted begins."""
    sure: int = 0
    """Articles whose date can be true."""
    unsure: int = 0
    """Articles of which only the polls before and after their publication are known."""
    ahead: int = 0
    """Of these, articles that are dated after the fetch."""
    left_out: Mapping[LeftOut, int] = field(default_factory=dict)
    """Articles that are not counted, by reason."""
    seconds: Percentiles | None = None
    """Of the sure ones; None: there are none."""
    at_most: Percentiles | None = None
    """Of all, with an upper bound in place of what is unsure; None: there are none."""

    @property
    def share_sure(self) -> float | None:
        """The share of the counted articles that are sure; None: there are none."""
        counted = self.sure + self.unsure
        return self.sure / counted if counted else None


async def read_freshness(
    connection: Connection, *, feed: int | None = None, host: str | None = None, now: datetime | None = None
) -> dict[Span, Freshness]:
    """Return the freshness of each span. An unknown feed or host has no articles.

    Args:
        connection: to the database.
        feed: only of this feed.
        host: only of this host (politeness group); with neither, of all feeds together.
        now: when the spans end, in place of the database's time.
    """
    # The planner overrates the sums, and compiling them would take seconds.
    statement = "SELECT coalesce(%s::timestamptz, now()) AS at, set_config('jit', 'off', true)"
    cursor = await connection.execute(statement, [now])
    row = await cursor.fetchone()
    assert row is not None
    present: datetime = row["at"].astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    totals = _HOURS + _TOTALS.format(found=_OF_HOST if feed is None else _OF_FEED)
    cursor = await connection.execute(totals.encode(), {"feed": feed, "host": host or "", "present": present})
    rows = await cursor.fetchall()
    return {span: _sum_up(present - timedelta(hours=hours), span, rows) for span, hours in HOURS.items()}


async def require(connection: Connection, *, feed: int | None, host: str | None) -> None:
    """Raise NotFound if there is no such feed, or no feed at this host."""
    cursor = await connection.execute(
        """
        SELECT %(feed)s::bigint IS NULL OR EXISTS (SELECT FROM feeds WHERE id = %(feed)s) AS feed,
            %(host)s::text IS NULL OR EXISTS (SELECT FROM feeds WHERE politeness_group = %(host)s) AS host
        """,
        {"feed": feed, "host": host},
    )
    row = await cursor.fetchone()
    assert row is not None
    if not row["feed"]:
        raise NotFound(f"there is no feed {feed}: `feedmill feeds list` shows all")
    if not row["host"]:
        raise NotFound(f"no feed is at the host {safe_to_show(host)}: `feedmill hosts` shows all")


def _sum_up(since: datetime, span: Span, rows: list[dict[str, Any]]) -> Freshness:
    counts: dict[str, Counter[int]] = {}
    for row in rows:
        counts.setdefault(row["kind"], Counter())[row["bucket"]] += row[span]
    sure, unsure, ahead = (counts.get(kind, Counter()) for kind in get_args(Counted))
    return Freshness(
        since=since,
        sure=sure.total(),
        unsure=unsure.total() + ahead.total(),
        ahead=ahead.total(),
        left_out={reason: counts[reason].total() if reason in counts else 0 for reason in get_args(LeftOut)},
        seconds=Percentiles.of(sure),
        at_most=Percentiles.of(sure + unsure + ahead),
    )
