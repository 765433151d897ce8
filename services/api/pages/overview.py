"""The first page: what flows, what is late, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from services.admin.health.alarms.alarm import is_critical
from services.admin.health.backlog import ARTICLES, MOST_SAMPLES, Sample
from services.admin.health.freshness_words import in_full
from services.admin.health.pipeline.picture import Attempts, part
from services.admin.health.scene import Scene
from services.admin.health.stats import Stats
from services.admin.health.status import Hour
from services.api.models.health import PipelineHealth
from services.api.pages import pictures
from services.api.pages.frame import Visitor, render
from services.api.resources import Here
from shared.build import PROJECT_URL
from shared.wire.outcomes import Outcome, OutcomeClass, words_of

DOCS = f"{PROJECT_URL}/blob/main/docs/"
"""Alarms name pages of it."""

router = APIRouter(include_in_schema=False)

_FAILED = {outcome.value for outcome in Outcome if outcome.outcome_class in {OutcomeClass.SOFT, OutcomeClass.HARD}}

OLD = timedelta(seconds=30)
"""Figures that are older are told to be."""

RECENT_SECONDS = 10.0
"""A page is shown at once with figures of this age, and the first event brings newer ones, five seconds later."""
LOOK_SECONDS = 2.5
"""For newer figures than that a page waits so long. A look at servers that hang ends before."""

_WAITING = {
    "fetcher": "jobs that wait for the fetchers",
    "enricher": "results that wait for the enricher",
    "writer": "results that wait for the writer",
    ARTICLES: "articles that wait for consumers",
}


@dataclass(frozen=True)
class ErrorKind:
    """Fetches that failed in the same way."""

    outcome: str
    words: str
    attempts: int
    share: float | None
    """Of all fetches."""


@dataclass(frozen=True)
class Curve:
    """How one backlog went."""

    name: str
    words: str
    path: str
    now: int | None
    most: int


@router.get("/")
async def overview_page(request: Request, here: Here, _visitor: Visitor) -> HTMLResponse:
    """Show how things stand."""
    scene = await here.scene.recent(RECENT_SECONDS, patience_seconds=LOOK_SECONDS)
    picture, stats, attempts = scene.picture, scene.stats, scene.picture.attempts
    samples = here.backlog.samples
    return render(
        request,
        "overview.html",
        stages=PipelineHealth.of(picture).stages,
        stats=stats,
        state=_state(scene),
        seen_at=picture.now,
        others=[reason for reason in stats.reasons if reason not in {alarm.sentence for alarm in stats.alarms}],
        fetches=pictures.stack([(hour.succeeded, hour.failed) for hour in stats.hours]),
        articles=pictures.stack([(hour.articles,) for hour in stats.hours]),
        totals=_totals(stats.hours),
        freshness={span: in_full(found) for span, found in (stats.freshness or {}).items()},
        errors=_errors(attempts) if attempts else [],
        window=attempts.window_seconds if attempts else None,
        curves=_curves(samples),
        watched_since=samples[0].at if samples else None,
        old=_old(stats),
        worst=[(each.host, each.failing, words_of(each.outcome or "")) for each in scene.worst or ()],
        docs=DOCS,
        rabbitmq_page=here.settings.api_rabbitmq_page,
        grafana_page=here.settings.api_grafana_page,
    )


def _state(scene: Scene) -> str:
    if is_critical(scene.stats.alarms):
        return "down"
    if scene.stats.alarms:
        return "degraded"
    counts = scene.stats.counts
    if counts and counts.feeds.feeds == counts.feeds.disabled > 0:
        return "unknown"
    is_old = datetime.now(UTC) - scene.picture.now > OLD or _old(scene.stats)
    return "unknown" if is_old else "healthy"


def _old(stats: Stats) -> list[tuple[str, datetime]]:
    """Return what could not be looked at just now, and when it was the last time."""
    seen = (("feeds and articles", stats.counts_at), ("queues", stats.levels_at))
    return [(what, at) for what, at in seen if at and datetime.now(UTC) - at > OLD]


def _totals(hours: Sequence[Hour]) -> dict[str, int]:
    return {name: sum(getattr(hour, name) for hour in hours) for name in ("succeeded", "failed", "articles")}


def _errors(attempts: Attempts) -> list[ErrorKind]:
    failed = {name: number for name, number in attempts.outcomes.items() if name in _FAILED and number}
    return [
        ErrorKind(name, words_of(name), number, part(number, attempts.fetches))
        for name, number in sorted(failed.items(), key=lambda item: -item[1])
    ]


def _curves(samples: Sequence[Sample]) -> list[Curve]:
    """Return a curve of each backlog that is not always 0; two samples are the least."""
    curves = []
    for name, words in _WAITING.items():
        values = [sample.waiting.get(name) for sample in samples]
        most = max((value for value in values if value is not None), default=0)
        if most and len(values) > 1:
            curves.append(Curve(name, words, pictures.line(values, MOST_SAMPLES), values[-1], most))
    return curves
