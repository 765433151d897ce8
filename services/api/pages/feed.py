"""One feed: how it is, why it is late if it is, when it is polled next and why then."""

from __future__ import annotations

from calendar import day_name
from operator import itemgetter
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from services.admin.feeds import edits, listing
from services.admin.health.freshness_words import in_full
from services.admin.polling.history import History, Rhythm, read_history, read_rhythm
from services.admin.polling.surroundings import look_at_pipeline, read_timing
from services.api.etags import quote
from services.api.pages.frame import Visitor, render
from services.api.pages.pictures import stack
from services.api.paging import Cursor, read_cursor, write_cursor
from services.api.paths import FeedId
from services.api.resources import Here
from shared.wire.outcomes import words_of

router = APIRouter(include_in_schema=False)

PAGE_ATTEMPTS = 20
LEAST_BARS = 3
"""Fewer are told in words: a picture of one bar says nothing."""

UNITS = {"d": 86400, "h": 3600, "m": 60}
"""In seconds."""


@router.get("/feeds/{feed:digits}")
async def feed_page(
    request: Request, here: Here, _visitor: Visitor, feed: FeedId, cursor: Cursor = None
) -> HTMLResponse:
    """Show a feed; `cursor` is where its attempts begin."""
    key = read_cursor(cursor, [int, int])
    pipeline = await look_at_pipeline(here.topology, here.broker_look, here.fetcher)
    async with here.database.transaction() as connection:
        edition = await edits.read_edition(connection, feed)  # before: an older edition does no harm
        row = await listing.read_feed(connection, here.retry_rules(), feed)
        timing = await read_timing(connection, row, pipeline)
        rhythm = await read_rhythm(connection, feed)
        history = await read_history(connection, feed)
        attempts = await listing.read_attempts(connection, feed, PAGE_ATTEMPTS, (key[0], key[1]) if key else None)
    return render(
        request,
        "feeds/show.html",
        feed=row,
        timing=timing,
        freshness={span: in_full(found) for span, found in row["freshness"].items()},
        etag=quote(edition),
        shard=pipeline.shard_of(row["politeness_group"]),
        rhythm=_draw_rhythm(rhythm),
        history=_draw_history(history),
        attempts=[attempt | {"words": words_of(attempt["outcome"])} for attempt in attempts],
        is_latest=cursor is None,
        earlier=_behind(attempts),
        day_names=list(day_name),
        spans={name: _brief(row[f"{name}_seconds"]) for name in ("interval", "shortest", "longest")},
    )


def _behind(attempts: list[dict[str, Any]]) -> str | None:
    """Return the cursor of the attempts before these."""
    if len(attempts) < PAGE_ATTEMPTS:
        return None
    return write_cursor(listing.micros(attempts[-1]["started_at"]), attempts[-1]["id"])


def _brief(seconds: float | None) -> str:
    """Return a span as people type it, in the largest unit that it is a whole number of: `5m`."""
    if seconds is None:
        return ""
    unit, length = next((each for each in UNITS.items() if seconds % each[1] == 0), ("s", 1))
    return f"{seconds / length:g}{unit}"


def _draw_rhythm(rhythm: Rhythm) -> dict[str, Any] | None:
    """Return what the pictures of hours and weekdays show; None if nothing is known."""
    if not any(rhythm.hours):
        return None
    hours = [(f"{hour}:00", count) for hour, count in enumerate(rhythm.hours)]
    days = list(zip(day_name, rhythm.weekdays, strict=True))
    busiest = max(range(24), key=rhythm.hours.__getitem__)
    return {
        "since": rhythm.since,
        "articles": sum(rhythm.hours),
        "hours": hours,
        "hour_bars": stack([[count] for count in rhythm.hours]),
        "days": days,
        "day_bars": stack([[count] for count in rhythm.weekdays]),
        "busiest_hour": f"{busiest} and {busiest + 1} h UTC",
        "busiest_day": max(days, key=itemgetter(1))[0],
    }


def _draw_history(history: History) -> dict[str, Any] | None:
    """Return what the pictures of polls and new articles show; None if the log has none."""
    spans = history.spans
    if not spans:
        return None
    names = [f"{span.at:%H:%M}" if history.by_hour else f"{span.at:%a %d.%m.}" for span in spans]
    return {
        "by_hour": history.by_hour,
        "is_drawn": len(spans) >= LEAST_BARS,
        "spans": list(zip(names, spans, strict=True)),
        "poll_bars": stack([[span.good, span.failed] for span in spans]),
        "new_bars": stack([[span.new] for span in spans]),
        "polls": sum(span.good + span.failed for span in spans),
        "failed": sum(span.failed for span in spans),
        "new": sum(span.new for span in spans),
    }
