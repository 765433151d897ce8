"""Pure: what the scoreboard learns (targets, reports) and what it decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class FastDelay:
    """The job goes to the fast-delay queue and comes back soon."""


@dataclass(frozen=True)
class Skip:
    """The group is down or throttled: the job goes to the retry queue. This does not count as an attempt."""

    seconds: float
    """For how long from now."""
    throttled: bool = False
    """True: the server asked for a pause. False: a connection failed a short while ago."""


Refusal = FastDelay | Skip


@dataclass(frozen=True)
class Target:
    """Where a request goes within its group (a host and a port, or the default ports).

    A failure to connect counts for its target only: a host that serves no https may well serve http.
    """

    scheme: str = ""
    is_rooted: bool = False
    """The host name ends with a dot. A resolver may not know it in this form."""
    is_foreign: bool = False
    """A redirect from another group leads there. Its author may have chosen a page that fails, so the group's own feeds
    must not suffer from it."""

    @property
    def own(self) -> Target:
        """The same for the group's own feeds."""
        return replace(self, is_foreign=False) if self.is_foreign else self


ANYWHERE = Target()


@dataclass(frozen=True)
class Report:
    """How a request went, as far as its group is concerned."""

    latency_seconds: float | None
    """The server's time; None if no request reached it. Waits for our own resources are not counted."""
    connected: bool | None = True
    """False only if connecting failed (no such name, refused, connect timeout, TLS).
    None if connecting was not tried (no allowed address, a shortage of our own)."""
    succeeded: bool = True
    throttled: bool = False
    """The server answered 429."""
    retry_after_seconds: float | None = None


@dataclass(frozen=True)
class Held:
    """The job waits in its group's queue; `next_decision` tells when it may start."""

    can_start: bool = True
    """Its group is idle, so that it can start at once."""
    is_new_host: bool = True
    """Its group had no jobs for several holds, so this job is not the rest of a backlog."""


@dataclass(frozen=True)
class NoRoom:
    """The group's queue is full: a job would have to wait for longer than a hold."""

    room_in_seconds: float
    """When there is room again."""


Admission = Held | NoRoom | Refusal


@dataclass(frozen=True)
class Start(Generic[T]):
    """This job may start. It counts as active until `finish`."""

    ticket: T


@dataclass(frozen=True)
class Evicted(Generic[T]):
    """This job was removed from its group's queue."""

    ticket: T
    refusal: Refusal | None
    """Why its group refuses it; None: the job waited for as long as a hold."""


@dataclass(frozen=True)
class Idle:
    """No job may start. Ask again after so many seconds, or after an event (None: only then)."""

    seconds: float | None


Decision = Start[T] | Evicted[T] | Idle


@dataclass(frozen=True)
class Totals:
    """The whole scoreboard in numbers."""

    active: int
    held: int
    ready: int
    """Held jobs that may start, but wait for a thread."""
    groups: int
    groups_active: int
    """Groups with a held or active job."""
    groups_recent: int
    """Groups that were used within the last minute."""
