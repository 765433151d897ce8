"""Pure: one fetch between two requests. Each request waits for a slot of the host that it goes to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from services.fetcher.http.redirects import RedirectChain
from services.fetcher.politeness.decisions import Target
from shared.politeness import host_of, politeness_group
from shared.wire.jobs import FetchFeed, ResumeState


@dataclass(frozen=True)
class FeedRequest:
    """The next request of a fetch."""

    job: FetchFeed
    chain: RedirectChain
    group: str
    """The politeness group whose slot it waits for."""
    started_at: datetime | None = None
    """When the first request of the fetch began."""
    spent_seconds: float = 0.0
    """How long the requests before it took. Waiting for slots does not count."""

    @property
    def url(self) -> str:
        """The URL that is requested."""
        return self.chain.url

    @property
    def is_redirected(self) -> bool:
        """Whether a redirect led here."""
        return bool(self.chain.visited)

    @property
    def target(self) -> Target:
        """Where the request goes within its group."""
        scheme = self.url.partition(":")[0].lower()
        return Target(scheme, is_rooted=host_of(self.url).endswith("."), is_foreign=self.group != self.job.group)

    def follow(self, status: int, location: str, seconds: float, proxy_hosts: frozenset[str]) -> FeedRequest:
        """Return the request that follows a redirect; this one took `seconds`.

        Raises:
            FetchFailed: as `RedirectChain.follow`.
        """
        chain = self.chain.follow(status, location)
        group = politeness_group(chain.url, proxy_hosts)
        return replace(self, chain=chain, group=group, spent_seconds=self.spent_seconds + seconds)

    def to_job(self) -> FetchFeed:
        """Return the job that makes this request later."""
        if not self.is_redirected:
            return self.job
        assert self.started_at is not None
        state = ResumeState(
            url=self.chain.url,
            visited=self.chain.visited,
            moved_to=self.chain.moved_to,
            permanent=self.chain.permanent,
            started_at=self.started_at,
            spent_seconds=self.spent_seconds,
        )
        return self.job.model_copy(update={"resume": state})


def prepare_request(job: FetchFeed, proxy_hosts: frozenset[str]) -> FeedRequest:
    """Return the request that a job begins with: its feed's URL, or where a redirect led before.

    Raises:
        BadUrl: the resume state's URL can't be fetched.
    """
    state = job.resume
    if state is None:
        return FeedRequest(job, RedirectChain(job.url), job.group)
    chain = RedirectChain(state.url, state.visited, state.moved_to, state.permanent)
    return FeedRequest(job, chain, politeness_group(state.url, proxy_hosts), state.started_at, state.spent_seconds)
