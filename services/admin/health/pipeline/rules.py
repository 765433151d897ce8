"""Pure: says of each stage whether it is healthy, degraded or down, and why. docs/how-to/monitor.md lists the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

from services.admin.health.diagnosis import LATE_SECONDS, QueueLevel, in_all, in_words, unread_optional
from services.admin.health.pipeline.picture import Attempts, Picture, Queues, TierQuality

STANDSTILL_SECONDS = 300.0
"""The scheduler is down if a feed waits for longer and no job was issued for longer."""

BATCH_LATE_SECONDS, BATCH_DOWN_SECONDS = 2 * 3600.0, 24 * 3600.0
"""Where `feedmill batch` fetches in place of scheduler and fetchers: the age of its last run."""

LEAST_SAMPLE = 20
"""Shares of fewer are not judged: attempts of an hour, new articles of a day."""

MOST_FAILURES = 0.5
MOST_UNPARSEABLE = 0.1
MOST_LOSS = 0.2
"""By so much (0.2: 20 percentage points) a share of the quality may fall against the week before."""


class Status(StrEnum):
    """How a stage fares. The worst of them is the pipeline's, `unknown` apart."""

    HEALTHY = "healthy"
    UNKNOWN = "unknown"
    DEGRADED = "degraded"
    DOWN = "down"


@dataclass(frozen=True)
class Verdict:
    """On one stage, or on the pipeline."""

    status: Status
    reasons: tuple[str, ...] = ()


_OF_ARTICLES = {"dated": "a sure date", "full": "their whole text"}
_OF_LABELS = {"language": "a text that tells its language", "topic": "a topic"}

Finding = tuple[Status, str]

_ORDER = list(Status)


def judge_stages(at: Picture) -> dict[str, Verdict]:
    """Return the verdict on each stage, in the order of the data."""
    verdicts = {"scheduler": _of(_scheduler(at)), "fetcher": _of(_fetcher(at)), "parser": _of(_parser(at))}
    return verdicts | {service: _of(_behind(service, at)) for service in at.services if service != "fetcher"}


def judge_quality(at: Picture) -> Verdict:
    """Return the verdict on the articles."""
    if at.quality is None:
        return Verdict(Status.UNKNOWN)
    day, week = in_sum(at.quality.day), in_sum(at.quality.week)
    if min(day.articles, week.articles) < LEAST_SAMPLE:
        return Verdict(Status.HEALTHY)
    now, before = day.shares, week.shares
    judged = _OF_ARTICLES if min(day.enriched, week.enriched) < LEAST_SAMPLE else _OF_ARTICLES | _OF_LABELS
    reasons = [
        f"{now[name]:.0%} of the last day's new articles have {what}; in the week before it was {before[name]:.0%}"
        for name, what in judged.items()
        if (before[name] or 0.0) - (now[name] or 0.0) > MOST_LOSS
    ]
    return Verdict(Status.DEGRADED if reasons else Status.HEALTHY, tuple(reasons))


def judge_all(stages: Mapping[str, Verdict], quality: Verdict) -> Verdict:
    """Return the verdict on the pipeline, with the reasons of all its parts, the worst first."""
    parts = sorted([*stages.values(), quality], key=lambda part: _ORDER.index(part.status), reverse=True)
    status = max((part.status for part in parts if part.status is not Status.UNKNOWN), key=_ORDER.index)
    return Verdict(status, tuple(dict.fromkeys(reason for part in parts for reason in part.reasons)))


def in_sum(tiers: Mapping[str, TierQuality]) -> TierQuality:
    """Return the articles of all tiers together."""
    every = tiers.values()
    return TierQuality(
        **{field.name: sum(getattr(tier, field.name) for tier in every) for field in fields(TierQuality)}
    )


def _of(findings: Iterator[Finding]) -> Verdict:
    found = list(findings)
    status = max((status for status, _ in found), key=_ORDER.index, default=Status.HEALTHY)
    return Verdict(status, tuple(dict.fromkeys(reason for _, reason in found)))


def _servers(at: Picture) -> Iterator[Finding]:
    if at.broker_trouble:
        yield Status.DOWN, f"RabbitMQ can't be asked: {at.broker_trouble}"
    if at.database_trouble:
        yield Status.DOWN, f"PostgreSQL can't be asked: {at.database_trouble}"


def _scheduler(at: Picture) -> Iterator[Finding]:
    yield from _servers(at)
    if at.pace is None or not at.pace.has_feeds:
        return
    if fetched_by_batch(at):
        yield from _batch(at.batches.seconds_since or 0.0)
        return
    if _is_paused(at):
        return  # it waits for the fetchers, as it has to
    late, idle = at.pace.late_seconds, at.pace.idle_seconds
    if late > STANDSTILL_SECONDS and (idle is None or idle > STANDSTILL_SECONDS):
        yield (
            Status.DOWN,
            f"feeds have been due for up to {in_words(late)} and nobody claims them: is a scheduler running?",
        )
    elif late > LATE_SECONDS:
        yield Status.DEGRADED, f"feeds are claimed late, the last ones after {in_words(late)}"


