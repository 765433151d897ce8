from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic_core import to_json

from services.writer.feed_store import read_rate, write_rate
from services.writer.schedule.publication_rate import Limits, PublicationRate, next_poll, observe

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SEEN = {"seen_at": "2026-11-20T00:00:00Z", "rhythm_since": "2026-10-01T00:00:00Z"}


def test_a_publication_rate_is_read_as_it_was_written() -> None:
    rate = observe(
        PublicationRate(), now=NOW, new_items=3, items_seen=20, published=[NOW - timedelta(hours=n) for n in range(9)]
    )
    assert read_rate(json.loads(to_json(write_rate(rate)))) == rate


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        "fast",
        {"speed": 3},
        {**SEEN, "rhythm": [1, 2, 3]},
        {**SEEN, "rhythm": [-1] * 31},
        {"seen_at": "2026-11-20T00:00:00"},
        {**SEEN, "rhythm_since": "2026-11-20T00:00:00", "rhythm": [1] * 31},
        {**SEEN, "recent_days": -0.5},
        {**SEEN, "silent_days": "NaN"},
        {**SEEN, "heat": "Infinity"},
    ],
)
def test_an_impossible_publication_rate_is_estimated_anew(value: Any) -> None:
    rate = observe(read_rate(value), now=NOW, new_items=1, items_seen=20)
    assert rate.seen_at == NOW
    assert next_poll(rate, now=NOW, limits=Limits()) >= Limits().shortest
