"""Pure: the counts of a run, and the final result of a job whose retry the run does not make."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from services.fetcher.retries import give_up
from shared.wire.results import FeedFetched


def final_result(fetched: FeedFetched) -> FeedFetched:
    """Return a result that announced a retry as the last one of its job, since the run ends here.

    A feed that failed before is given up until its back-off is over. A feed without any request (its host is down)
    stays due.
    """
    if fetched.outcome.is_deferred and not fetched.attempt:
        return fetched.model_copy(update={"final": True, "claim_until": None})
    return give_up(fetched)


@dataclass
class Summary:
    """The counts of a run. Their names are those of the JSON summary."""

    claimed: int = 0
    """Feeds claimed."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """Attempts by outcome."""
    entries: int = 0
    """Entries published to the writer."""
    retried: int = 0
    """Attempts at feeds that had failed softly before."""
    skipped: int = 0
    """Feeds that were not asked because their host is down; they stay due."""
    given_back: int = 0
    """Feeds whose claim was released, since the run was stopped; they are due at once."""
    taken_back: int = 0
    """Jobs that fetchers had left in their queues: the claims of their feeds were released before the run."""
    broken: int = 0
    """Feeds whose job failed by a bug: their claims expire."""
    new_articles: int | None = None
    """Entries that are new articles; None if the run did not wait for the writer."""
    unwritten: int | None = None
    """Results that the writer has not written; None if the run did not wait for it."""
    seconds: float = 0.0

    def count(self, fetched: FeedFetched, *, is_retry: bool = False) -> None:
        """Count a published result; `is_retry`: it comes from another attempt at its feed."""
        self.entries += len(fetched.entries)
        if fetched.outcome.is_deferred:
            self.skipped += fetched.final
            return
        self.outcomes[fetched.outcome.value] += 1
        self.retried += is_retry

    def as_json(self) -> dict[str, Any]:
        """Return the counts by name, for machines."""
        outcomes, seconds = dict(self.outcomes.most_common()), round(self.seconds, 1)
        return {**vars(self), "outcomes": outcomes, "attempts": self.attempts, "seconds": seconds}

    @property
    def attempts(self) -> int:
        """All results but the skipped ones."""
        return self.outcomes.total()

    def in_words(self) -> list[str]:
        """Return the summary as lines for people."""
        counts = [
            (self.retried, "of them again"),
            (self.skipped, "skipped (host down; still due)"),
            (self.given_back, "released (due at once)"),
            (self.taken_back, "jobs of former fetchers taken back"),
            (self.broken, "not handled (see the log)"),
        ]
        parts = [f"{self.claimed:,} feeds claimed", f"{self.attempts:,} attempts"]
        parts += [f"{number:,} {what}" for number, what in counts if number]
        parts.append(f"{self.entries:,} entries passed on")
        if self.new_articles is not None:
            parts.append(f"{self.new_articles:,} articles new")
        if self.unwritten:
            parts.append(f"{self.unwritten:,} results not written yet")
        lines = [", ".join(parts) + f"; {self.seconds:.1f} s"]
        if self.outcomes:
            lines.append(" · ".join(f"{outcome} {number:,}" for outcome, number in self.outcomes.most_common()))
        return lines
