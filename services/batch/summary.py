"""Pure: what a run comes to, and what is said last of a feed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched


def last_word(fetched: FeedFetched) -> FeedFetched:
    """Return a result that promised a retry as the last one of its job, since the run ends here.

    A feed that failed before is given up, and looked at again after its back-off. One that was never asked, since its
    host is down, is as due as it was.
    """
    outcome = fetched.outcome if fetched.outcome.is_deferred and not fetched.attempt else Outcome.GAVE_UP
    return fetched.model_copy(update={"outcome": outcome, "final": True, "claim_until": None})


@dataclass
class Summary:
    """The run in numbers."""

    claimed: int = 0
    """Feeds claimed."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """Attempts by outcome."""
    entries: int = 0
    """Entries passed on to the writer."""
    retried: int = 0
    """Of the attempts, those at a feed that had failed softly before."""
    skipped: int = 0
    """Feeds that were not asked, since their host is down; they stay due."""
    given_back: int = 0
    """Feeds whose claim was given back, since the run was stopped; they are due at once."""
    broken: int = 0
    """Feeds whose job failed by a fault of ours: their claims run out."""
    new_articles: int | None = None
    """Of the entries, articles that nobody had seen; None if the writer was not awaited."""
    unwritten: int | None = None
    """Results that the writer has not written; None if it was not awaited."""
    seconds: float = 0.0

    def note(self, fetched: FeedFetched, *, is_retry: bool = False) -> None:
        """Count a result that was passed on; `is_retry`: its feed was asked again."""
        self.entries += len(fetched.entries)
        if fetched.outcome.is_deferred:
            self.skipped += fetched.final
            return
        self.outcomes[fetched.outcome.value] += 1
        self.retried += is_retry

    def as_json(self) -> dict[str, Any]:
        """Return the numbers by name, for machines."""
        return {
            **vars(self),
            "outcomes": dict(self.outcomes.most_common()),
            "attempts": self.attempts,
            "seconds": round(self.seconds, 1),
        }

    @property
    def attempts(self) -> int:
        """All results but the skipped ones."""
        return self.outcomes.total()

    def in_words(self) -> list[str]:
        """Return the summary as lines for people."""
        parts = [f"{self.claimed:,} feeds claimed", f"{self.attempts:,} attempts"]
        parts += [
            f"{number:,} {what}"
            for number, what in (
                (self.retried, "of them again"),
                (self.skipped, "skipped (host down; still due)"),
                (self.given_back, "given back (due at once)"),
                (self.broken, "not handled (see the log)"),
            )
            if number
        ]
        parts.append(f"{self.entries:,} entries passed on")
        if self.new_articles is not None:
            parts.append(f"{self.new_articles:,} articles new")
        if self.unwritten:
            parts.append(f"{self.unwritten:,} results not written yet")
        lines = [", ".join(parts) + f"; {self.seconds:.1f} s"]
        if self.outcomes:
            lines.append(" · ".join(f"{outcome} {number:,}" for outcome, number in self.outcomes.most_common()))
        return lines
