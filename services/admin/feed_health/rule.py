"""Pure: how a feed is, in one word, from its row.

The view `feed_words` finds the same word in SQL, so that filters and counts are cheap; a test compares both. Of several
words that apply the first one is taken, since the later ones mean little while an earlier one holds:

1. `gone`, `duplicate`, `disabled`: polling has ended.
2. `failing`, `throttled`: nothing can come now. A failure is first, since it needs a person; a pause only needs time.
3. `new`: the feed was not read yet, so nothing else is known.
4. `duplicate`, `stale`, `dates_ambiguous`: a person has to look. What brings nothing has no dates to decide.
5. `moved`: something changes, and nobody has to act.
6. `quiet`, `healthy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

FACTS = """
now() AS now, due_at, gone_since, failing_since, moved_at, moved_since, moved_to, moved_sightings, duplicate_of,
ambiguous_since, date_order, date_order_seen, news_gap_seconds, last_new_at, cursor_at, feeds.created_at,
source_config ?| ARRAY['headers', 'user', 'password'] AS has_own_headers,
(SELECT max(until) FROM throttled_groups
 WHERE throttled_groups.politeness_group = feeds.politeness_group AND until > now()) AS throttled_until,
(SELECT original.id FROM feeds AS original WHERE original.id = feeds.duplicate_of AND original.enabled) AS original_id
"""
"""SQL: the columns that a word needs beside those of a list of feeds."""

UNKNOWN_GAP = timedelta(days=10)
"""The usual time between new articles of a feed that brought some only once."""
LEAST_GAP = timedelta(days=1)
MOST_GAP = timedelta(seconds=1e9)
STALE_GAPS = 3
MOVED_FOR = timedelta(days=7)
"""So long a feed that took the URL of a redirect is called `moved`."""


class Word(StrEnum):
    """How a feed is."""

    HEALTHY = "healthy"
    QUIET = "quiet"
    STALE = "stale"
    FAILING = "failing"
    THROTTLED = "throttled"
    MOVED = "moved"
    GONE = "gone"
    DUPLICATE = "duplicate"
    DATES_AMBIGUOUS = "dates_ambiguous"
    DISABLED = "disabled"
    NEW = "new"


def find_word(row: Mapping[str, Any]) -> Word:
    """Return the word for a row of `feeds` with `FACTS`."""
    if not row["enabled"]:
        return _ended(row["disabled_reason"] or "")
    rules = (
        (Word.GONE, row["gone_since"] is not None),
        (Word.FAILING, row["failures"] > 0 or row["last_outcome"] == "soft_error"),
        (Word.THROTTLED, throttled_until(row) is not None),
        (Word.NEW, row["last_success_at"] is None),
        (Word.DUPLICATE, row["original_id"] is not None),
        (Word.STALE, silence(row) > STALE_GAPS * usual_gap(row)),
        (Word.DATES_AMBIGUOUS, row["ambiguous_since"] is not None and row["date_order"] is None),
        (Word.MOVED, row["moved_to"] is not None or has_moved(row)),
        (Word.QUIET, silence(row) > usual_gap(row)),
    )
    return next((word for word, applies in rules if applies), Word.HEALTHY)


def _ended(reason: str) -> Word:
    for word in (Word.GONE, Word.DUPLICATE):
        if reason.startswith(f"{word}:"):
            return word
    return Word.DISABLED


def throttled_until(row: Mapping[str, Any]) -> datetime | None:
    """Return until when the feed waits because its host, or its server for it alone, asked for a pause."""
    asked = row["next_fetch_at"] if row["last_outcome"] == "throttled" else None
    until = [moment for moment in (row["throttled_until"], asked) if moment is not None and moment > row["now"]]
    return max(until, default=None)


def has_moved(row: Mapping[str, Any]) -> bool:
    """Return whether the feed took the URL of a permanent redirect in the last days."""
    return row["moved_at"] is not None and row["moved_at"] > row["now"] - MOVED_FOR


def usual_gap(row: Mapping[str, Any]) -> timedelta:
    """Return the usual time between two polls that bring something new."""
    seconds = row["news_gap_seconds"]
    if seconds is None:
        return UNKNOWN_GAP
    return max(LEAST_GAP, timedelta(seconds=min(seconds, MOST_GAP.total_seconds())))


def silence(row: Mapping[str, Any]) -> timedelta:
    """Return for how long nothing new has come.

    Until the usual gap is known, the newest article's date tells more than the day on which the feed was added.
    """
    since = row["last_new_at"] or row["created_at"]
    if row["news_gap_seconds"] is None and row["cursor_at"] is not None:
        since = min(since, row["cursor_at"])
    found: timedelta = row["now"] - since
    return found
