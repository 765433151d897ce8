"""How a feed's polls went: when it publishes, and how many polls and new articles there were in the last days."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from services.admin.feeds.listing import no_feed
from services.writer.feed_store import read_rate
from shared.database.postgres import Connection

HOUR, DAY = timedelta(hours=1), timedelta(days=1)

MOST_BARS = 28
"""Spans of a picture, at most. A feed whose log goes back for fewer hours is shown by the hour, others by the day."""

MOST_ATTEMPTS = 2_000
"""Attempts that are read; the log keeps fewer of one feed by default (FEEDMILL_LOG_PER_FEED)."""


@dataclass(frozen=True)
class Rhythm:
    """When a feed publishes, as the writer remembers it to choose the next poll."""

    hours: tuple[int, ...]
    """New articles by UTC hour, 0 to 23."""
    weekdays: tuple[int, ...]
    """By UTC weekday, Monday first."""
    since: datetime | None


@dataclass(frozen=True)
class Span:
    """What happened in an hour or a day (UTC)."""

    at: datetime
    """When it begins."""
    good: int
    """Polls that the server answered with the feed, or with “not modified”."""
    failed: int
    new: int
    """New articles."""


@dataclass(frozen=True)
class History:
    """The last polls by spans of one length, the present span last."""

    spans: tuple[Span, ...]
    by_hour: bool


async def read_rhythm(connection: Connection, id_: int) -> Rhythm:
    """Return when a feed publishes. Raises NotFound."""
    cursor = await connection.execute("SELECT pace FROM feeds WHERE id = %s", [id_])
    row = await cursor.fetchone()
    if row is None:
        raise no_feed(id_)
    rate = read_rate(row["pace"])
    return Rhythm(rate.rhythm[:24], rate.rhythm[24:], rate.rhythm_since)


async def read_history(connection: Connection, id_: int) -> History:
    """Return how the polls of the last four weeks went, as far back as the log is kept."""
    cursor = await connection.execute(
        """
        SELECT started_at, ok, items_new FROM feed_fetch_log
        WHERE feed_id = %s AND started_at > now() - make_interval(days => %s) AND started_at <= now()
            AND outcome NOT IN ('skipped', 'stale')
        ORDER BY started_at DESC LIMIT %s
        """,
        [id_, MOST_BARS, MOST_ATTEMPTS],
    )
    rows = await cursor.fetchall()
    cursor = await connection.execute("SELECT now() AS now")
    now = await cursor.fetchone()
    assert now is not None
    return sum_up(rows, now["now"])


def sum_up(attempts: Sequence[dict[str, Any]], now: datetime) -> History:
    """Return attempts, the latest first, in spans; none if there are none."""
    if not attempts:
        return History((), by_hour=False)
    now = now.astimezone(UTC)
    oldest = attempts[-1]["started_at"].astimezone(UTC)
    by_hour = now - oldest < MOST_BARS * HOUR
    step = HOUR if by_hour else DAY
    last, first = _floor(now, by_hour=by_hour), _floor(oldest, by_hour=by_hour)
    count = min(int((last - first) / step) + 1, MOST_BARS)
    starts = [last - step * back for back in range(count - 1, -1, -1)]
    return History(tuple(_spans(starts, attempts, by_hour=by_hour)), by_hour)


def _spans(starts: Iterable[datetime], attempts: Iterable[dict[str, Any]], *, by_hour: bool) -> Iterable[Span]:
    good: dict[datetime, int] = {}
    failed: dict[datetime, int] = {}
    new: dict[datetime, int] = {}
    for attempt in attempts:
        at = _floor(attempt["started_at"].astimezone(UTC), by_hour=by_hour)
        counts = good if attempt["ok"] else failed
        counts[at] = counts.get(at, 0) + 1
        new[at] = new.get(at, 0) + attempt["items_new"]
    return (Span(at, good.get(at, 0), failed.get(at, 0), new.get(at, 0)) for at in starts)


def _floor(moment: datetime, *, by_hour: bool) -> datetime:
    return moment.replace(hour=moment.hour if by_hour else 0, minute=0, second=0, microsecond=0)
