"""Pure: one fetch between two requests. Each request waits for the turn of the host that it goes to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from services.fetcher.http.redirects import Trail
from services.fetcher.politeness.group import Target
from shared.politeness import host_of, politeness_group
from shared.wire.messages import Detour, FetchFeed


@dataclass(frozen=True)
class Leg:
    """The next request of a fetch."""

    trail: Trail
    group: str
    """The politeness group whose turn it waits for."""
    started_at: datetime | None = None
    """When the first request of the fetch began."""
    spent_seconds: float = 0.0
    """What the requests before it took; waiting for a turn is not counted."""

    @property
    def goes_on(self) -> bool:
        """Whether a redirect led here."""
        return bool(self.trail.visited)


def target_of(job: FetchFeed, leg: Leg) -> Target:
    """Return where the request of this leg goes, as its group tells requests apart."""
    url = leg.trail.url
    scheme = url.partition(":")[0].lower()
    return Target(scheme, is_rooted=host_of(url).endswith("."), is_foreign=leg.group != job.group)


def next_leg(job: FetchFeed, proxy_hosts: frozenset[str]) -> Leg:
    """Return where a job begins, or goes on if it was on a detour.

    Raises:
        BadUrl: the detour's URL can't be fetched.
    """
    detour = job.detour
    if detour is None:
        return Leg(Trail(job.url), job.group)
    trail = Trail(detour.url, detour.visited, detour.moved_to, detour.permanent)
    return Leg(trail, politeness_group(detour.url, proxy_hosts), detour.started_at, detour.spent_seconds)


def put_off(job: FetchFeed, leg: Leg) -> FetchFeed:
    """Return the job that takes this leg later."""
    if not leg.goes_on:
        return job
    trail = leg.trail
    assert leg.started_at is not None
    detour = Detour(
        url=trail.url,
        visited=trail.visited,
        moved_to=trail.moved_to,
        permanent=trail.permanent,
        started_at=leg.started_at,
        spent_seconds=leg.spent_seconds,
    )
    return job.model_copy(update={"detour": detour})
