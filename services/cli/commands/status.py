"""The command `feedmill status`: the backlog, the feeds, the articles, and why nothing moves, at one glance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.admin.health.diagnosis import QueueLevel, in_all
from services.admin.health.diagnosis import in_words as span_in_words
from services.admin.health.freshness_words import in_words
from services.cli.calls.opening import open_api
from services.cli.options import AsJson
from services.cli.output import Column, console, print_facts, print_table
from shared.broker.shards import is_front, is_shard
from shared.observability.display import ascii_json, safe_to_show

if TYPE_CHECKING:
    from services.api.models.alarms import AlarmRow
    from services.api.models.health import PipelineHealth, QualityHealth, StageHealth
    from services.api.models.stats import StatsAnswer

Health = Annotated[
    bool, typer.Option("--health", help="Show a verdict on each stage instead; exit 1 unless all are healthy.")
]

QUALITIES = {
    "dated": "with a sure date",
    "full": "with the whole text",
    "enriched": "that the enricher saw",
    "language": "of these, that tell their language",
    "topic": "of these, with a topic",
    "duplicate_address": "that came before under another address",
    "duplicate_title": "that came before by their title",
    "duplicate_text": "that came before in nearly these words",
}


def status(health: Health = False, as_json: AsJson = False) -> None:
    """Show the queues, the feeds that are due, overdue or in flight, pending articles, and why nothing moves.

    Exit code 1: a critical alarm rings.
    """
    from local.addresses import find
    from services.cli.settings import CliSettings
    from shared.settings import read_settings

    settings = read_settings(CliSettings)
    if not settings.api_url:
        find(settings)  # it starts no private servers: they would have nothing to tell
    if health:
        _show_health(as_json=as_json)
        return
    from services.api.models.stats import StatsAnswer

    with open_api() as api:  # what is known is shown at once: to leave a server that hangs takes a while
        found = api.get("/api/stats", StatsAnswer)
        if as_json:
            print(ascii_json(found.model_dump(mode="json")), flush=True)
        else:
            show(found)
    if any(alarm.severity == "critical" for alarm in found.alarms):
        raise typer.Exit(1)


def _show_health(*, as_json: bool) -> None:
    from services.api.models.health import PipelineHealth

    with open_api() as api:
        answer = api.call("GET", "/api/health/pipeline", accept={HTTPStatus.SERVICE_UNAVAILABLE})
        found = PipelineHealth.model_validate_json(answer.content)
        if as_json:
            print(ascii_json(found.model_dump(mode="json")), flush=True)
        else:
            show_health(found)
    if found.status != "healthy":
        raise typer.Exit(1)


def show(found: StatsAnswer) -> None:
    """Print it: the queues, the counts, the reasons."""
    columns = (
        Column("queue", lambda row: row[0]),
        Column("messages ready", lambda row: f"{row[1].ready:,}" if row[1] else "not declared", right=True),
        Column("consumers", lambda row: row[1] and row[1].consumers, right=True),
    )
    levels = {
        name: None if ready is None else QueueLevel(ready, found.consumers[name])
        for name, ready in found.queues.items()
    }
    if levels:
        print_table(columns, list(_in_brief(levels).items()))
        console.print()
    print_facts(list(_facts(found)))
    show_alarms(found.alarms)
    named = {alarm.sentence for alarm in found.alarms}
    for reason in found.reasons:
        if reason not in named:
            console.print(f"- {safe_to_show(reason)}", soft_wrap=True)


def show_alarms(alarms: Sequence[AlarmRow]) -> None:
    """Print each alarm with what to do about it, and where more is said."""
    for alarm in alarms:
        since = f" (since {alarm.since.astimezone():%Y-%m-%d %H:%M:%S})" if alarm.since else ""
        style = "red" if alarm.severity == "critical" else "yellow"
        console.print(f"{alarm.severity}: ", style=style, end="", highlight=False)
        console.print(f"{safe_to_show(alarm.sentence)}{since}", soft_wrap=True, highlight=False, markup=False)
        said = f"  → {safe_to_show(alarm.action)} (docs/{alarm.page})"
        console.print(said, soft_wrap=True, highlight=False, markup=False)


def _in_brief(queues: Mapping[str, QueueLevel | None]) -> dict[str, QueueLevel | None]:
    """Return the levels with all shards as one, and all their front queues as one, before the others."""
    shards, fronts = [name for name in queues if is_shard(name)], [name for name in queues if is_front(name)]
    others = {name: level for name, level in queues.items() if name not in {*shards, *fronts}}
    return {
        f"fetcher.* ({len(shards)} shards)": in_all([queues[name] for name in shards]),
        f"fetcher.*.front ({len(fronts)} shards)": in_all([queues[name] for name in fronts]),
        **others,
    }


def _facts(found: StatsAnswer) -> Iterator[tuple[str, str]]:
    counts, articles = found.counts, found.articles
    if counts is None or articles is None:
        return
    last = counts.seconds_since_success
    yield "feeds", f"{counts.feeds:,}"
    yield "  disabled", f"{counts.disabled:,}"
    yield "  failing", f"{counts.failing:,}"
    yield "  due", f"{counts.due:,}"
    yield "  overdue (due for over a minute)", f"{counts.overdue:,}"
    yield "  in flight, no result yet", f"{counts.queued:,}"
    yield "  in flight, to be tried again", f"{counts.retrying:,}"
    for group, jobs in found.busiest.items():
        if jobs > 1:
            yield f"    of {safe_to_show(group)}", f"{jobs:,}"
    yield "health of the feeds", ", ".join(f"{n:,} {word.replace('_', ' ')}" for word, n in found.health.items() if n)
    yield "pending articles", f"{counts.pending_articles:,}"
    yield "  claimed by consumers", f"{articles.claimed:,}"
    yield "dead articles", f"{articles.dead:,}"
    yield "articles ever seen, about", f"{articles.ledger:,}"
    yield "longest due for", _span(counts.longest_due_seconds)
    yield "next one due in", _span(counts.next_due_seconds)
    yield "last success, anywhere", f"{_span(last)} ago" if last else "never"
    if found.freshness and (said := in_words(found.freshness.day)):
        yield "freshness, last day", said


def _span(seconds: float | None) -> str:
    return "–" if seconds is None else span_in_words(seconds)


def show_health(found: PipelineHealth) -> None:
    """Print the verdicts and figures of the stages, then of the articles, then the reasons."""
    columns = (
        Column("stage", lambda row: row.stage),
        Column("status", lambda row: row.status),
        Column("waiting", lambda row: _number(row.depth), right=True),
        Column("consumers", lambda row: _number(row.workers), right=True),
        Column("per hour", lambda row: ", ".join(f"{n:,.0f} {what}" for what, n in row.per_hour.items())),
        Column("shares", _shares_in_words, below=True),
    )
    print_table(columns, found.stages)
    if found.quality:
        console.print()
        print_facts(list(_quality_facts(found.quality)))
    console.print()
    console.print(f"the pipeline is {found.status}", highlight=False)
    show_alarms(found.alarms)
    named = {alarm.sentence for alarm in found.alarms}
    for reason in found.reasons:
        if reason not in named:
            console.print(f"- {safe_to_show(reason)}", soft_wrap=True)


def _shares_in_words(stage: StageHealth) -> str:
    return ", ".join(f"{what} {share:.1%}" for what, share in stage.shares.items() if share is not None)


def _quality_facts(quality: QualityHealth) -> Iterator[tuple[str, str]]:
    yield "new articles of the last day", f"{quality.day.articles:,}"
    of_days, changes = quality.day.model_dump(), quality.change.model_dump()
    for name, what in QUALITIES.items():
        of_day, change = of_days[name], changes[name]
        if of_day is None and name not in {"dated", "full"}:
            continue  # nothing passed an enricher
        against = "" if change is None else f" ({change * 100:+.1f} points against the week before)"
        yield f"  {what}", "–" if of_day is None else f"{of_day:.1%}{against}"


def _number(value: Any) -> str | None:
    return None if value is None else f"{value:,}"
