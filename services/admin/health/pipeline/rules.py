"""Pure: says of each stage whether it is healthy, degraded or down, and why. docs/how-to/monitor.md lists the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from services.admin.health.alarms.advice import Finding
from services.admin.health.alarms.alarm import Alarm, Severity
from services.admin.health.alarms.causes import commonest
from services.admin.health.alarms.servers import find_at_broker, find_at_database
from services.admin.health.diagnosis import (
    LATE_SECONDS,
    QueueLevel,
    counted,
    in_all,
    in_words,
    unread_optional,
    unread_shards,
)
from services.admin.health.pipeline.picture import Picture, Queues, TierQuality
from services.admin.health.pipeline.status import Status

STANDSTILL_SECONDS = 300.0
"""The scheduler is down if a feed waits for longer and no job was issued for longer."""

BATCH_LATE_SECONDS, BATCH_DOWN_SECONDS = 2 * 3600.0, 24 * 3600.0
"""Where `feedmill batch` fetches in place of scheduler and fetchers: the age of its last run."""

LEAST_SAMPLE = 20
"""Shares of fewer are not judged: attempts of an hour, new articles of a day."""

MOST_FAILURES = 0.5
MOST_UNPARSEABLE = 0.1
LEAST_FEEDS = 5
"""Fewer feeds that fail are told in the list of feeds only."""
MOST_LOSS = 0.2
"""By so much (0.2: 20 percentage points) a share of the quality may fall against the week before."""


@dataclass(frozen=True)
class Verdict:
    """On one stage, or on the pipeline."""

    status: Status
    reasons: tuple[str, ...] = ()


_OF_ARTICLES = {"dated": "a sure date", "full": "their whole text"}
_OF_LABELS = {"language": "a text that tells its language", "topic": "a topic"}

_ORDER = list(Status)
_STATUSES = {Severity.CRITICAL: Status.DOWN, Severity.WARNING: Status.DEGRADED}


def judge_stages(at: Picture) -> dict[str, Verdict]:
    """Return the verdict on each stage, in the order of the data."""
    return {stage: _of(found) for stage, found in find_by_stage(at).items()}


def find_by_stage(at: Picture) -> dict[str, list[Finding]]:
    """Return what is wrong with each stage, in the order of the data."""
    found = {"scheduler": _scheduler(at), "fetcher": _fetcher(at), "parser": _parser(at)}
    found |= {service: _behind(service, at) for service in at.services if service != "fetcher"}
    return {stage: list(of_stage) for stage, of_stage in found.items()}


def judge_quality(at: Picture) -> Verdict:
    """Return the verdict on the articles."""
    return Verdict(Status.UNKNOWN) if at.quality is None else _of(find_in_quality(at))


def find_in_quality(at: Picture) -> list[Finding]:
    """Return what is wrong with the articles."""
    if at.quality is None:
        return []
    day, week = in_sum(at.quality.day), in_sum(at.quality.week)
    if min(day.articles, week.articles) < LEAST_SAMPLE:
        return []
    now, before = day.shares, week.shares
    judged = _OF_ARTICLES if min(day.enriched, week.enriched) < LEAST_SAMPLE else _OF_ARTICLES | _OF_LABELS
    return [
        Finding(
            Status.DEGRADED,
            "quality_fell",
            f"{now[name]:.0%} of the last day's new articles have {what}; in the week before it was {before[name]:.0%}",
        )
        for name, what in judged.items()
        if (before[name] or 0.0) - (now[name] or 0.0) > MOST_LOSS
    ]


def judge_all(stages: Mapping[str, Verdict], quality: Verdict, alarms: Iterable[Alarm] = ()) -> Verdict:
    """Return the verdict on the pipeline, with the reasons of all its parts, the worst first."""
    of_alarms = [Verdict(_STATUSES[alarm.severity], (alarm.sentence,)) for alarm in alarms]
    every = [*of_alarms, *stages.values(), quality]
    parts = sorted(every, key=lambda part: _ORDER.index(part.status), reverse=True)
    status = max((part.status for part in parts if part.status is not Status.UNKNOWN), key=_ORDER.index)
    return Verdict(status, tuple(dict.fromkeys(reason for part in parts for reason in part.reasons)))


def in_sum(tiers: Mapping[str, TierQuality]) -> TierQuality:
    """Return the articles of all tiers together."""
    every = tiers.values()
    return TierQuality(
        **{field.name: sum(getattr(tier, field.name) for tier in every) for field in fields(TierQuality)}
    )


def _of(found: list[Finding]) -> Verdict:
    status = max((finding.status for finding in found), key=_ORDER.index, default=Status.HEALTHY)
    return Verdict(status, tuple(dict.fromkeys(finding.sentence for finding in found)))


def _since(at: Picture, seconds: float) -> datetime:
    return at.now - timedelta(seconds=seconds)


def _scheduler(at: Picture) -> Iterator[Finding]:
    yield from find_at_broker(at)
    yield from find_at_database(at)
    if at.pace is None or not at.pace.has_feeds:
        return
    if fetched_by_batch(at):
        yield from _batch(at, at.batches.seconds_since or 0.0)
        return
    if _is_paused(at) or at.broker_alarm or (at.state and (at.state.is_full or at.state.is_read_only)):
        return  # it waits for the others, as it has to
    late = at.pace.late_seconds
    if _is_unclaimed(at):
        said = f"feeds have been due for up to {in_words(late)} and nobody claims them: is a scheduler running?"
        yield Finding(Status.DOWN, "scheduler_missing", said, _since(at, late))
    elif late > LATE_SECONDS:
        said = f"feeds are claimed late, the last ones after {in_words(late)}"
        yield Finding(Status.DEGRADED, "scheduler_late", said)


def _is_unclaimed(at: Picture) -> bool:
    """Return whether feeds are due and nobody issues jobs: that nothing succeeds then is no more news."""
    if at.pace is None or not at.pace.has_feeds or _is_paused(at) or fetched_by_batch(at):
        return False
    idle = at.pace.idle_seconds
    return at.pace.late_seconds > STANDSTILL_SECONDS and (idle is None or idle > STANDSTILL_SECONDS)


def _batch(at: Picture, age: float) -> Iterator[Finding]:
    if age > BATCH_LATE_SECONDS:
        status = Status.DOWN if age > BATCH_DOWN_SECONDS else Status.DEGRADED
        said = f"the last run of `feedmill batch` ended {in_words(age)} ago"
        yield Finding(status, "batch_late", said, _since(at, age))


def fetched_by_batch(at: Picture) -> bool:
    """Return whether runs of `feedmill batch` fetch: there was one, and nobody reads the shards.

    These are empty, or the next run takes what has come there since the last one: retries of former fetchers.
    """
    shards, age = in_all(at.queues.shards.values()) if at.queues else None, at.batches.seconds_since
    return age is not None and not (shards and (shards.consumers or (shards.ready and age > BATCH_LATE_SECONDS)))


def silent_seconds(at: Picture) -> float:
    """Return for how long no attempt has succeeded though feeds wanted one.

    Where batches fetch, until the last one ended: between two runs nobody is expected to succeed.
    """
    if at.pace is None:
        return 0.0
    between = at.batches.seconds_since or 0.0 if fetched_by_batch(at) else 0.0
    return max(at.pace.silence_seconds - between, 0.0)


def _fetcher(at: Picture) -> Iterator[Finding]:
    yield from find_at_broker(at)
    if at.queues and not fetched_by_batch(at):
        yield from _at_shards(at.queues, at)
    silence = silent_seconds(at)
    if at.pace and silence > at.limits.silence_seconds and not (_is_unclaimed(at) or _is_unwritten(at)):
        since = _since(at, at.pace.silence_seconds)
        yield _of_failures(
            at, Status.DOWN, "silent", f"no feed was fetched successfully for {in_words(silence)}", since
        )
        return
    if at.attempts:
        failed = sum(at.attempts.failures.values())
        if at.attempts.fetches >= LEAST_SAMPLE and failed > MOST_FAILURES * at.attempts.fetches:
            said = f"{failed / at.attempts.fetches:.0%} of the last fetches failed"
            yield _of_failures(at, Status.DEGRADED, "most_fail", said)
    failing, asked = at.feeds.failing, at.feeds.asked
    if failing >= LEAST_FEEDS and failing > MOST_FAILURES * asked:
        which = f"{failing:,} of {asked:,}" if failing < asked else f"all of {asked:,}"
        yield Finding(Status.DEGRADED, "most_feeds_fail", f"{which} feeds fail")


def _is_unwritten(at: Picture) -> bool:
    """Return whether nobody writes the results that come: there may be successes among them."""
    if at.state and (at.state.is_full or at.state.is_read_only):
        return True
    behind = at.queues.behind if at.queues else {}
    unread = (level for stage, level in behind.items() if stage not in at.optional)
    return any(level and level.ready and not level.consumers for level in unread)


def _of_failures(at: Picture, status: Status, name: str, said: str, since: datetime | None = None) -> Finding:
    """Return a finding with the commonest cause of failures, if one is known."""
    cause = commonest(at.failures) if at.failures else None
    if cause is None:
        return Finding(status, name, said, since)
    return Finding(status, name, f"{said}: {cause.words}", since, cause.action or None)


def _at_shards(queues: Queues, at: Picture) -> Iterator[Finding]:
    shards = in_all(queues.shards.values())
    if shards is None:
        said = "the fetchers' queues are not declared: no service has run on this broker yet"
        yield Finding(Status.DOWN, "queues_missing", said)
        return
    if _waiting_behind(queues) >= at.limits.writer_high_water:
        return  # fetchers pause, as they have to; the stage behind says why
    if not shards.consumers:
        waiting = f", where {counted(shards.ready, 'job waits', 'jobs wait')}" if shards.ready else ""
        said = f"nobody reads the fetchers' shards{waiting}: is a fetcher running?"
        yield Finding(Status.DOWN if shards.ready else Status.DEGRADED, "fetchers_missing", said)
        return
    if unread := unread_shards(queues.shards):
        yield Finding(Status.DEGRADED, "shards_unread", unread)
    if shards.ready >= at.limits.fetcher_high_water:
        said = f"{shards.ready:,} jobs wait for the fetchers (FEEDMILL_FETCHER_HIGH_WATER is"
        yield Finding(Status.DEGRADED, "fetchers_behind", f"{said} {at.limits.fetcher_high_water:,})")


def _parser(at: Picture) -> Iterator[Finding]:
    if at.attempts is None:
        yield Finding(Status.UNKNOWN, "database_away", f"PostgreSQL can't be asked: {at.database_trouble}")
        return
    bodies = at.attempts.read + at.attempts.unparseable
    if bodies >= LEAST_SAMPLE and at.attempts.unparseable > MOST_UNPARSEABLE * bodies:
        said = f"{at.attempts.unparseable / bodies:.0%} of the last bodies could not be read"
        yield Finding(Status.DEGRADED, "unparseable", said)


def _behind(service: str, at: Picture) -> Iterator[Finding]:
    yield from find_at_broker(at)
    if service == "writer":
        yield from find_at_database(at)
    if at.queues is None:
        return
    level: QueueLevel | None = at.queues.behind[service]
    if service in at.optional:
        yield from _optional(service, level, is_on=at.optional[service])
    elif level is None:
        said = f"the queue `{service}` is not declared: no service has run on this broker yet"
        yield Finding(Status.DOWN, "queues_missing", said)
    elif not level.consumers:
        waiting = f", where {counted(level.ready, 'result waits', 'results wait')}" if level.ready else ""
        said = f"nobody reads `{service}`{waiting}: is the {service} running?"
        yield Finding(Status.DOWN if level.ready else Status.DEGRADED, _name(service, "missing"), said)
    if level and level.ready >= at.limits.writer_high_water:
        said = f"{level.ready:,} results wait in `{service}` (FEEDMILL_WRITER_HIGH_WATER is"
        yield Finding(Status.DEGRADED, _name(service, "behind"), f"{said} {at.limits.writer_high_water:,})")


def _optional(service: str, level: QueueLevel | None, *, is_on: bool) -> Iterator[Finding]:
    """Articles go on without this stage, so it is never down."""
    if level and level.consumers:
        return
    name = _name(service, "missing")
    if level and level.ready:
        yield Finding(Status.DEGRADED, name, unread_optional(service, level.ready))
    elif is_on:
        yield Finding(Status.DEGRADED, name, f"no {service} is running: articles go on without what it adds")


def _name(service: str, what: str) -> str:
    return f"{service if service in {'writer', 'enricher'} else 'stage'}_{what}"


def _waiting_behind(queues: Queues) -> int:
    return sum(level.ready for level in queues.behind.values() if level)


def _is_paused(at: Picture) -> bool:
    shards = in_all(at.queues.shards.values()) if at.queues else None
    return shards is not None and shards.ready >= at.limits.fetcher_high_water
