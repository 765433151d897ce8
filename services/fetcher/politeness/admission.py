"""Pure: what the scoreboard answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from services.fetcher.politeness.group import Refusal

T = TypeVar("T")


@dataclass(frozen=True)
class Held:
    """The job stands in line; `call_next` will tell when it is its turn."""

    at_once: bool = True
    """Its group stood idle: the job can start now, as far as its group is concerned."""
    is_news: bool = True
    """Nothing was asked of its group for several holds: this is not the rest of a backlog whose line ran dry."""


@dataclass(frozen=True)
class Excess:
    """There is no room in line: the turn is further away than a hold, or the group holds its share already."""

    room_in_seconds: float
    """When to ask again."""


Admission = Held | Excess | Refusal


@dataclass(frozen=True)
class Called(Generic[T]):
    """It is this job's turn. It counts as active until `finish`."""

    ticket: T


@dataclass(frozen=True)
class LetOut(Generic[T]):
    """This job stands in line no more."""

    ticket: T
    refusal: Refusal | None
    """Why its group turned it away; None: it was held for as long as it may be."""


@dataclass(frozen=True)
class Nobody:
    """It is nobody's turn; ask again after so many seconds, or when something has happened (None: only then)."""

    seconds: float | None


Call = Called[T] | LetOut[T] | Nobody


@dataclass(frozen=True)
class Totals:
    """The whole board in numbers."""

    active: int
    held: int
    ready: int
    """Held, although it is their turn: they wait for a thread."""
    groups: int
    groups_active: int
    """Groups with a job in line or under way."""
    groups_recent: int
    """Groups that were used within the last minute."""
