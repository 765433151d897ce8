"""Pure: an alarm, as it is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is."""

    WARNING = "warning"
    """Something is late, or will be."""
    CRITICAL = "critical"
    """No feed is fetched, or no article arrives."""


@dataclass(frozen=True)
class Alarm:
    """What is wrong, and what to do about it."""

    name: str
    severity: Severity
    sentence: str
    action: str
    """What to do, in a sentence; commands stand in backquotes."""
    page: str
    """The section that says more, from docs/ on: `how-to/alerts.md#feedmillsilent`."""
    since: datetime | None = None
    """As far as it is known."""


def is_critical(alarms: Iterable[Alarm]) -> bool:
    """Return whether one of the alarms is critical."""
    return any(alarm.severity is Severity.CRITICAL for alarm in alarms)
