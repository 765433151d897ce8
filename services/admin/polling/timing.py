"""Pure: says why a feed is polled when it is, and why it is late if it is.

A sentence is a tuple of texts and moments, because a page shows moments in the zone of who reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from services.admin.feed_health.rule import throttled_until
from services.admin.feed_health.words import why_not_polled
from services.admin.health.diagnosis import LATE_SECONDS, QueueLevel, in_words
from services.writer.schedule.bounds import jitter_span
from shared.politeness import MAX_SERVER_WAIT_SECONDS
from shared.wire.outcomes import Outcome

Sentence = tuple[str | datetime, ...]

RESUMED = timedelta(minutes=10)
"""A feed that was resumed or put off is polled sooner than that, though long after the poll before."""
_LONGEST = timedelta(seconds=1.1 * MAX_SERVER_WAIT_SECONDS)
_GOOD = frozenset(outcome for outcome in Outcome if outcome.is_success)


@dataclass(frozen=True)
class Surroundings:
    """What a feed's next poll depends on beside its row. Spans in seconds."""

    shard: str
    """The queue of its jobs."""
    level: QueueLevel | None
    """Of the shard; None: it is not declared, or not known."""
    jobs_waiting: int
    """In all shards."""
    fetcher_high_water: int
    group_jobs: int
    """A host has at most so many jobs under way."""
    host_jobs: int
    """Its host's jobs under way."""
    down_until: datetime | None
    """Its host could not be connected to, and is left alone."""
    due_before: int
    """Due feeds that schedulers claim before it."""
    shortest_seconds: float
    """Bounds of the adaptive interval, if the feed has none of its own."""
    longest_seconds: float
    broker_trouble: str | None = None
    """Why the queues can't be seen."""


@dataclass(frozen=True)
class Timing:
    """When a feed is polled next, and why then."""

    headline: Sentence
    next_at: datetime | None
    """None: never, or nobody knows."""
    is_late: bool
    """Whether it would have been polled before, if all were well."""
    reasons: tuple[Sentence, ...] = ()
    """The most important one first."""
    advice: Sentence = ()
    """What can be done about the wait; what can be done about the feed is said by its health."""


def explain_timing(feed: Mapping[str, Any], around: Surroundings, now: datetime) -> Timing:
    """Return when a feed is polled next, and why then.

    Args:
        feed: as `listing.read_feed` returns it.
        around: what its poll depends on.
        now: of the database's clock.
    """
    if not feed["enabled"]:
        return Timing(
            (f"{why_not_polled(feed)}.",),
            None,
            is_late=False,
        )
    due_at = max(moment for moment in (feed["next_fetch_at"], feed["claim_expires_at"]) if moment)
    if feed["throttled_until"]:
        return _throttled(feed, due_at)
    if feed["retry_at"]:
        return _retrying(feed, around, now)
    if feed["in_flight"]:
        return _in_flight(feed, around, now) if feed["issued_at"] else _put_off(due_at)
    return _due(due_at, around, now) if due_at <= now else _planned(feed, around, now)


def _planned(feed: Mapping[str, Any], around: Surroundings, now: datetime) -> Timing:
    at = feed["next_fetch_at"]
    asked = feed["last_outcome"] == Outcome.THROTTLED and not feed["failures"]
    return Timing(
        ("It waits for its server until ", at, ".") if asked else ("It is polled next at ", at, "."),
        at,
        is_late=bool(feed["failures"]),
        reasons=tuple(_why_then(feed, around, now)),
    )


def _put_off(due_at: datetime) -> Timing:
    return Timing(
        ("It waits until ", due_at, ", then it is due again."),
        due_at,
        is_late=True,
        reasons=(
            (
                "Its last job came too late, and was dropped without a request: jobs wait too long in the queues, or a"
                " fetcher's clock is wrong.",
            ),
        ),
        advice=("Look at the overview for a backlog; `feedmill doctor` compares clocks.",),
    )


