"""One request of one fetch, on a worker thread: ask, judge, read. Blocking code, no queue, no scoreboard."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from services.fetcher.clock import Clock
from services.fetcher.http.client import HttpRequest, HttpResponse
from services.fetcher.http.failure import Failure, FetchFailed
from services.fetcher.http.options import read_options
from services.fetcher.outcomes import WAIT_STATUSES, outcome_of_failure, outcome_of_status
from services.fetcher.parse import NotAFeed, ParsedFeed, ParseError, parse_feed
from services.fetcher.politeness.decisions import Report
from services.fetcher.politeness.hints import max_age_seconds, retry_after_seconds
from services.fetcher.request import FeedRequest
from shared.observability.secrets import mask_credentials
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched, ServerHints

ERROR_CHARACTERS = 500

LARGE_BYTES = 128 * 1024
"""Larger bodies are parsed one at a time: reading a feed takes twelve times the memory of its body, and a hostile one
thirty times. More at a time would be no faster, since the interpreter runs one thread at a time."""

WELL_FORMED = frozenset({"strict", "json"})
"""Tiers that take nothing that was cut."""

SMALL_AT_ONCE = 8
"""Other bodies that are parsed at a time. They don't wait for a large one, which may take all of `parse_seconds`."""

Sent = Callable[[], None]


@dataclass(frozen=True)
class FetchLimits:
    """What a reader holds to."""

    deadline_seconds: float = 30.0
    """Of a fetch with all its redirects, if the feed has no deadline of its own."""
    max_entries: int = 5000
    proxy_hosts: frozenset[str] = frozenset()
    parse_seconds: float = 10.0
    """CPU seconds that reading one body may take. Not wall-clock: others' threads are not its fault."""
    keep_html: bool = False


@dataclass
class _Findings:
    """What is known so far; becomes the result."""

    outcome: Outcome
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Asked:
    """How one request fared, as far as its host is concerned."""

    has_left: bool = False
    """The request was sent: there is a connection."""
    status: int | None = None
    latency: float | None = None
    """Seconds that the server took."""
    is_down: bool = False

    def note(self, error: FetchFailed, seconds: float) -> None:
        """Take a failure after so many seconds into account, unless it is one behind the answer (a bad redirect)."""
        self.status = error.status
        self.is_down = error.failure is Failure.CONNECT and not error.is_ours
        if self.latency is None and (self.has_left or self.is_down):
            self.latency = seconds - error.ours_seconds

    def report(self, retry_after: float | None = None) -> Report:
        """Return what the host's group is to learn."""
        return Report(
            latency_seconds=self.latency,
            connected=False if self.is_down else self.has_left or None,
            throttled=self.status == 429,
            retry_after_seconds=retry_after,
        )


