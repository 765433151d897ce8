"""Pure: what the scoreboard is told, and what it decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class FastDelay:
    """Not now and not here, but soon: to the fast-delay queue."""


@dataclass(frozen=True)
class Skip:
    """The group wants to be left alone: to the retry queue, without burning an attempt."""

    seconds: float
    """For how long from now."""
    throttled: bool = False
    """Its server asked for it; otherwise it could not be connected to a short while ago."""


Refusal = FastDelay | Skip


@dataclass(frozen=True)
class Target:
    """Where a request goes within its group, which is a host and a port, or the default ports.

    A failure to connect belongs to this: a host that serves no https may well serve http.
    """

    scheme: str = ""
    is_rooted: bool = False
    """The host is written with a dot at its end. It is looked up like that, and a resolver may not know it."""
    is_foreign: bool = False
    """A redirect from another group leads there. Whoever wrote it may have chosen what fails, so the group's own feeds
    don't suffer from it."""

    @property
    def own(self) -> Target:
        """The same for the group's own feeds."""
        return replace(self, is_foreign=False)


ANYWHERE = Target()


@dataclass(frozen=True)
class Report:
    """How a request went, as far as its group is concerned."""

    latency_seconds: float | None
    """What the server took; None if nothing was asked of it. Waits for resources of ours are not counted."""
    connected: bool | None = True
    """False if the host could not be connected to (no such name, refused, connect timeout, TLS) and for nothing else;
    None if it did not come to that (no address that may be asked, a shortage of our own)."""
    succeeded: bool = True
    throttled: bool = False
    """The server answered 429."""
    retry_after_seconds: float | None = None


@dataclass(frozen=True)
class Held:
    """The job stands in line; `next_decision` will tell when it is its turn."""

    at_once: bool = True
    """Its group stood idle: the job can start now, as far as its group is concerned."""
    is_news: bool = True
    """Nothing was asked of its group for several holds: this is not the rest of a backlog whose line ran dry."""


@dataclass(frozen=True)
class NoRoom:
    """There is no room in line: the turn is further away than a hold, or the group holds its share already."""

    room_in_seconds: float
    """When to ask again."""


Admission = Held | NoRoom | Refusal


@dataclass(frozen=True)
class Start(Generic[T]):
    """It is this job's turn. It counts as active until `finish`."""

    ticket: T


@dataclass(frozen=True)
class Evicted(Generic[T]):
    """This job stands in line no more."""

    ticket: T
    refusal: Refusal | None
    """Why its group turned it away; None: it was held for as long as it may be."""


@dataclass(frozen=True)
class Idle:
    """It is nobody's turn; ask again after so many seconds, or when something has happened (None: only then)."""

    seconds: float | None


Decision = Start[T] | Evicted[T] | Idle


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
