"""Where a job's trace begins: with the claim of its feed."""

from __future__ import annotations

from collections.abc import Sequence

from shared.tracing import tracer
from shared.wire.jobs import FetchFeed


def trace_claims(jobs: Sequence[FetchFeed], began_at: int) -> None:
    """Begin a trace for some of the jobs that were just claimed; `began_at` is in nanoseconds since 1970."""
    for place in tracer().pick(len(jobs)):
        trace_claim(jobs[place], "claim", at=began_at)


def trace_claim(job: FetchFeed, name: str, *, at: int | None = None, parent: str | None = None) -> None:
    """Begin the trace of one job, whatever else is traced; `parent` is a `traceparent` of who asked for it."""
    with tracer().root(
        name,
        at=at,
        parent=parent,
        feed_id=job.feed_id,
        claim_id=str(job.claim_id),
        group=job.group,
        reason=job.reason,
    ) as span:
        job.traced(span)
