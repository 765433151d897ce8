"""One fetch outside of the pipeline: made and read as in a fetcher, in its host's turn, with its result in hand."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from services.admin.feeds.host_slot import Slot
from services.fetcher.attempt import Client, FeedFetcher
from services.fetcher.clock import Clock
from services.fetcher.http.client import HttpResponse
from services.fetcher.http.request import HttpRequest
from services.fetcher.request import FeedRequest, prepare_request
from services.fetcher.retries import RetryRules, decide_retry
from services.fetcher.settings import FetcherSettings
from shared.politeness import politeness_group
from shared.wire.jobs import DEFAULT_SOURCE_TYPE, DateOrder, FetchFeed
from shared.wire.results import FeedFetched


class SingleFetch:
    """Fetches for one person, one after the other.

    Args:
        client: makes the requests.
        settings: the fetcher's.
        slot: the hosts' turns.
        most_requests: of all fetches together, redirects included.
        clock: the time.
    """

    def __init__(
        self, client: Client, settings: FetcherSettings, slot: Slot, most_requests: int, clock: Clock | None = None
    ) -> None:
        self._last = _LastResponse(client)
        self._clock = clock or Clock(now=lambda: datetime.now(UTC), monotonic=time.monotonic)
        self._reader = FeedFetcher(self._last, self._clock, settings.fetch_limits())
        self._limits = settings.limits()
        self._proxy_hosts = settings.proxy_host_set()
        self._rules = RetryRules(max_retries=0, retry_delay_seconds=settings.retry_delay_seconds)
        self._slot = slot
        self._most_requests = most_requests
        self.requests = 0
        """How many were made so far."""

    @property
    def may_ask(self) -> bool:
        """Whether one more request may be made."""
        return self.requests < self._most_requests

    @property
    def answer(self) -> HttpResponse | None:
        """The last response, if there was one."""
        return self._last.answer

    def fetch(
        self,
        url: str,
        config: dict[str, Any],
        source_type: str = DEFAULT_SOURCE_TYPE,
        date_order: DateOrder | None = None,
    ) -> FeedFetched | None:
        """Return the result of an unconditional fetch; None after too many requests.

        Raises:
            LeftAlone: the host must get no request now.
        """
        return self._attempt(url, config, source_type, date_order)[1]

    def fetch_to_write(
        self, url: str, config: dict[str, Any], source_type: str = DEFAULT_SOURCE_TYPE
    ) -> FeedFetched | None:
        """Return the same for a feed that is new, as the writer takes it: a failure is not tried again."""
        job, found = self._attempt(url, config, source_type)
        return decide_retry(job, found, self._rules, self._clock.now())[0] if found else None

    def _attempt(
        self, url: str, config: dict[str, Any], source_type: str, date_order: DateOrder | None = None
    ) -> tuple[FetchFeed, FeedFetched | None]:
        now = self._clock.now()
        job = FetchFeed(
            feed_id=0,  # of no feed: its result goes to the caller
            url=url,
            source_type=source_type,
            source_config=config,
            date_order=date_order,
            group=politeness_group(url, self._proxy_hosts),
            claim_id=uuid4(),
            not_after=now + timedelta(seconds=self._rules.claim_seconds),
            reason="manual",
            queued_at=now,
        )
        found: FeedFetched | FeedRequest = prepare_request(job, self._proxy_hosts)
        while isinstance(found, FeedRequest):
            if not self.may_ask:
                return job, None
            self.requests += 1
            with self._slot(found.group, self._limits.interval_of(found.group)) as sent:
                found, _ = self._reader.make_request(found, sent)
        return job, found


class _LastResponse:
    """A client that keeps the last response."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.answer: HttpResponse | None = None

    def get(self, request: HttpRequest) -> HttpResponse:
        self.answer = None
        self.answer = self._client.get(request)
        return self.answer
