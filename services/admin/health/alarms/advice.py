"""Pure: what is wrong, and what to do about each thing. The alarms' names are the keys here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from services.admin.health.alarms.alarm import Alarm, Severity
from services.admin.health.pipeline.status import Status

ALERTS: Final = "how-to/alerts.md#feedmill"
DISASTERS: Final = "how-to/operate.md#disasters"
_LOG: Final = "start it; if it ends again, its last lines and its exit code say why"

ADVICE: Final[dict[str, tuple[str, str]]] = {
    "broker_away": (
        "bring RabbitMQ back, or correct FEEDMILL_AMQP_URL; `feedmill doctor` says more. Restart nothing of ours",
        f"{ALERTS}notready",
    ),
    "broker_alarm": ("make room for it. Don't purge work queues", f"{ALERTS}brokeralarm"),
    "database_away": (
        "bring PostgreSQL back, or correct FEEDMILL_DATABASE_URL; `feedmill doctor` says more. Restart nothing of ours",
        f"{ALERTS}notready",
    ),
    "database_slow": ("end what blocks it, or what overloads it", f"{ALERTS}batchesslow"),
    "database_full": ("make room on its disk; perhaps start PostgreSQL again", f"{ALERTS}databasetakesnothing"),
    "database_read_only": (
        "make it the primary, or let FEEDMILL_DATABASE_URL name the primary; a managed one may be full",
        f"{ALERTS}databasetakesnothing",
    ),
    "tables_missing": ("run `feedmill migrate`", "how-to/operate.md#upgrade"),
    "queues_missing": (
        "start the services, which declare them, or run `feedmill migrate`",
        f"{ALERTS}queuenotconsumed",
    ),
    "scheduler_missing": (_LOG, f"{ALERTS}schedulerdown"),
    "scheduler_late": (
        "wait, if it comes after a pause or an import; else see which stage is full",
        f"{ALERTS}pollslate",
    ),
    "batch_late": ("look at the log of the last run", f"{ALERTS}batchlate"),
    "fetchers_missing": (_LOG, f"{ALERTS}fetcherdown"),
    "shards_unread": ("give all services the same FEEDMILL_FETCHER_SHARDS", f"{ALERTS}queuenotconsumed"),
    "fetchers_behind": ("add fetchers, or poll less", f"{ALERTS}fetcherbacklog"),
    "writer_missing": (_LOG, f"{ALERTS}writerdown"),
    "enricher_missing": ("start it, or switch it off for all services (FEEDMILL_ENRICHER)", f"{ALERTS}enricheridle"),
    "stage_missing": (_LOG, f"{ALERTS}queuenotconsumed"),
    "writer_behind": ("end what blocks the database, or add a writer", f"{ALERTS}writerbacklog"),
    "enricher_behind": ("add an enricher, or ask it for less (FEEDMILL_ENRICH)", f"{ALERTS}enricherbacklog"),
    "stage_behind": ("add processes of this stage", f"{ALERTS}backpressure"),
    "silent": ("repair our network: mostly it is its fault if nothing succeeds anywhere", f"{ALERTS}silent"),
    "most_fail": ("look at the fetchers' log for what the failures have in common", f"{ALERTS}mostfetchesfail"),
    "most_feeds_fail": (
        "see which, and what each needs: `feedmill feeds list --health failing`",
        "how-to/alerts.md#what-status-and-page-say",
    ),
    "unparseable": ("look at some of these feeds: `feedmill feeds list --failing`", f"{ALERTS}mostfetchesfail"),
    "quality_fell": ("see which feeds changed", "how-to/monitor.md#is-the-pipeline-healthy"),
    "nobody_drains": ("start a consumer, or more of them", f"{ALERTS}consumersbehind"),
    "clock_off": ("repair NTP on both machines. Restart nothing", f"{ALERTS}clockoff"),
    "database_clock_back": ("set the clock of PostgreSQL's machine right; feeds are late until then", DISASTERS),
}
"""By the name of an alarm: what to do, and the section that says more."""


@dataclass(frozen=True)
class Finding:
    """What a rule found."""

    status: Status
    name: str
    sentence: str
    since: datetime | None = None
    action: str | None = None
    """In place of the usual one."""

    def to_alarm(self) -> Alarm:
        """Return it as it is shown."""
        action, page = ADVICE[self.name]
        severity = Severity.CRITICAL if self.status is Status.DOWN else Severity.WARNING
        return Alarm(self.name, severity, self.sentence, self.action or action, page, self.since)
