"""Pure: how long a new article took from its publication to its row, and whether that can be told.

An article counts if its feed was polled well shortly before. Where the date can be true (it is precise, and lies
between the poll before and this one), it is sure. Otherwise only the two polls are known: the article counts with the
whole time since the poll before, which is an upper bound. docs/explanation/freshness.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Literal

from services.writer.article import Article
from services.writer.schedule.feed_state import DOUBTFUL, FeedState
from shared.wire.results import Entry, FeedFetched

Counted = Literal["sure", "unsure", "ahead"]
"""`ahead`: unsure, since the date is after the fetch: the publisher's clock or zone is wrong."""

LeftOut = Literal["first_reading", "paused", "old_date", "out_of_order", "duplicate"]
"""Why an article does not count."""

MARGIN = timedelta(minutes=10)
"""An article may appear in its feed so long after its date and still be sure: caches, and dates set beforehand."""

OLD = timedelta(days=2)
"""An article that is dated so long before the poll before was published then, and listed again now."""

PAUSE = timedelta(days=3)
"""Who was not read for so long was paused or broken. It is longer than a weekend of closed hours."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A new article."""

    feed_id: int
    kind: Counted | LeftOut
    seconds: float | None
    """From publication to row: of an unsure one an upper bound, None if it does not count."""


@dataclass(frozen=True, slots=True)
class Polls:
    """The polls between which a new article appeared in its feed."""

    before: datetime
    """When the earlier one began."""
    read_at: datetime
    """When the later one had been read."""


def judge_all(
    batch: Sequence[FeedFetched], feeds: Mapping[int, FeedState], new: Iterable[Article], now: datetime
) -> list[Arrival]:
    """Return how long the new articles of a batch took; `feeds` are as they were before all of it."""
    arrivals, polls = [], dict[int, Polls | LeftOut]()
    for article in new:
        fetched = batch[article.brought_by]
        if (between := polls.get(article.brought_by)) is None:
            between = polls[article.brought_by] = find_polls(fetched, feeds[fetched.feed_id], now)
        is_duplicate = article.duplicate_of is not None
        arrivals.append(judge(fetched.feed_id, "duplicate" if is_duplicate else between, article.entry, now))
    return arrivals


def judge(feed_id: int, between: Polls | LeftOut, entry: Entry, now: datetime) -> Arrival:
    """Return how long a new article took.

    Args:
        feed_id: of its feed.
        between: the polls between which it came, or why it does not count.
        entry: the article.
        now: when its row is written.
    """
    if not isinstance(between, Polls):
        return Arrival(feed_id, between, None)
    kind = _judge_date(entry, between)
    if kind == "old_date":
        return Arrival(feed_id, kind, None)
    since = entry.published_at if kind == "sure" and entry.published_at else between.before
    return Arrival(feed_id, kind, (now - since).total_seconds())


def find_polls(fetched: FeedFetched, feed: FeedState, now: datetime) -> Polls | LeftOut:
    """Return the polls between which the new articles of a result came, or why they don't count.

    Args:
        fetched: the result.
        feed: its feed, as it was before.
        now: when the rows are written.
    """
    started_at = max(min(fetched.started_at, now), min(fetched.queued_at, now))  # whatever the fetcher's clock says
    before = _poll_before(feed, fetched)
    if before is None:
        return "first_reading"
    if before >= started_at:
        return "out_of_order"
    if _was_paused(feed, before, started_at):
        return "paused"
    return Polls(before, min(started_at + timedelta(seconds=fetched.elapsed_seconds), now))


def _poll_before(feed: FeedState, fetched: FeedFetched) -> datetime | None:
    """Return when the feed was polled well before, which shows what was not in it; None if this reading is a first one.

    A 304 and an unchanged body are such polls, unless the server's 304s are known or suspected to be untrue.
    """
    if feed.last_read_at is None or feed.body_hash is None:  # a new URL or source type takes the hash away
        return None
    return feed.last_read_at if feed.lying_since or fetched.probe else feed.last_success_at


def _was_paused(feed: FeedState, before: datetime, started_at: datetime) -> bool:
    planned = timedelta(seconds=feed.interval_seconds or feed.poll_seconds or 0.0)
    was_resumed = feed.resumed_at is not None and feed.resumed_at > before
    return was_resumed or started_at - before > max(PAUSE, 2 * planned)


def _judge_date(entry: Entry, polls: Polls) -> Counted | Literal["old_date"]:
    published_at = entry.published_at
    if "date_clamped" in entry.flags or (published_at and published_at > polls.read_at):
        return "ahead"
    if published_at is None or DOUBTFUL.intersection(entry.flags):
        return "unsure"
    if published_at < polls.before - OLD:
        return "old_date"
    has_only_a_day = published_at.astimezone(UTC).time() == time()
    return "unsure" if has_only_a_day or published_at < polls.before - MARGIN else "sure"
