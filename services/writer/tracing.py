"""Spans of a batch: one for the transaction, and one for each traced result in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from services.writer.store import Written
from shared.tracing import tracer
from shared.wire.results import FeedFetched


class WriteSpans:
    """The spans of a batch. Without traced results there are none."""

    def __init__(self, batch: Sequence[FeedFetched]) -> None:
        traced = [fetched for fetched in batch if fetched.span]
        if traced:
            entries = sum(len(fetched.entries) for fetched in batch)
            links = [fetched.span for fetched in traced]
            self.batch = tracer().root("write batch", links=links, results=len(batch), entries=entries)
        self.own = {
            fetched.result_id: fetched.span.start(
                "write", links=[self.batch], feed_id=fetched.feed_id, entries=len(fetched.entries)
            )
            for fetched in traced
        }

    def note(self, written: Written) -> None:
        """Note what was written."""
        if not self.own:
            return
        self.batch.note(new=written.new, updated=written.updated, repeated=written.repeated)
        new = written.changes.new if written.changes else ()
        brought = Counter(written.articles[name].brought_by for name in new)
        for place, reading in enumerate(written.readings):
            if (span := self.own.get(reading.fetched.result_id)) is not None:
                span.note(new=brought[place])


@contextmanager
def tracing(batch: Sequence[FeedFetched]) -> Iterator[WriteSpans]:
    """Trace the writing of a batch within the block."""
    spans = WriteSpans(batch)
    with ExitStack() as open_spans:
        if spans.own:
            for span in (spans.batch, *spans.own.values()):
                open_spans.enter_context(span)
        yield spans
