"""The source type `feed`: RSS, Atom, RDF and JSON Feed."""

from __future__ import annotations

from services.fetcher.parse import parse_feed
from services.fetcher.sources import ReadContext, Reading, RequestConfig, SourceType

WELL_FORMED = frozenset({"strict", "json"})
"""Tiers that refuse a body that was cut short."""


def read(body: bytes, context: ReadContext[RequestConfig]) -> Reading:
    """Return what `parse_feed` finds."""
    parsed = parse_feed(
        body,
        url=context.url,
        content_type=context.content_type,
        now=context.now,
        max_entries=context.max_entries,
        keep_html=context.keep_html,
        deadline=context.deadline,
        known=context.known,
        date_order=context.date_order,
    )
    return Reading(
        parsed.entries,
        parsed.feed,
        parsed.hints,
        parsed.tier,
        notices_cuts=parsed.tier in WELL_FORMED,
        known=parsed.known,
        digests=parsed.digests,
        date_order=parsed.date_order,
    )


FEED = SourceType(read, RequestConfig, "RSS, Atom, RDF and JSON Feed")
