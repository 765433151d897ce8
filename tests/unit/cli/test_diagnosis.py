from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services.admin.health.diagnosis import FeedCounts, QueueLevel, Situation, Thresholds, explain, in_words

COUNTS = FeedCounts(
    feeds=100,
    disabled=1,
    due=0,
    overdue=0,
    left_alone=0,
    queued=0,
    retrying=0,
    failing=0,
    pending_articles=7,
    longest_due_seconds=None,
    next_due_seconds=130.0,
    seconds_since_success=5.0,
)
THRESHOLDS = Thresholds(fetcher_high_water=5000, writer_high_water=2000, group_jobs=400, silence_seconds=1800.0)
DUE = {"due": 10, "longest_due_seconds": 3.0}
OVERDUE = {"due": 900, "overdue": 800, "longest_due_seconds": 7_200.0}


def situation(
    counts: dict[str, Any] | None = None,
    fetcher: tuple[int, int] | None = (0, 1),
    writer: tuple[int, int] | None = (0, 1),
    busiest: dict[str, int] | None = None,
    shards: dict[str, QueueLevel | None] | None = None,
    enricher: tuple[int, int] | None = None,
) -> Situation:
    return Situation(
        replace(COUNTS, **counts or {}),
        shards or {"fetcher.00": QueueLevel(*fetcher) if fetcher else None, "fetcher.01": None},
        {
            "enricher": QueueLevel(*enricher) if enricher else None,
            "writer": QueueLevel(*writer) if writer else None,
        },
        busiest or {},
        THRESHOLDS,
        optional=["enricher"],
    )


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (situation(DUE), []),
        (situation({"queued": 5}), []),
        (situation(), ["the next one is in 2 minutes"]),
        (situation({"feeds": 0, "disabled": 0}), ["no feeds yet"]),
        (situation({"disabled": 100}), ["all feeds are disabled"]),
        (situation(fetcher=None), ["not declared"]),
        (situation(DUE, fetcher=(30, 0)), ["nobody reads the fetchers' shards, where 30 jobs wait"]),
        (
            situation(DUE, shards={"fetcher.00": QueueLevel(5, 1), "fetcher.13": QueueLevel(7, 0)}),
            ["no fetcher reads `fetcher.13`, where 7 jobs wait: do all services have the same FEEDMILL_FETCHER_SHARDS"],
        ),
        (
            situation(OVERDUE, shards={f"fetcher.{n:02d}": QueueLevel(500, 1) for n in range(10)}),
            ["5,000 jobs wait for the fetchers"],
        ),
        (situation(DUE, writer=(30, 0)), ["nobody reads `writer`, where 30 results wait"]),
        (situation(DUE, writer=None), ["not declared"]),
        (situation(DUE, enricher=(0, 0)), []),
        (situation(DUE, enricher=(30, 0)), ["nobody reads `enricher`, where 30 results wait: each goes on without it"]),
        (situation(DUE, enricher=(1500, 1), writer=(500, 1)), ["2,000 results wait in `enricher`, `writer`"]),
        (situation(DUE, fetcher=(30, 0), writer=(2000, 1)), ["2,000 results wait in `writer`"]),
        (situation(OVERDUE, fetcher=(5000, 1)), ["5,000 jobs wait for the fetchers"]),
        (situation(fetcher=(5000, 1)), ["no feed is due"]),
        (situation(OVERDUE), ["due for up to 2 hours and nobody claims them"]),
        (situation({**OVERDUE, "left_alone": 800}), ["800 overdue feeds wait for hosts"]),
        (
            situation({**OVERDUE, "left_alone": 700}),
            ["nobody claims them: is a scheduler", "700 overdue feeds wait for hosts"],
        ),
        (situation(OVERDUE, busiest={"a": 400, "b": 399}), ["a has 400 jobs under way"]),
        (situation({**DUE, "seconds_since_success": 5000.0}), []),  # the alarm `silent` says it
        (situation({"seconds_since_success": 5000.0}), ["no feed is due"]),
        (
            situation(OVERDUE, fetcher=(9000, 0), writer=(3000, 0)),
            ["3,000 results wait", "nobody reads `writer`", "9,000 jobs wait"],
        ),
    ],
)
def test_status_says_what_keeps_feeds_from_being_fetched(at: Situation, told: list[str]) -> None:
    reasons = [reason.sentence for reason in explain(at)]
    assert len(reasons) == len(told), reasons
    for reason, part in zip(reasons, told, strict=True):
        assert part in reason


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 seconds"), (1, "1 second"), (119, "119 seconds"), (120, "2 minutes"), (7200, "2 hours"), (86400, "1 day")],
)
def test_spans_are_shown_in_their_largest_unit(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