def _throttled(feed: Mapping[str, Any], due_at: datetime) -> Timing:
    until = throttled_until(feed) or feed["throttled_until"]
    return Timing(
        ("It waits for its host until ", until, "."),
        max(until, due_at),
        is_late=due_at < until,
        reasons=((f"No feed at {feed['politeness_group']} is polled before: it asked for that (429, Retry-After).",),),
    )


def _retrying(feed: Mapping[str, Any], around: Surroundings, now: datetime) -> Timing:
    at = feed["retry_at"]
    which = f"retry {feed['retry']} of {feed['retries']}" if feed["retry"] else "its job was put off"
    headline: Sentence = ("Its retry is due since ", at, f" ({which}).") if at < now else (
        "It is tried again at ", at, f" ({which}).")  # fmt: skip
    return Timing(
        headline, at, is_late=True,
        reasons=(*_host_down(feed, around), ("Its job waits in the retry queue; Fetch now ends the wait.",)),
    )  # fmt: skip


def _in_flight(feed: Mapping[str, Any], around: Surroundings, now: datetime) -> Timing:
    since = feed["issued_at"]
    is_late = (now - since).total_seconds() > LATE_SECONDS
    return Timing(
        ("It is being polled: its job was issued at ", since, "."),
        since,
        is_late=is_late,
        reasons=(
            *_at_shard(around),
            *_host_down(feed, around),
            *_busy_host(feed, around),
            ("If nothing is heard of the job, the feed is due again at ", feed["claim_expires_at"], "."),
        ),
        advice=("Start a fetcher.",) if is_late and around.level and not around.level.consumers else (),
    )


def _at_shard(around: Surroundings) -> Iterator[Sentence]:
    if around.broker_trouble:
        yield (f"The queues can't be seen: {around.broker_trouble}.",)
    elif around.level is None:
        yield (f"Its queue `{around.shard}` is not declared: do all services have the same FEEDMILL_FETCHER_SHARDS?",)
    elif not around.level.consumers:
        yield (
            f"Nobody reads its queue `{around.shard}`, where {around.level.ready:,} jobs wait: is a fetcher running?",
        )
    elif around.level.ready:
        yield (f"{around.level.ready:,} jobs wait in its queue `{around.shard}`, perhaps its own among them.",)
    else:
        yield (f"No job waits in its queue `{around.shard}`: a fetcher has it, or its result is being written.",)


def _busy_host(feed: Mapping[str, Any], around: Surroundings) -> Iterator[Sentence]:
    if around.host_jobs > 1:
        yield (f"{feed['politeness_group']} has {around.host_jobs:,} jobs under way: they share its rate limit.",)


def _host_down(feed: Mapping[str, Any], around: Surroundings) -> Iterator[Sentence]:
    if around.down_until:
        yield (f"{feed['politeness_group']} could not be connected to: fetchers leave it alone until ",
               around.down_until, " at least.")  # fmt: skip


def _due(due_at: datetime, around: Surroundings, now: datetime) -> Timing:
    is_late = (now - due_at).total_seconds() > LATE_SECONDS
    reasons, advice = _why_unclaimed(around) if is_late else ((("Schedulers claim due feeds once a second.",),), ())
    return Timing(("It is due since ", due_at, "."), due_at, is_late=is_late, reasons=reasons, advice=advice)


def _why_unclaimed(around: Surroundings) -> tuple[tuple[Sentence, ...], Sentence]:
    """Return why nobody has claimed a due feed, and what to do."""
    if around.broker_trouble:
        return tuple(_at_shard(around)), ("Schedulers issue nothing without RabbitMQ: start it.",)
    if around.jobs_waiting >= around.fetcher_high_water:
        return ((
            f"{around.jobs_waiting:,} jobs wait for the fetchers (FEEDMILL_FETCHER_HIGH_WATER is"
            f" {around.fetcher_high_water:,}): no more are issued until there is room.",
        ),), ("Start more fetchers.",)  # fmt: skip
    if around.host_jobs >= around.group_jobs:
        return ((
            f"Its host has {around.host_jobs:,} jobs under way (FEEDMILL_GROUP_JOBS is {around.group_jobs:,}): its"
            " other feeds wait for these.",
        ),), ("Its rate limit is at work. If the host is yours, allow more by FEEDMILL_HOST_POLICIES.",)  # fmt: skip
    before = f"{around.due_before:,} due feeds go before it" if around.due_before else "No due feed goes before it"
    return ((f"{before}, and nobody claims it: is a scheduler running?",),), (
        "Start a scheduler; its log and `/readyz` say what it lacks.",
    )


