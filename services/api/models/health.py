"""How the pipeline fares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from services.admin.health.alarms.rules import find_alarms
from services.admin.health.diagnosis import in_all
from services.admin.health.pipeline.picture import Attempts, Picture, Quality, TierQuality, part
from services.admin.health.pipeline.rules import Verdict, in_sum, judge_all, judge_quality, judge_stages
from services.api.models.alarms import EXAMPLE as ALARM
from services.api.models.alarms import AlarmRow
from shared.wire.outcomes import Outcome

_WHOLE: dict[str, JsonValue] = {
    "articles": 1240,
    "share": 1.0,
    "dated": 0.97,
    "full": 0.41,
    "enriched": 1.0,
    "language": 0.96,
    "topic": 0.71,
    "duplicate_address": 0.02,
    "duplicate_title": 0.01,
    "duplicate_text": 0.05,
}
_CHANGE: dict[str, JsonValue] = {
    "dated": 0.01,
    "full": -0.02,
    "enriched": 0.0,
    "language": 0.0,
    "topic": -0.01,
    "duplicate_address": 0.0,
    "duplicate_title": 0.0,
    "duplicate_text": 0.02,
}
COMPARED: dict[str, JsonValue] = {"day": _WHOLE, "week": {**_WHOLE, "articles": 8400}, "change": _CHANGE}

EXAMPLE: dict[str, JsonValue] = {
    "status": "degraded",
    "reasons": ["2,310 results wait in `writer` (FEEDMILL_WRITER_HIGH_WATER is 2,000)"],
    "alarms": [ALARM],
    "window_seconds": 3600.0,
    "stages": [
        {
            "stage": "writer",
            "status": "degraded",
            "reasons": ["2,310 results wait in `writer` (FEEDMILL_WRITER_HIGH_WATER is 2,000)"],
            "depth": 2310,
            "workers": 1,
            "retrying": 0,
            "dead_letters": 0,
            "per_hour": {"results": 2250.0, "articles": 318.0},
            "shares": {"duplicates": 0.02, "known": 0.94},
        }
    ],
    "quality": {"status": "healthy", "reasons": [], **COMPARED, "tiers": {"strict": COMPARED}},
    "batches": {"runs": 0, "seconds_since": None},
}

StageStatus = Literal["healthy", "degraded", "down", "unknown"]


class StageHealth(BaseModel):
    """One stage."""

    stage: str
    status: StageStatus
    reasons: list[str]
    depth: Annotated[int | None, Field(description="Messages that wait for it; of the scheduler: feeds that are due.")]
    workers: Annotated[int | None, Field(description="Consumers of its queue; of the fetcher: one per shard.")]
    retrying: Annotated[int | None, Field(description="Messages that wait for another try.")]
    dead_letters: int | None
    per_hour: Annotated[dict[str, float], Field(description="What it did, as a rate.")]
    shares: Annotated[dict[str, float | None], Field(description="From 0 to 1; null: of nothing.")]


class Shares(BaseModel):
    """New articles of a span."""

    articles: int
    share: Annotated[float | None, Field(description="Of all new articles; null: there are none.")]
    dated: Annotated[float | None, Field(description="The share with a sure date.")]
    full: Annotated[float | None, Field(description="The share with the whole text.")]
    enriched: Annotated[float | None, Field(description="The share that an enricher saw.")] = None
    language: Annotated[float | None, Field(description="Of these, the share whose text tells its language.")] = None
    topic: Annotated[float | None, Field(description="Of these, the share with a topic.")] = None
    duplicate_address: Annotated[float | None, Field(description="The share known by another address.")] = None
    duplicate_title: Annotated[float | None, Field(description="The share that came before by its title.")] = None
    duplicate_text: Annotated[float | None, Field(description="The share that came before by its text.")] = None


class Change(BaseModel):
    """By how much a share of the last day differs from the week's: -0.1 is 10 percentage points less."""

    dated: float | None
    full: float | None
    enriched: float | None = None
    language: float | None = None
    topic: float | None = None
    duplicate_address: float | None = None
    duplicate_title: float | None = None
    duplicate_text: float | None = None


class Compared(BaseModel):
    """The last day, and the seven days before it."""

    day: Shares
    week: Shares
    change: Change

    @classmethod
    def of(cls, day: TierQuality, week: TierQuality, all_day: int, all_week: int) -> Self:
        """Return the comparison; `all_day` and `all_week` count the articles of all tiers."""
        now, before = day.shares, week.shares
        change = Change(**{name: _less(now[name], before[name]) for name in now})
        return cls(day=_shares(day, all_day), week=_shares(week, all_week), change=change)

    @classmethod
    def of_all(cls, found: Quality) -> Self:
        """Return the comparison of the articles of all tiers together."""
        day, week = in_sum(found.day), in_sum(found.week)
        return cls.of(day, week, day.articles, week.articles)


