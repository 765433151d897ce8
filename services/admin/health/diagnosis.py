"""Pure: says from numbers what keeps feeds from being fetched, each reason a sentence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

LATE_SECONDS = 60.0
"""A feed that has been due for longer is overdue. Schedulers look every second."""


class HostState(StrEnum):
    """By what hosts can be chosen."""

    THROTTLED = "throttled"
    DOWN = "down"
    BACKLOG = "backlog"
    FAILING = "failing"


@dataclass(frozen=True)
class FeedCounts:
    """How many feeds are in which state. Spans in seconds."""

    feeds: int
    disabled: int
    due: int
    """They may be claimed now."""
    overdue: int
    """Of these, due for more than a minute."""
    left_alone: int
    """Overdue feeds at hosts that are throttled now."""
    queued: int
    """Claimed, and no result has come yet: the job waits in a queue or is being fetched."""
    retrying: int
    """Claimed, and at least one attempt failed: the job waits in the retry queue, or is tried again."""
    failing: int
    pending_articles: int
    longest_due_seconds: float | None
    next_due_seconds: float | None
    """Until the next feed is due; None if there is none."""
    seconds_since_success: float | None
    """Since the last attempt that succeeded began, at any feed; None if there never was one."""


@dataclass(frozen=True)
class Thresholds:
    """The settings above which feeds wait."""

    fetcher_high_water: int
    writer_high_water: int
    group_jobs: int
    silence_seconds: float


@dataclass(frozen=True)
class QueueLevel:
    """A queue as the broker sees it."""

    ready: int
    consumers: int


@dataclass(frozen=True)
class Situation:
    """The numbers that the reasons follow from. A queue that is not declared is None."""

    counts: FeedCounts
    shards: Mapping[str, QueueLevel | None]
    """By the shard's name."""
    behind: Mapping[str, QueueLevel | None]
    """By queue: the stages behind the fetcher, the next one first."""
    busiest: Mapping[str, int]
    """Politeness groups with the most jobs under way, and how many."""
    limits: Thresholds
    """From the settings of this environment. The services should have the same."""
    optional: Collection[str] = ()
    """Queues of stages that results can do without."""


class Reason(NamedTuple):
    """Why feeds are not fetched."""

    name: str
    """That of the alarm that says the same, if there is one."""
    sentence: str


def explain(at: Situation) -> list[Reason]:
    """Return what keeps feeds from being fetched; the most important reason first."""
    if at.counts.feeds == 0:
        return [Reason("no_feeds", "there are no feeds yet: `feedmill feeds add URL`")]
    if at.counts.feeds == at.counts.disabled:
        return [Reason("all_disabled", "all feeds are disabled: `feedmill feeds list` tells why")]
    fetcher = in_all(at.shards.values())
    if fetcher is None or any(level is None and queue not in at.optional for queue, level in at.behind.items()):
        return [Reason("queues_missing", "the queues are not declared: no service has run on this broker yet")]
    return [*_at_queues(fetcher, at), *_at_claims(fetcher, at), *_at_feeds(at.counts)]


def in_all(levels: Iterable[QueueLevel | None]) -> QueueLevel | None:
    """Return the level of several queues together; None if none of them is declared."""
    declared = [level for level in levels if level is not None]
    if not declared:
        return None
    return QueueLevel(sum(level.ready for level in declared), sum(level.consumers for level in declared))