class Client(Protocol):
    """What makes the requests: `FeedClient`, or what looks on."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """See `FeedClient.get`."""


class FeedFetcher:
    """Asks for feeds and reads them; safe to use from many threads."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        limits: FetchLimits,
        check_leaving: Callable[[str], None] = lambda group: None,
    ) -> None:
        """`check_leaving` is called before a request of this group leaves, and raises NackAndRequeue if it must not."""
        self._client = client
        self._clock = clock
        self._limits = limits
        self._check_leaving = check_leaving
        self._large = threading.Semaphore(1)
        self._small = threading.Semaphore(SMALL_AT_ONCE)

    def make_request(self, request: FeedRequest, sent: Sent) -> tuple[FeedFetched | FeedRequest, Report]:
        """Return how the feed was found, or where a redirect leads; and what the host's group is to learn.

        A failing feed is a fact, not an exception. `sent` is called at the moment the request leaves.
        """
        job = request.job
        now, start = self._clock.now(), self._clock.monotonic()
        request = replace(request, started_at=request.started_at or now)
        asked = _Asked()

        def note_sent() -> None:
            asked.has_left = True
            sent()

        try:
            with self._client.get(self._conditional(job, request, note_sent)) as answer:
                answered = self._clock.monotonic()
                asked.status, asked.latency = answer.status, answered - start - answer.ours_seconds
                if answer.redirect is not None:
                    return self._follow(request, answer, answered - start - answer.waited_seconds), asked.report()
                findings = self._judge(job, request, answer, now)
        except FetchFailed as error:
            asked.note(error, self._clock.monotonic() - start)
            fields = {
                "status": error.status,
                "error_class": error.failure.value,
                "error": str(error)[:ERROR_CHARACTERS],
            }
            findings = _Findings(outcome_of_failure(error.failure), fields)
        fetched = FeedFetched(
            **result_identity(job),
            outcome=findings.outcome,
            final=True,
            started_at=request.started_at or now,
            elapsed_seconds=request.spent_seconds + self._clock.monotonic() - start,
            **findings.fields,
        )
        report = asked.report(fetched.hints.retry_after_seconds)
        return fetched, replace(report, succeeded=fetched.outcome.is_success)

    def _conditional(self, job: FetchFeed, request: FeedRequest, sent: Sent) -> HttpRequest:
        """Return the request of this request, with the validators if they belong to its URL."""
        options = read_options(job.source_config).for_url(job.url, request.chain.url)
        own = _is_conditional(job, request.chain.url)
        left = (options.timeout_seconds or self._limits.deadline_seconds) - request.spent_seconds
        return HttpRequest(
            request.chain.url,
            etag=job.etag if own else None,
            last_modified=job.last_modified if own else None,
            headers=options.headers,
            credentials=options.credentials,
            seconds=max(left, 0.0),
            leaving=lambda: self._check_leaving(request.group),
            sent=sent,
        )

    def _follow(self, request: FeedRequest, answer: HttpResponse, seconds: float) -> FeedRequest:
        assert answer.redirect is not None
        return request.follow(answer.status, answer.redirect, seconds, self._limits.proxy_hosts)

    def _judge(self, job: FetchFeed, request: FeedRequest, answer: HttpResponse, now: datetime) -> _Findings:
        facts = _facts(answer, now) | {"moved_to": request.chain.moved_to}
        outcome = outcome_of_status(answer.status, conditional=_is_conditional(job, answer.url))
        if outcome is not None:
            if not outcome.is_success:
                facts |= {"error_class": f"http_{answer.status}", "error": f"the server answered {answer.status}"}
            return _Findings(outcome, facts)
        body_hash = hashlib.sha256(answer.body).hexdigest()
        if body_hash == job.body_hash:
            return _Findings(Outcome.UNCHANGED, facts | {"body_hash": body_hash})
        return self._read(job, answer, facts, body_hash, now)

    def _read(
        self, job: FetchFeed, answer: HttpResponse, facts: dict[str, Any], body_hash: str, now: datetime
    ) -> _Findings:
        end = self._clock.cpu() + self._limits.parse_seconds
        try:
            with self._large if len(answer.body) > LARGE_BYTES else self._small:
                parsed = parse_feed(
                    answer.body,
                    url=answer.url,
                    content_type=answer.headers.get("content-type"),
                    now=now,
                    max_entries=self._limits.max_entries,
                    keep_html=self._limits.keep_html,
                    deadline=lambda: self._clock.cpu() > end,
                )
        except ParseError as error:
            outcome = Outcome.NOT_A_FEED if isinstance(error, NotAFeed) else Outcome.UNPARSEABLE
            if outcome is Outcome.NOT_A_FEED and job.body_hash is not None:
                # It has been a feed before: an error page with status 200, a hotel's portal. That passes.
                outcome = Outcome.SOFT_ERROR
            # Without its articles the body's validators must not be kept, or we would never see it again.
            facts |= {"etag": None, "last_modified": None}
            return _Findings(outcome, facts | {"error_class": _error_class(error), "error": _described(error)})
        if parsed.tier not in WELL_FORMED and not answer.has_end:
            facts |= {"etag": None, "last_modified": None}  # it may be cut: the rest comes with the next body
        return _Findings(Outcome.FETCHED, facts | {"body_hash": body_hash} | _contents(parsed, facts["hints"]))


def result_identity(job: FetchFeed) -> dict[str, Any]:
    """Return the fields of a result that it has from its job."""
    return {
        "feed_id": job.feed_id,
        "url": job.url,
        "claim_id": job.claim_id,
        "reason": job.reason,
        "probe": job.probe,
        "attempt": job.attempt,
        "queued_at": job.queued_at,
    }


def unattempted(
    job: FetchFeed, outcome: Outcome, now: datetime, error: str, error_class: str | None = None
) -> FeedFetched:
    """Return the result of a job that never reached its server (`stale`, `skipped`, settings that can't be used)."""
    return FeedFetched(
        **result_identity(job),
        outcome=outcome,
        final=True,
        started_at=now,
        elapsed_seconds=0.0,
        error_class=error_class or outcome.value,
        error=mask_credentials(error)[:ERROR_CHARACTERS],
    )


def _is_conditional(job: FetchFeed, url: str) -> bool:
    """Whether the job's validators belong to `url` and are sent to it."""
    return not job.probe and job.validators_url == url and bool(job.etag or job.last_modified)


def _described(error: Exception) -> str:
    """Return the error's text as the log table and the dashboards take it. Masked first: a cut could hide an `@`."""
    return mask_credentials(str(error))[:ERROR_CHARACTERS]


def _error_class(error: ParseError) -> str:
    return "not_a_feed" if isinstance(error, NotAFeed) else "unparseable"


def _facts(answer: HttpResponse, now: datetime) -> dict[str, Any]:
    headers = answer.headers
    wait = retry_after_seconds(headers.get("retry-after"), now) if answer.status in WAIT_STATUSES else None
    return {
        "status": answer.status,
        "final_url": answer.url,
        "etag": headers.get("etag"),
        "last_modified": headers.get("last-modified"),
        "hints": ServerHints(
            max_age_seconds=max_age_seconds(headers.get("cache-control"), headers.get("expires"), headers.get("date")),
            retry_after_seconds=wait,
        ),
        "not_before": now + timedelta(seconds=wait) if wait is not None else None,
        "wire_bytes": answer.wire_bytes,
        "decoded_bytes": len(answer.body),
    }


def _contents(parsed: ParsedFeed, hints: ServerHints) -> dict[str, Any]:
    of_feed = parsed.hints.model_dump(include={"ttl_seconds", "skip_hours", "skip_days"})
    return {
        "tier": parsed.tier,
        "feed": parsed.feed,
        "entries": parsed.entries,
        "hints": hints.model_copy(update=of_feed),
    }