def _why_then(feed: Mapping[str, Any], around: Surroundings, now: datetime) -> Iterator[Sentence]:
    """Yield what the moment of the next poll follows from."""
    if feed["last_attempt_at"] is None:
        yield ("It was never polled: first polls of many feeds are spread, so that they don't come all at once.",)
        return
    if feed["failures"]:
        yield (f"Each failure in a row doubles the wait, up to {_longest(feed, around)}.",)
    elif feed["last_outcome"] == Outcome.THROTTLED:
        yield ("Its server asked for a pause (Retry-After): it is polled at its usual time, but not before that ends.",)
    yield from _pace(feed, around)
    yield from _server_rules(feed, now)
    if feed["lying_since"]:
        yield ("Its server says “not modified” although the feed has changed (seen ", feed["lying_since"],
               "): once a day it is asked without condition.")  # fmt: skip


def _longest(feed: Mapping[str, Any], around: Surroundings) -> str:
    return in_words(feed["longest_seconds"] or around.longest_seconds)


def _pace(feed: Mapping[str, Any], around: Surroundings) -> Iterator[Sentence]:
    if feed["interval_seconds"]:
        yield (f"A person set its interval: {_every(feed['interval_seconds'])}.",)
        return
    seconds = feed["poll_seconds"]
    if not seconds:
        return
    rate = feed["items_per_day"]
    brings = "" if rate is None else f"A day is expected to bring {_count(rate)}, and so it"
    yield (f"{brings or 'It'} is polled about {_every(seconds)}.",)
    if seconds <= (feed["shortest_seconds"] or around.shortest_seconds):
        whose = "set for this feed" if feed["shortest_seconds"] else "FEEDMILL_MIN_POLL_SECONDS"
        yield (f"That is the shortest interval ({whose}).",)
    elif seconds >= (feed["longest_seconds"] or around.longest_seconds):
        whose = "set for this feed" if feed["longest_seconds"] else "FEEDMILL_MAX_POLL_SECONDS"
        yield (f"That is the longest interval ({whose}).",)


def _every(seconds: float) -> str:
    return f"every {in_words(seconds).removeprefix('1 ')}"


def _count(rate: float) -> str:
    return f"{rate:.3g} articles" if rate >= 0.1 else "hardly an article"


def _server_rules(feed: Mapping[str, Any], now: datetime) -> Iterator[Sentence]:
    """Yield which wish of the feed or its server made the wait longer than the interval, if that is known."""
    usual = feed["interval_seconds"] or feed["poll_seconds"] or 0.0
    planned = feed["last_attempt_at"] + timedelta(seconds=usual)
    at = feed["next_fetch_at"]
    is_longer = (at - planned).total_seconds() > max(jitter_span(usual), usual / 2) + LATE_SECONDS
    if feed["ttl_seconds"] and feed["ttl_seconds"] > usual:
        yield (f"The feed asks to be polled at most {_every(feed['ttl_seconds'])} (ttl, sy:updatePeriod).",)
    elif planned.hour in feed["skip_hours"] or planned.weekday() in feed["skip_days"]:
        yield ("The feed asks not to be polled in some hours or on some days (skipHours, skipDays): the next open hour"
               " is taken.",)  # fmt: skip
    elif is_longer and feed["last_outcome"] in _GOOD and at > now + RESUMED and at - feed["last_attempt_at"] < _LONGEST:
        yield ("The wait is longer than that: its server says how long its answer is good (Cache-Control,"
               " Expires).",)  # fmt: skip
