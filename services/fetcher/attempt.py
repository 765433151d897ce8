"""One request of one fetch, on a worker thread: send it, judge the response, read the body. No queue, no scoreboard."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from services.fetcher.clock import Clock
from services.fetcher.findings import Findings, read_response
from services.fetcher.http.client import HttpResponse
from services.fetcher.http.failure import Failure, FetchFailed
from services.fetcher.http.request import HttpRequest
from services.fetcher.outcomes import outcome_of_failure, outcome_of_parse_error, outcome_of_status
from services.fetcher.parse import NotAFeed, ParseError
from services.fetcher.parse.model import seldom
from services.fetcher.politeness.decisions import Report
from services.fetcher.request import FeedRequest
from services.fetcher.sources import ReadContext, Reading
from shared.tracing import Span
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched

LARGE_BYTES = 128 * 1024
"""Larger bodies are parsed one at a time: reading a feed takes twelve times the memory of its body, and a hostile one
thirty times. More at a time would be no faster, since the interpreter runs one thread at a time."""

SMALL_AT_ONCE = 8
"""Other bodies that are parsed at a time. They don't wait for a large one, which may take all of `parse_seconds`."""

Sent = Callable[[], None]


@dataclass(frozen=True)
class FetchLimits:
    """Limits of one fetch."""

    deadline_seconds: float = 30.0
    """The limit for all its requests together, unless the feed has a deadline of its own."""
    max_entries: int = 5000
    proxy_hosts: frozenset[str] = frozenset()
    parse_seconds: float = 10.0
    """CPU seconds that reading one body may take. Wall-clock time would count other threads, too."""
    keep_html: bool = False


@dataclass
class _Exchange:
    """The facts of one request that its host's politeness group learns."""

    has_left: bool = False
    """The request was sent: there was a connection."""
    status: int | None = None
    latency: float | None = None
    """Seconds that the server took."""
    is_down: bool = False

    def note(self, error: FetchFailed, seconds: float) -> None:
        """Note a failure after so many seconds. A failure behind the response (a bad redirect) changes no latency."""
        self.status = error.status
        self.is_down = error.failure is Failure.CONNECT and not error.is_ours
        if self.latency is None and (self.has_left or self.is_down):
            self.latency = seconds - error.ours_seconds

    def report(self, *, succeeded: bool = True, retry_after: float | None = None) -> Report:
        """Return the report to the host's group."""
        return Report(
            latency_seconds=self.latency,
            connected=False if self.is_down else self.has_left or None,
            succeeded=succeeded,
            throttled=self.status == 429,
            retry_after_seconds=retry_after,
        )