def _batch(age: float) -> Iterator[Finding]:
    if age > BATCH_LATE_SECONDS:
        status = Status.DOWN if age > BATCH_DOWN_SECONDS else Status.DEGRADED
        yield status, f"the last run of `feedmill batch` ended {in_words(age)} ago"


def fetched_by_batch(at: Picture) -> bool:
    """Return whether runs of `feedmill batch` fetch: there was one, and nobody reads the shards.

    These are empty, or the next run takes what has come there since the last one: retries of former fetchers.
    """
    shards, age = in_all(at.queues.shards.values()) if at.queues else None, at.batches.seconds_since
    return age is not None and not (shards and (shards.consumers or (shards.ready and age > BATCH_LATE_SECONDS)))


def _fetcher(at: Picture) -> Iterator[Finding]:
    if at.broker_trouble:
        yield Status.DOWN, f"RabbitMQ can't be asked: {at.broker_trouble}"
    if at.queues and not fetched_by_batch(at):
        yield from _at_shards(at.queues, at)
    if at.pace and at.pace.silence_seconds > at.limits.silence_seconds:
        yield Status.DOWN, f"no feed was fetched successfully for {in_words(at.pace.silence_seconds)}"
    if at.attempts:
        yield from _failures(at.attempts)


def _at_shards(queues: Queues, at: Picture) -> Iterator[Finding]:
    shards = in_all(queues.shards.values())
    if shards is None:
        yield Status.DOWN, "the fetchers' queues are not declared: no service has run on this broker yet"
        return
    if _waiting_behind(queues) >= at.limits.writer_high_water:
        return  # fetchers pause, as they have to; the stage behind says why
    if not shards.consumers:
        status = Status.DOWN if shards.ready else Status.DEGRADED
        yield status, f"nobody reads the fetchers' shards, where {shards.ready:,} jobs wait: is a fetcher running?"
        return
    unread = [name for name, level in queues.shards.items() if level and level.ready and not level.consumers]
    if unread:
        yield Status.DEGRADED, f"jobs wait in {', '.join(unread)}, which no fetcher reads"
    if shards.ready >= at.limits.fetcher_high_water:
        yield (
            Status.DEGRADED,
            f"{shards.ready:,} jobs wait for the fetchers (FEEDMILL_FETCHER_HIGH_WATER is"
            f" {at.limits.fetcher_high_water:,})",
        )


def _failures(attempts: Attempts) -> Iterator[Finding]:
    failed = sum(attempts.failures.values())
    if attempts.fetches >= LEAST_SAMPLE and failed > MOST_FAILURES * attempts.fetches:
        yield Status.DEGRADED, f"{failed / attempts.fetches:.0%} of the last fetches failed"


def _parser(at: Picture) -> Iterator[Finding]:
    if at.attempts is None:
        yield Status.UNKNOWN, f"PostgreSQL can't be asked: {at.database_trouble}"
        return
    bodies = at.attempts.read + at.attempts.unparseable
    if bodies >= LEAST_SAMPLE and at.attempts.unparseable > MOST_UNPARSEABLE * bodies:
        yield Status.DEGRADED, f"{at.attempts.unparseable / bodies:.0%} of the last bodies could not be read"


def _behind(service: str, at: Picture) -> Iterator[Finding]:
    if service == "writer":
        yield from _servers(at)
    elif at.broker_trouble:
        yield Status.DOWN, f"RabbitMQ can't be asked: {at.broker_trouble}"
    if at.queues is None:
        return
    level: QueueLevel | None = at.queues.behind[service]
    if service in at.optional:
        yield from _optional(service, level, is_on=at.optional[service])
    elif level is None:
        yield Status.DOWN, f"the queue `{service}` is not declared: no service has run on this broker yet"
    elif not level.consumers:
        status = Status.DOWN if level.ready else Status.DEGRADED
        yield status, f"nobody reads `{service}`, where {level.ready:,} results wait: is the {service} running?"
    if level and level.ready >= at.limits.writer_high_water:
        yield (
            Status.DEGRADED,
            f"{level.ready:,} results wait in `{service}` (FEEDMILL_WRITER_HIGH_WATER is"
            f" {at.limits.writer_high_water:,})",
        )


def _optional(service: str, level: QueueLevel | None, *, is_on: bool) -> Iterator[Finding]:
    """Articles go on without this stage, so it is never down."""
    if level and level.consumers:
        return
    if level and level.ready:
        yield Status.DEGRADED, unread_optional(service, level.ready)
    elif is_on:
        yield Status.DEGRADED, f"no {service} is running: articles go on without what it adds"


def _waiting_behind(queues: Queues) -> int:
    return sum(level.ready for level in queues.behind.values() if level)


def _is_paused(at: Picture) -> bool:
    shards = in_all(at.queues.shards.values()) if at.queues else None
    return shards is not None and shards.ready >= at.limits.fetcher_high_water
