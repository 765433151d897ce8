"""Enriches results, large ones on a thread, and hands them on."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final

from prometheus_client import Counter, Histogram

from services.enricher.enriching import SKIPPED, enrich_entries, enrich_feeds
from services.enricher.metrics import note_found
from services.enricher.parts import Parts
from shared.broker.port import Outgoing
from shared.broker.topology import Stage
from shared.errors import MessageTooLarge
from shared.tracing import Span
from shared.wire.enrichment import Enrichment
from shared.wire.results import FeedFetched

log = logging.getLogger(__name__)

Find = Callable[[Sequence[FeedFetched]], Sequence[Sequence[Enrichment]]]
"""Returns what is found of each result's entries."""

RESULTS = Counter(
    "feedmill_enriched_results_total",
    "Results that passed the enricher: enriched, late (no time was left for some entries), too_large (went on without"
    " what was found) or failed (likewise).",
    ["result"],
)
SECONDS = Histogram(
    "feedmill_enrichment_result_seconds",
    "Time from taking a result in hand to its bytes, in seconds.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)

CHUNK: Final = 50
"""Entries that are enriched together: enough to help each other, few enough that a stop needs not wait long."""

FEW: Final = 5
"""Results of so many entries are enriched without the thread, all of a batch together: handing them over and back keeps
both threads busy, and they share one interpreter."""

BUDGET_SECONDS: Final = 30.0
"""The time for one result, less than a stop waits for. Entries that are left then go on without."""


class EnrichResults:
    """The enricher's handler.

    Args:
        stage: whose handler it is.
        parts: what it finds.
        thread: a single thread, which computes large results while the event loop answers the broker.
        most_bytes: returns the largest message that may be published.
        monotonic: seconds.
        cpu: seconds that the calling thread has computed.
    """

    def __init__(
        self,
        stage: Stage,
        parts: Parts,
        thread: ThreadPoolExecutor,
        *,
        most_bytes: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._stage = stage
        self._parts = parts
        self._thread = thread
        self._most_bytes = most_bytes
        self._monotonic = monotonic
        self._cpu = cpu
        self._begun_at: float | None = None

    def busy_seconds(self) -> float:
        """Return for how long the present entries have been computed; 0: none are."""
        begun_at = self._begun_at
        return 0.0 if begun_at is None else self._monotonic() - begun_at

    async def __call__(self, batch: Sequence[FeedFetched]) -> Sequence[Outgoing]:
        """Return the results, enriched, addressed to the next stage."""
        ending = threading.Event()
        few = [fetched for fetched in batch if len(fetched.entries) <= FEW]
        enriched = self._enrich(few, self._find_together) if few else []
        try:
            for fetched in batch:
                if len(fetched.entries) > FEW:
                    loop = asyncio.get_running_loop()
                    find = partial(self._find_in_chunks, ending)
                    enriched += await loop.run_in_executor(self._thread, self._enrich, [fetched], find)
            return enriched
        finally:
            ending.set()  # the thread is not kept busy by what nobody waits for any more

    def _enrich(self, results: Sequence[FeedFetched], find: Find) -> list[Outgoing]:
        """Return the results with what was found, or as they came: no article waits for a label."""
        with SECONDS.time(), ExitStack() as stack:
            spans = [stack.enter_context(each.span.start("enrich", entries=len(each.entries))) for each in results]
            try:
                found = find(results)
            except Exception:
                for span in spans:
                    span.fail("failed")
                if len(results) == 1:
                    log.exception("a result goes on without what was found", extra={"feed_id": results[0].feed_id})
                    RESULTS.labels("failed").inc()
                    return [Outgoing.onward(self._stage, results[0])]
            else:
                return [self._label(*each) for each in zip(results, found, spans, strict=True)]
        return [outgoing for each in results for outgoing in self._enrich([each], find)]

    def _label(self, fetched: FeedFetched, found: Sequence[Enrichment], span: Span) -> Outgoing:
        """Return a result with what was found, or as it came if no message can hold that."""
        try:
            entries = (e.model_copy(update={"enrichment": f}) for e, f in zip(fetched.entries, found, strict=True))
            enriched = fetched.model_copy(update={"entries": tuple(entries)})
            outgoing = Outgoing.onward(self._stage, enriched, enriched.encode_within(self._most_bytes()))
        except Exception as error:
            log.exception("a result goes on without what was found", extra={"feed_id": fetched.feed_id})
            result = "too_large" if isinstance(error, MessageTooLarge) else "failed"
            RESULTS.labels(result).inc()
            span.fail(result)
            return Outgoing.onward(self._stage, fetched)
        note_found(found, self._parts)
        RESULTS.labels("late" if found and SKIPPED in found[-1].flags else "enriched").inc()
        return outgoing

    def _find_together(self, results: Sequence[FeedFetched]) -> list[list[Enrichment]]:
        with self._computing():
            return enrich_feeds([(fetched.entries, fetched.feed.language) for fetched in results], self._parts)

    def _find_in_chunks(self, ending: threading.Event, results: Sequence[FeedFetched]) -> list[list[Enrichment]]:
        most = self._cpu() + BUDGET_SECONDS
        (fetched,) = results
        found: list[Enrichment] = []
        for start in range(0, len(fetched.entries), CHUNK):
            chunk = fetched.entries[start : start + CHUNK]
            with self._computing():
                if ending.is_set() or self._cpu() > most:
                    found += [Enrichment(flags=(SKIPPED,))] * len(chunk)
                else:
                    found += enrich_entries(chunk, fetched.feed.language, self._parts)
        return [found]

    @contextmanager
    def _computing(self) -> Iterator[None]:
        self._begun_at = self._monotonic()
        try:
            yield
        finally:
            self._begun_at = None