class Client(Protocol):
    """Makes the requests: `FeedClient`, or a wrapper of it."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """Return the response. Raises FetchFailed."""


class FeedFetcher:
    """Makes requests and reads what they bring. Safe to use from many threads.

    Args:
        check_leaving: called with the group right before a request leaves; raises NackAndRequeue if it must not.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        limits: FetchLimits,
        check_leaving: Callable[[str], None] = lambda group: None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._limits = limits
        self._check_leaving = check_leaving
        self._large = threading.Semaphore(1)
        self._small = threading.Semaphore(SMALL_AT_ONCE)

    def make_request(self, request: FeedRequest, sent: Sent) -> tuple[FeedFetched | FeedRequest, Report]:
        """Return the result, or the next request if this one is redirected; and what the host's group learns.

        A failing feed is a fact, not an exception. `sent` is called at the moment the request leaves.
        """
        now, start = self._clock.now(), self._clock.monotonic()
        exchange, started_at = _Exchange(), request.started_at or now

        def note_sent() -> None:
            exchange.has_left = True
            sent()

        try:
            with self._get(request, note_sent) as response:
                seconds = self._clock.monotonic() - start
                exchange.status, exchange.latency = response.status, seconds - response.ours_seconds
                if response.redirect is not None:
                    request = replace(request, started_at=started_at)
                    spent = seconds - response.waited_seconds
                    following = request.follow(response.status, response.redirect, spent, self._limits.proxy_hosts)
                    return following, exchange.report()
                findings = self._judge(request, response, now)
        except FetchFailed as error:
            exchange.note(error, self._clock.monotonic() - start)
            outcome = outcome_of_failure(error.failure)
            findings = Findings(outcome, error.status, error_class=error.failure.value, error=str(error))
        elapsed = request.spent_seconds + self._clock.monotonic() - start
        report = exchange.report(succeeded=findings.outcome.is_success, retry_after=findings.hints.retry_after_seconds)
        return findings.to_result(request.job, started_at, elapsed), report

    def _get(self, request: FeedRequest, sent: Sent) -> HttpResponse:
        """Return the response. Raises FetchFailed."""
        hop = len(request.chain.visited) or None
        with request.job.span.start("GET", "client", method="GET", hop=hop) as span:
            try:
                response = self._client.get(self._to_http(request, sent, span))
            except FetchFailed as error:
                span.note(status=error.status)
                span.end(error.failure.value)
                raise
            span.note(status=response.status, wire_bytes=response.wire_bytes)
            return response

    def _to_http(self, request: FeedRequest, sent: Sent, span: Span) -> HttpRequest:
        """Return the HTTP request, with the validators if they belong to its URL."""
        job, own = request.job, request.config.for_url(request.job.url, request.url)
        conditional = _is_conditional(job, request.url)
        seconds = (request.config.timeout_seconds or self._limits.deadline_seconds) - request.spent_seconds
        return HttpRequest(
            request.url,
            etag=job.etag if conditional else None,
            last_modified=job.last_modified if conditional else None,
            headers=own.headers,
            credentials=own.credentials,
            seconds=max(seconds, 0.0),
            before_send=lambda: self._check_leaving(request.group),
            sent=sent,
            span=span,
        )

    def _judge(self, request: FeedRequest, response: HttpResponse, now: datetime) -> Findings:
        job, status = request.job, response.status
        outcome = outcome_of_status(status, conditional=_is_conditional(job, response.url))
        findings = read_response(response, outcome or Outcome.FETCHED, request.chain.moved_to, now)
        if not findings.outcome.is_success:
            return findings.failed(findings.outcome, f"http_{status}", f"the server answered {status}")
        if outcome is not None:
            return findings
        body_hash = hashlib.sha256(response.body).hexdigest()
        if body_hash == job.body_hash:
            return replace(findings, outcome=Outcome.UNCHANGED, body_hash=body_hash)
        try:
            reading = self._read(request, response, now)
        except ParseError as error:
            outcome = outcome_of_parse_error(error, was_feed=job.body_hash is not None)
            error_class = "not_a_feed" if isinstance(error, NotAFeed) else "unparseable"
            # With the validators of a body that gave no articles we would never see that body again.
            return findings.without_validators().failed(outcome, error_class, str(error))
        if not (reading.notices_cuts or response.has_end):
            findings = findings.without_validators()  # the body may be cut, and the rest comes with the next one
        return findings.with_reading(reading, body_hash)

    def _read(self, request: FeedRequest, response: HttpResponse, now: datetime) -> Reading:
        end = self._clock.cpu() + self._limits.parse_seconds
        context = ReadContext(
            response.url,
            response.headers.get("content-type"),
            now,
            request.config,
            max_entries=self._limits.max_entries,
            keep_html=self._limits.keep_html,
            known=request.job.known,
            date_order=request.job.date_order,
            deadline=seldom(lambda: self._clock.cpu() > end),
        )
        with (
            request.job.span.start("parse", body_bytes=len(response.body)) as span,
            self._large if len(response.body) > LARGE_BYTES else self._small,
        ):
            reading = request.source.read(response.body, context)
            span.note(entries=len(reading.entries), tier=reading.tier)
            return reading


def _is_conditional(job: FetchFeed, url: str) -> bool:
    """Whether the job's validators belong to `url` and are sent to it."""
    return not job.probe and job.validators_url == url and bool(job.etag or job.last_modified)
