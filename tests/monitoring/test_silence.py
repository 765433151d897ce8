"""The alarm that matters: it fires when nothing succeeds anywhere, whoever runs, and not when nothing has to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.monitoring.cases import FETCHER, SCHEDULER, Series, alarm, within
from tests.monitoring.promtool import Expected, check, needs_promtool
from tests.monitoring.rules import ALERTS

SILENCE = "feedmill_silence_seconds"
MINUTES = 60
QUEUED = 'feedmill:installation{fetch_type="queue-fetcher"}'
BATCHES = 'feedmill:installation{fetch_type="batch-fetcher"}'

FIRES: dict[str, Series] = {
    # Jobs sit in the retry queue: nothing is due, fetchers run, and the silence grows.
    "every-fetch-fails": {
        QUEUED: "1x60",
        SCHEDULER: "1x60",
        FETCHER: "1x60",
        SILENCE: "0+60x60",
        "feedmill_feeds_due": "0x60",
        'feedmill_fetches_total{outcome="soft_error"}': "0+1x60",
    },
    "no-fetcher": {QUEUED: "1x60", SCHEDULER: "1x60", SILENCE: "0+60x60"},
    "database-away": {QUEUED: "1x60", SCHEDULER: "1x60", SILENCE: "0x5 300+60x55"},
    "scheduler-restarted": {QUEUED: "1x60", SCHEDULER: "1x60", SILENCE: "0+60x15 0+60x44"},
    "one-of-two-schedulers": {
        QUEUED: "1x60",
        f'{SILENCE}{{instance="a"}}': "0+60x60",
        f'{SILENCE}{{instance="b"}}': "0x60",
    },
    "batches-that-fail": {BATCHES: "1x60", alarm("silent"): "0x20 1x40"},
    "scheduler-away-and-the-api-knows": {QUEUED: "1x60", alarm("silent"): "0x20 1x40"},
}

SILENT: dict[str, Series] = {
    "no-feeds-or-none-wants": {QUEUED: "1x60", SCHEDULER: "1x60", SILENCE: "0x60", alarm("silent"): "0x60"},
    "succeeds-now-and-then": {QUEUED: "1x60", SILENCE: "0+60x29 0+60x29"},
    "just-started": {QUEUED: "1x60", SCHEDULER: "_x35 1x25", SILENCE: "_x35 0+60x24"},
    "between-batches": {BATCHES: "1x60", alarm("silent"): "0x60", alarm("batch_late"): "0x60"},
    "for-a-moment": {BATCHES: "1x60", alarm("silent"): "0x57 1 0x2"},
    "results-that-nobody-writes": {QUEUED: "1x60", SILENCE: "0+60x60", alarm("writer_missing"): "0x2 1x57"},
    "a-database-that-takes-nothing": {QUEUED: "1x60", SILENCE: "0+60x60", alarm("database_read_only"): "0x2 1x57"},
    "of-another-kind": {QUEUED: "1x60", alarm("most_fail"): "1x60"},
}


@needs_promtool
def test_it_fires_when_nothing_succeeds_and_not_when_nothing_has_to(tmp_path: Path) -> None:
    series: Series = {}
    for name, given in (FIRES | SILENT).items():
        series |= within(name, given)
    expected = [
        Expected("FeedmillSilent", MINUTES - 1, [name] if name in FIRES else [], among=name) for name in FIRES | SILENT
    ]
    check([ALERTS], series, expected, tmp_path)


@needs_promtool
@pytest.mark.parametrize(("minute", "fires"), [(30, False), (33, True)])
def test_it_fires_after_half_an_hour(minute: int, fires: bool, tmp_path: Path) -> None:
    series = within("mill", FIRES["every-fetch-fails"])
    check([ALERTS], series, [Expected("FeedmillSilent", minute, ["mill"] if fires else [])], tmp_path)