class QualityHealth(Compared):
    """What new articles are like."""

    status: StageStatus
    reasons: list[str]
    tiers: dict[str, Compared]


class BatchHealth(BaseModel):
    """Runs of `feedmill batch`."""

    runs: Annotated[int, Field(description="Ended within the last day.")]
    seconds_since: Annotated[float | None, Field(description="Since the last one ended.")]


class PipelineHealth(BaseModel):
    """How the pipeline fares; the figures are at most five seconds old."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    status: Literal["healthy", "degraded", "down"]
    reasons: list[str]
    alarms: Annotated[list[AlarmRow], Field(description="What is wrong, the worst first.")] = []
    window_seconds: Annotated[float | None, Field(description="Rates and shares of the stages are of so long.")]
    stages: Annotated[list[StageHealth], Field(description="In the order of the data.")]
    quality: Annotated[QualityHealth | None, Field(description="Null: not counted yet, or the database is away.")]
    batches: BatchHealth

    @classmethod
    def of(cls, at: Picture) -> Self:
        """Return the figures with the verdicts on them."""
        stages, quality = judge_stages(at), judge_quality(at)
        alarms = find_alarms(at)
        verdict = judge_all(stages, quality, alarms)
        return cls(
            status=verdict.status.value,
            reasons=list(verdict.reasons),
            alarms=[AlarmRow.model_validate(alarm) for alarm in alarms],
            window_seconds=at.attempts.window_seconds if at.attempts else None,
            stages=[_stage(name, judged, at) for name, judged in stages.items()],
            quality=at.quality and _quality(at.quality, quality),
            batches=BatchHealth.model_validate(vars(at.batches)),
        )


def _stage(name: str, verdict: Verdict, at: Picture) -> StageHealth:
    depth, workers = _load(name, at)
    return StageHealth(
        stage=name,
        status=verdict.status.value,
        reasons=list(verdict.reasons),
        depth=depth,
        workers=workers,
        retrying=at.queues.retry.get(name) if at.queues else None,
        dead_letters=at.queues.dead.get(name) if at.queues else None,
        per_hour=_per_hour(name, at.attempts) if at.attempts else {},
        shares=_shares_of(name, at.attempts) if at.attempts else {},
    )


def _load(name: str, at: Picture) -> tuple[int | None, int | None]:
    """Return how much waits for a stage, and how many consumers it has."""
    if name == "scheduler":
        return (at.pace.due if at.pace else None), None
    if at.queues is None or name == "parser":
        return None, None
    level = in_all(at.queues.shards.values()) if name == "fetcher" else at.queues.behind.get(name)
    return (level.ready, level.consumers) if level else (None, None)


def _per_hour(name: str, attempts: Attempts) -> dict[str, float]:
    numbers = {
        "fetcher": {"fetches": attempts.fetches},
        "parser": {"bodies": attempts.read},
        "writer": {"results": attempts.results, "articles": attempts.new},
    }
    return {what: attempts.per_hour(number) for what, number in numbers.get(name, {}).items()}


def _shares_of(name: str, attempts: Attempts) -> dict[str, float | None]:
    match name:
        case "fetcher":
            failed = attempts.failures
            return {
                "not_modified": part(attempts.outcomes.get(Outcome.NOT_MODIFIED, 0), attempts.fetches),
                "failed": part(sum(failed.values()), attempts.fetches),
                **{f"failed_{kind}": part(failed.get(kind, 0), attempts.fetches) for kind in ("soft", "hard")},
            }
        case "parser":
            tiers = {"strict": 0, **attempts.tiers}
            return {
                **{tier: part(number, attempts.read) for tier, number in tiers.items()},
                "unparseable": part(attempts.unparseable, attempts.read + attempts.unparseable),
            }
        case "writer":
            return {
                "duplicates": part(attempts.duplicates, attempts.new),
                "known": part(max(attempts.listed - attempts.new, 0), attempts.listed),
            }
    return {}


def _quality(found: Quality, verdict: Verdict) -> QualityHealth:
    day, week = in_sum(found.day), in_sum(found.week)

    def compare(days: Mapping[str, TierQuality], tier: str) -> TierQuality:
        return days.get(tier, TierQuality(0, 0, 0))

    tiers = {
        tier: Compared.of(compare(found.day, tier), compare(found.week, tier), day.articles, week.articles)
        for tier in sorted(found.day.keys() | found.week.keys())
    }
    whole = Compared.of_all(found)
    return QualityHealth(
        status=verdict.status.value,
        reasons=list(verdict.reasons),
        day=whole.day,
        week=whole.week,
        change=whole.change,
        tiers=tiers,
    )


def _shares(of: TierQuality, articles: int) -> Shares:
    return Shares(articles=of.articles, share=part(of.articles, articles), **of.shares)


def _less(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else round(now - before, 4)
