"""Pure: the figures that the rules judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from services.admin.health.alarms.measured import Contact, DatabaseState, Failures, FeedsInUse, Waiting
from services.admin.health.diagnosis import QueueLevel, Thresholds
from shared.wire.outcomes import Outcome, OutcomeClass

EPOCH = datetime.fromtimestamp(0, UTC)
WELL = Contact()
"""The contact with a server that answers."""

_CLASSES = {outcome.value: outcome.outcome_class for outcome in Outcome}
_DEFERRED = {outcome.value for outcome in Outcome if not outcome.is_attempt}


def part(number: int, whole: int) -> float | None:
    """Return a share, rounded; None: of nothing."""
    return round(number / whole, 4) if whole else None


@dataclass(frozen=True)
class Attempts:
    """What was written to the fetch log lately."""

    window_seconds: float
    """The log's last so many seconds: an hour, or less where an hour's rows are too many to count at once."""
    outcomes: Mapping[str, int]
    tiers: Mapping[str, int]
    """Bodies by the tier that read them."""
    listed: int = 0
    """Entries that the bodies listed."""
    new: int = 0
    duplicates: int = 0
    """New articles that came before under another address."""

    @property
    def results(self) -> int:
        """All rows, those of jobs that were dropped or deferred without a request among them."""
        return sum(self.outcomes.values())

    @property
    def fetches(self) -> int:
        """Attempts with a request."""
        return sum(number for name, number in self.outcomes.items() if name not in _DEFERRED)

    @property
    def failures(self) -> dict[str, int]:
        """Attempts that failed, by the class of their outcome."""
        counts: dict[str, int] = {}
        for name, number in self.outcomes.items():
            kind = _CLASSES.get(name, OutcomeClass.SOFT)
            if kind in {OutcomeClass.SOFT, OutcomeClass.HARD}:
                counts[kind] = counts.get(kind, 0) + number
        return counts

    @property
    def read(self) -> int:
        """Bodies that were read."""
        return sum(self.tiers.values())

    @property
    def unparseable(self) -> int:
        """Bodies that no tier could read."""
        return self.outcomes.get(Outcome.UNPARSEABLE, 0)

    def per_hour(self, number: int) -> float:
        """Return a number of the window as a rate."""
        return round(number * 3600.0 / self.window_seconds, 1)


@dataclass(frozen=True)
class Pace:
    """Whether feeds are polled in time. Spans in seconds."""

    has_feeds: bool
    """Whether any feed is enabled."""
    due: int
    late_seconds: float
    """For how long a feed has been due that neither its host's pause nor its host's other jobs keep waiting."""
    silence_seconds: float
    """For how long no fetch has succeeded though feeds wanted one."""
    idle_seconds: float | None
    """Since a job was issued, as far as jobs under way and the log tell; None: neither tells of any."""


@dataclass(frozen=True)
class TierQuality:
    """New articles of one tier in one span."""

    articles: int
    dated: int
    full: int
    enriched: int = 0
    """Those that an enricher saw; of them:"""
    language: int = 0
    """Those whose text tells its language."""
    topic: int = 0
    duplicate: int = 0
    """Those that came before; of them:"""
    duplicate_title: int = 0
    duplicate_text: int = 0

    @property
    def shares(self) -> dict[str, float | None]:
        """Each share from 0 to 1, those of labels among the articles that an enricher saw; None: of nothing."""
        by_address = self.duplicate - self.duplicate_title - self.duplicate_text
        return {
            "dated": part(self.dated, self.articles),
            "full": part(self.full, self.articles),
            "enriched": part(self.enriched, self.articles),
            "language": part(self.language, self.enriched),
            "topic": part(self.topic, self.enriched),
            "duplicate_address": part(by_address, self.articles),
            "duplicate_title": part(self.duplicate_title, self.articles),
            "duplicate_text": part(self.duplicate_text, self.articles),
        }


@dataclass(frozen=True)
class Quality:
    """New articles by tier: those of the last day, and those of the seven days before."""

    day: Mapping[str, TierQuality]
    week: Mapping[str, TierQuality]


@dataclass(frozen=True)
class Queues:
    """What the broker says. A queue that is not declared is None."""

    shards: Mapping[str, QueueLevel | None]
    behind: Mapping[str, QueueLevel | None]
    """The queues of the stages behind the fetcher, by the service's name, in their order."""
    retry: Mapping[str, int]
    """Messages that wait for another try, by service."""
    dead: Mapping[str, int]
    """Dead letters, by service."""


@dataclass(frozen=True)
class Batches:
    """Runs of `feedmill batch` that ended within the last day."""

    runs: int = 0
    seconds_since: float | None = None
    """Since the last run ended, however long ago; None: there was none."""


@dataclass(frozen=True)
class Picture:
    """All figures. What could not be asked for is None, and the trouble says why."""

    limits: Thresholds
    services: Sequence[str]
    """The stages of the chain."""
    optional: Mapping[str, bool] = field(default_factory=dict)
    """Those that results can do without, and whether they are switched on."""
    machine: str = "this machine"
    """The name of the machine that looks."""
    now: datetime = EPOCH
    """By this machine's clock."""
    broker: Contact = WELL
    broker_alarm: str | None = None
    """Why the broker takes no messages."""
    queues: Queues | None = None
    database: Contact = WELL
    state: DatabaseState | None = None
    figures_trouble: str | None = None
    """Why there are no figures, though the database answers."""
    pace: Pace | None = None
    attempts: Attempts | None = None
    failures: Failures | None = None
    """Counted only where many fail."""
    feeds: FeedsInUse = field(default_factory=FeedsInUse)
    """None were asked, as far as is known."""
    waiting: Waiting | None = None
    batches: Batches = field(default_factory=Batches)
    quality: Quality | None = None

    @property
    def database_trouble(self) -> str | None:
        """Return why there are no figures of the database."""
        return self.database.trouble or self.figures_trouble
