"""Messages to measure with: jobs for a fetcher, and results for a writer with new or mostly known articles."""

from __future__ import annotations

import asyncio
import functools
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from benchmarks.bare.fetching import Fetch
from benchmarks.bench import read_topology
from local.farm.articles import write_article
from services.fetcher.parse.identity import article_md5, content_hash
from shared.broker.port import Delivery, Outgoing, Publication, Session
from shared.politeness import politeness_group
from shared.wire.jobs import DIGEST_BYTES, FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import Entry, FeedFetched

ENTRIES = 20
"""Articles of one result: what a feed usually lists."""

BODY_CHARACTERS = 3000
CONTEXT = b"bench..."
"""The digest of the context of all entries."""

START = datetime(2026, 11, 21, tzinfo=UTC)


def write_jobs(fetches: Iterable[Fetch], known: int = 0) -> list[Publication]:
    """Return a job for each fetch, addressed to the fetchers' queues. The feeds are 1, 2, ….

    Each names so many `known` entries, which no feed has.
    """
    stage = read_topology().fetcher
    jobs = [_make_job(number, fetch, known) for number, fetch in enumerate(fetches, start=1)]
    return [Outgoing.into(stage.queue_of(job.group), job).to_publication() for job in jobs]


def _make_job(feed_id: int, fetch: Fetch, known: int) -> FetchFeed:
    now = datetime.now(UTC)
    return FetchFeed(
        feed_id=feed_id,
        url=fetch.url,
        etag=fetch.headers.get("If-None-Match"),
        last_modified=fetch.headers.get("If-Modified-Since"),
        validators_url=fetch.url,
        known=os.urandom((known + 1) * DIGEST_BYTES) if known else b"",
        group=politeness_group(fetch.url),
        claim_id=uuid4(),
        not_after=now + timedelta(hours=1),
        queued_at=now,
    )


async def take_outcomes(session: Session, queue: str, count: int, *, seconds: float) -> Counter[str]:
    """Take so many results from their queue; return how many of them have each outcome."""
    arrived: asyncio.Queue[Delivery] = asyncio.Queue()
    outcomes: Counter[str] = Counter()
    await session.consume(queue, prefetch=1000, deliver=arrived.put_nowait)
    async with asyncio.timeout(seconds):
        for _ in range(count):
            delivery = await arrived.get()
            outcomes[str(delivery.headers["outcome"])] += 1
            await session.ack(delivery)
    await session.stop_consuming()
    return outcomes


def new_results(results: int, *, edition: str, claim_id: UUID) -> list[FeedFetched]:
    """Return one result for each of the feeds 1, 2, …, all of whose articles are new."""
    return [
        _make_result(feed_id, [_write_entry(feed_id, number, edition) for number in range(ENTRIES)], claim_id)
        for feed_id in range(1, results + 1)
    ]


def repeat_results(before: Sequence[FeedFetched], *, edition: str, claim_id: UUID) -> list[FeedFetched]:
    """Return results in which only the first article of each is new and the others are those of `before`: 95 %."""
    return [
        _make_result(fetched.feed_id, [_write_entry(fetched.feed_id, ENTRIES, edition), *fetched.entries[1:]], claim_id)
        for fetched in before
    ]


def grown_results(before: Sequence[FeedFetched], *, edition: str, claim_id: UUID) -> list[FeedFetched]:
    """Return results with one new article each; the entries of `before` were known and not read."""
    return [
        _make_result(
            fetched.feed_id,
            [_write_entry(fetched.feed_id, ENTRIES + 1, edition)],
            claim_id,
            known=b"".join(map(_digest, fetched.entries)),
        )
        for fetched in before
    ]


def same_results(results: int, *, claim_id: UUID) -> list[FeedFetched]:
    """Return results of feeds that answered "not modified"."""
    nothing = {"outcome": Outcome.NOT_MODIFIED, "status": 304, "body_hash": None, "decoded_bytes": 0, "tier": None}
    return [_make_result(feed_id, [], claim_id, digests=b"", **nothing) for feed_id in range(1, results + 1)]


def _digest(entry: Entry) -> bytes:
    return bytes.fromhex(entry.md5)[:DIGEST_BYTES]


def _make_result(feed_id: int, entries: Sequence[Entry], claim_id: UUID, **changes: Any) -> FeedFetched:
    now = datetime.now(UTC)
    fields: dict[str, Any] = {
        "feed_id": feed_id,
        "url": feed_url(feed_id),
        "claim_id": claim_id,
        "outcome": Outcome.FETCHED,
        "final": True,
        "status": 200,
        "final_url": feed_url(feed_id),
        "etag": f'"{claim_id.hex}"',
        "body_hash": claim_id.hex * 2,
        "queued_at": now,
        "started_at": now,
        "elapsed_seconds": 0.1,
        "wire_bytes": 20_000,
        "decoded_bytes": 60_000,
        "tier": "strict",
        "entries": tuple(entries),
        "digests": CONTEXT + b"".join(map(_digest, entries)),
    }
    return FeedFetched(**fields | changes)


def feed_url(feed_id: int) -> str:
    """Return the address of a feed that nobody will fetch."""
    return f"http://feed-{feed_id}.bench.example/rss.xml"


def _write_entry(feed_id: int, number: int, edition: str) -> Entry:
    article = write_article(
        f"feed-{feed_id}", number, published_at=START - timedelta(hours=number), text_length=100, edition=edition
    )
    body = _body((feed_id * (ENTRIES + 1) + number) % 1000)
    return Entry(
        entry_id=article.entry_id,
        url=article.url,
        title=article.title,
        body=body,
        content_quality="full",
        published_at=article.published_at,
        author=article.author,
        categories=article.categories,
        language="en",
        md5=article_md5(article.url, article.title),
        content_hash=content_hash(article.title, body),
    )


@functools.lru_cache(maxsize=1000)
def _body(number: int) -> str:
    """Return one of a thousand texts: writing each anew would take longer than storing it."""
    text = write_article("bodies", number, published_at=START, text_length=BODY_CHARACTERS, edition="bench")
    return "\n".join(text.paragraphs)
