"""Pure: what a person reads of a feed's health: the word, the reason and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from services.admin.feed_health.rule import (
    STALE_GAPS,
    Word,
    find_word,
    has_moved,
    silence,
    throttled_until,
    usual_gap,
)
from services.admin.health.diagnosis import LATE_SECONDS, in_words
from shared.wire.outcomes import words_of

Row = Mapping[str, Any]

BY_HAND, PAUSED = "by hand", "paused by hand"
"""The reason in the row of a feed that a person paused, and what people read."""


@dataclass(frozen=True)
class FeedHealth:
    """How a feed is, for people. The sentences have spans in words, and no moments."""

    word: Word
    reason: str
    advice: str = ""
    """What to do; empty: nothing."""
    since: datetime | None = None
    until: datetime | None = None
    feed_id: int | None = None
    """The feed that this one is a duplicate of."""
    url: str | None = None
    """Where it moved to."""
    label: str = ""
    """What people read in place of the word."""

    @property
    def text(self) -> str:
        """The word as people write it, without moments."""
        text = self.label or self.word.replace("_", " ")
        return f"{text} of feed {self.feed_id}" if self.feed_id is not None else text


def judge(row: Row) -> FeedHealth:
    """Return the health of a feed from a row of a list, with `rule.FACTS` and no secrets."""
    word = find_word(row)
    found = _SENTENCES[word](row)
    late = (row["now"] - row["due_at"]).total_seconds()
    if not row["enabled"] or word is Word.THROTTLED or late <= LATE_SECONDS:
        return found
    return replace(
        found,
        reason=f"{found.reason}. It has been due for {in_words(late)}",
        advice=" ".join(filter(None, ("`feedmill status` says why nothing fetches it.", found.advice))),
    )


def _healthy(row: Row) -> FeedHealth:
    return FeedHealth(Word.HEALTHY, f"It answers; {_last_new(row)}", since=None)


def _quiet(row: Row) -> FeedHealth:
    patience = in_words((STALE_GAPS * usual_gap(row)).total_seconds())
    return FeedHealth(
        Word.QUIET,
        f"It answers; {_last_new(row)}, {_habit(row)}",
        f"Nothing yet: after {patience} without anything new it counts as stale.",
        since=row["last_new_at"],
    )


def _stale(row: Row) -> FeedHealth:
    return FeedHealth(
        Word.STALE,
        f"It answers, but {_last_new(row)}, {_habit(row)}",
        f"Look at what it lists: `feedmill parse {row['url']}`. If it has ended, {_disable(row)}.",
        since=row["last_new_at"],
    )


def _last_new(row: Row) -> str:
    span = in_words(silence(row).total_seconds())
    if row["last_new_at"] is None:
        return f"it has brought nothing new in {span}"
    if row["news_gap_seconds"] is None and row["cursor_at"] is not None and row["cursor_at"] < row["last_new_at"]:
        return f"its newest article is {span} old"
    return f"the last new article came {span} ago"


def _habit(row: Row) -> str:
    if row["news_gap_seconds"] is None:
        return "and how often it usually brings one is not known yet"
    return f"while usually no more than {in_words(usual_gap(row).total_seconds())} pass"


def _failing(row: Row) -> FeedHealth:
    outcome = row["last_outcome"] or "soft_error"
    last = ": ".join(filter(None, (words_of(outcome), row["last_error"])))
    number = row["failures"]
    counted = f"{number} polls in a row failed" if number > 1 else "The last poll failed"
    # Writers of before this version don't note when it began; it was after the last success.
    success, began = row["last_success_at"], row["failing_since"]
    since = began if began and (not success or began >= success) else success or row["last_attempt_at"]
    advice = _AFTER.get(outcome, _AFTER["soft_error"]).format(url=row["url"], id=row["id"])
    return FeedHealth(Word.FAILING, f"{counted}: {last}", advice, since=since)


_TRY = "Fetch now on its page, or `feedmill feeds fetch {id}`, tries it now"
_AFTER = {
    "soft_error": f"Nothing yet: it is tried again by itself. {_TRY}.",
    "gave_up": f"Nothing, if its server is down: it is tried again by itself, ever more seldom. {_TRY}.",
    "hard_error": f"Correct its URL or its login, if they are wrong; then {_TRY}.",
    "blocked": "If this private address is meant, name its network in FEEDMILL_ALLOW_NETWORKS.",
    "too_large": "If it is worth it, raise FEEDMILL_MAX_BODY_BYTES.",
    "not_a_feed": "See what comes in its place: `feedmill parse {url}`. If the feed has moved, add its new URL.",
    "unparseable": "See what comes: `feedmill parse {url}`.",
    "stale": f"{_TRY[:-4]} again.",
    "skipped": "Nothing: it is tried again by itself when its host answers.",
}
"""What to do, by the last outcome."""


def _throttled(row: Row) -> FeedHealth:
    who = f"Its host, {row['politeness_group']}," if row["throttled_until"] else "Its server"
    less = f"by its settings or `feedmill feeds set {row['id']} --shortest 2h`"
    advice = f"Wait. If it happens often, poll it less, {less}."
    return FeedHealth(Word.THROTTLED, f"{who} asked to be left alone for a while", advice, until=throttled_until(row))


def _new(row: Row) -> FeedHealth:
    if row["last_attempt_at"] is not None:
        return FeedHealth(Word.NEW, "It could not be read yet", f"Wait, or try it now: {_fetch(row)}.")
    wait = (row["due_at"] - row["now"]).total_seconds()
    first = f"its first poll is due in {in_words(wait)}" if wait > 0 else "its first poll is due"
    return FeedHealth(Word.NEW, f"It was not polled yet; {first}", f"Wait, or {_fetch(row)}.", since=row["created_at"])


def _duplicate(row: Row) -> FeedHealth:
    other = row["duplicate_of"]
    if not row["enabled"]:
        reason = f"It moved for good to the URL of feed {other}, and is not polled any more"
        advice = f"Nothing: that feed brings its articles. `feedmill feeds remove {row['id']}` tidies up."
        return FeedHealth(Word.DUPLICATE, reason, advice, feed_id=other)
    return FeedHealth(
        Word.DUPLICATE,
        f"It leads to the same URL as feed {other}, or that feed brought nearly all of its articles first",
        f"Compare both (`feedmill feeds show {other}`), and keep one: {_disable(row)}.",
        feed_id=other,
    )


def _dates_ambiguous(row: Row) -> FeedHealth:
    return FeedHealth(
        Word.DATES_AMBIGUOUS,
        "It writes dates such as 03/04/2026, and nothing tells whether the day or the month stands first",
        "Look at its site, then decide once, in its settings or by"
        f" `feedmill feeds set {row['id']} --date-order day` (or `month`).",
        since=row["ambiguous_since"],
    )


def _moved(row: Row) -> FeedHealth:
    if row["moved_to"] is None and has_moved(row):
        reason = "A permanent redirect led to its present URL, which took the place of the old one"
        return FeedHealth(Word.MOVED, reason, since=row["moved_at"], url=row["url"])
    times = f"seen {row['moved_sightings']} time{'s' * (row['moved_sightings'] != 1)}"
    advice = "Nothing: when that has lasted a day, the new URL takes the place of the old one."
    if row["has_own_headers"]:
        advice = (
            "Its login and headers are not sent to another host unasked: if you trust that host, add the new URL with"
            f" them (`feedmill feeds add`), and {_disable(row)}. On its own host, it moves by itself."
        )
    reason = f"A permanent redirect leads to another URL ({times})"
    return FeedHealth(Word.MOVED, reason, advice, since=row["moved_since"], url=row["moved_to"])


def _gone(row: Row) -> FeedHealth:
    said = "The server said that it is gone (410)"
    reason = f"{said}; when it says so again, polling ends" if row["enabled"] else f"{said}, twice: polling has ended"
    advice = f"Find its new URL and add it (`feedmill feeds add`), then `feedmill feeds remove {row['id']}`."
    return FeedHealth(Word.GONE, reason, advice, since=row["gone_since"])


def _disabled(row: Row) -> FeedHealth:
    return FeedHealth(
        Word.DISABLED,
        why_not_polled(row),
        f"Resume on its page, or `feedmill feeds set {row['id']} --enable`, polls it again.",
        label=PAUSED if row["disabled_reason"] == BY_HAND else "",
    )


def why_not_polled(row: Row) -> str:
    """Return why a disabled feed is not polled, without the full stop."""
    reason = row["disabled_reason"] or "no reason is known"
    return f"It is not polled: {PAUSED if reason == BY_HAND else reason}"


def _disable(row: Row) -> str:
    return f"pause it on its page or by `feedmill feeds set {row['id']} --disable`"


def _fetch(row: Row) -> str:
    return f"`feedmill feeds fetch {row['id']}`"


_SENTENCES: Mapping[Word, Callable[[Row], FeedHealth]] = {
    Word.HEALTHY: _healthy,
    Word.QUIET: _quiet,
    Word.STALE: _stale,
    Word.FAILING: _failing,
    Word.THROTTLED: _throttled,
    Word.NEW: _new,
    Word.DUPLICATE: _duplicate,
    Word.DATES_AMBIGUOUS: _dates_ambiguous,
    Word.MOVED: _moved,
    Word.GONE: _gone,
    Word.DISABLED: _disabled,
}
