"""Enriches each result on a thread, and hands it on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from services.enricher.enriching import enrich
from services.enricher.parts import Parts
from shared.broker.port import Outgoing
from shared.broker.topology import Stage
from shared.wire.results import FeedFetched


@dataclass(frozen=True)
class EnrichResults:
    """The enricher's handler."""

    stage: Stage
    parts: Parts
    thread: ThreadPoolExecutor
    """One thread: it computes, while the event loop answers the broker."""

    async def __call__(self, batch: Sequence[FeedFetched]) -> Sequence[Outgoing]:
        """Return the results, enriched, addressed to the next stage."""
        loop = asyncio.get_running_loop()
        return [
            Outgoing.onward(self.stage, await loop.run_in_executor(self.thread, enrich, fetched, self.parts))
            for fetched in batch
        ]