def _at_queues(fetcher: QueueLevel, at: Situation) -> Iterator[Reason]:
    behind = {queue: level for queue, level in at.behind.items() if level}
    results = sum(level.ready for level in behind.values())
    choked = results >= at.limits.writer_high_water
    if choked:
        where = ", ".join(f"`{queue}`" for queue, level in behind.items() if level.ready)
        said = f"{results:,} results wait in {where} (FEEDMILL_WRITER_HIGH_WATER is {at.limits.writer_high_water:,}):"
        yield Reason("backpressure", f"{said} the fetchers take no jobs until half of them are written")
    for queue, level in behind.items():
        if level.ready and not level.consumers:
            waiting = counted(level.ready, "result waits", "results wait")
            said = f"nobody reads `{queue}`, where {waiting}: is a {queue} running?"
            is_optional = queue in at.optional
            yield Reason(f"{queue}_missing", unread_optional(queue, level.ready) if is_optional else said)
    if fetcher.ready and not fetcher.consumers and not choked:
        waiting = counted(fetcher.ready, "job waits", "jobs wait")
        said = f"nobody reads the fetchers' shards, where {waiting}: is a fetcher running?"
        yield Reason("fetchers_missing", said)
    elif not choked:
        yield from _at_shards(at.shards)


def unread_optional(queue: str, ready: int) -> str:
    """Return what it means that nobody reads the queue of a stage that results can do without."""
    from shared.broker.topology import OPTIONAL_SECONDS  # not above: every command imports this module

    waiting = counted(ready, "result waits", "results wait")
    return f"nobody reads `{queue}`, where {waiting}: each goes on without it after {in_words(OPTIONAL_SECONDS)}"


def _at_shards(shards: Mapping[str, QueueLevel | None]) -> Iterator[Reason]:
    if said := unread_shards(shards):
        yield Reason("shards_unread", said)


def unread_shards(shards: Mapping[str, QueueLevel | None]) -> str | None:
    """Return which shards no fetcher reads although jobs wait there; None: there is none."""
    unread = {name: level.ready for name, level in shards.items() if level and level.ready and not level.consumers}
    if not unread:
        return None
    names = ", ".join(f"`{name}`" for name in sorted(unread))
    waiting = counted(sum(unread.values()), "job waits", "jobs wait")
    return (
        f"no fetcher reads {names}, where {waiting}: do all services have the same"
        " FEEDMILL_FETCHER_SHARDS? (A shard that is handed over, or whose fetcher pauses, has no reader for a"
        " moment)"
    )


def _at_claims(fetcher: QueueLevel, at: Situation) -> Iterator[Reason]:
    paused = fetcher.ready >= at.limits.fetcher_high_water
    if paused and at.counts.due:
        said = f"{fetcher.ready:,} jobs wait for the fetchers (FEEDMILL_FETCHER_HIGH_WATER is"
        said = f"{said} {at.limits.fetcher_high_water:,}): no more are issued until there is room"
        yield Reason("fetchers_behind", said)
    full = {group: jobs for group, jobs in at.busiest.items() if jobs >= at.limits.group_jobs}
    for group, jobs in full.items():
        said = f"{group} has {jobs:,} jobs under way (FEEDMILL_GROUP_JOBS is {at.limits.group_jobs:,}):"
        yield Reason("host_full", f"{said} its other feeds wait for these")
    if at.counts.overdue > at.counts.left_alone and not paused and not full:
        longest = in_words(at.counts.longest_due_seconds or 0)
        said = f"feeds have been due for up to {longest} and nobody claims them: is a scheduler running?"
        yield Reason("scheduler_missing", said)
    if at.counts.left_alone:
        said = f"{at.counts.left_alone:,} overdue feeds wait for hosts that asked to be left alone for a while"
        if at.counts.left_alone == 1:
            said = "one overdue feed waits for its host, which asked to be left alone for a while"
        yield Reason("left_alone", said)


def _at_feeds(counts: FeedCounts) -> Iterator[Reason]:
    if counts.due + counts.queued == 0 and counts.next_due_seconds is not None:
        yield Reason("none_due", f"no feed is due: the next one is in {in_words(counts.next_due_seconds)}")


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with the words that belong to it: `1 job waits`, `2,000 jobs wait`; else `many` gets an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def in_words(seconds: float) -> str:
    """Return a span as a person would say it: in its largest whole unit."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length or (unit == "day" and seconds >= length):
            number = int(seconds // length)
            return f"{number} {unit}{'s' if number != 1 else ''}"
    return f"{int(seconds)} second{'s' if int(seconds) != 1 else ''}"
