"""`benchmarks/out/latest.json` keeps its shape; a run keeps to its time, and fails if it loses an article."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from benchmarks import laps
from benchmarks.laps import BenchError, Lap, middle_cpu_ms, middle_rate
from benchmarks.rows import Row, write_json
from benchmarks.subjects.pipeline import check_articles


def test_latest_json_is_a_list_of_rows_with_their_ratios(tmp_path: Path) -> None:
    rows = [
        Row("pipeline.304.0ms.feeds", 150.0, "feeds/s", "bare httpx loop", 600.0, goal=0.7),
        Row("pipeline.transport_errors", 0, "fetches", "bare httpx loop", 0),
    ]
    write_json(rows, tmp_path / "out" / "latest.json")
    assert json.loads((tmp_path / "out" / "latest.json").read_text(encoding="utf-8")) == [
        {
            "name": "pipeline.304.0ms.feeds",
            "value": 150.0,
            "unit": "feeds/s",
            "beside": "bare httpx loop",
            "beside_value": 600.0,
            "ratio": 0.25,
            "goal": 0.7,
        },
        {
            "name": "pipeline.transport_errors",
            "value": 0,
            "unit": "fetches",
            "beside": "bare httpx loop",
            "beside_value": 0,
            "ratio": None,
            "goal": None,
        },
    ]


def test_of_several_laps_the_middle_one_counts() -> None:
    found = [Lap(100, seconds, {"us": cpu}) for seconds, cpu in ((1.0, 0.2), (9.0, 5.0), (2.0, 0.1))]
    assert middle_rate(found) == 50.0
    assert middle_cpu_ms(found, "us") == 2.0


def test_no_round_is_begun_that_would_exceed_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    begun = []
    for number in laps.rounds(most=10, seconds=10.0):
        begun.append(number)
        now += 3.0
    assert begun == [0, 1, 2]


def test_one_round_is_run_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    begun = []
    for number in laps.rounds(most=10, seconds=1.0):
        begun.append(number)
        now += 60.0
    assert begun == [0]


def test_a_run_that_loses_or_doubles_an_article_fails() -> None:
    check_articles("ours", ["b", "a"], ["a", "b"])
    for stored in (["a"], ["a", "b", "b"], ["a", "b", "c"], ["a", "c"]):
        with pytest.raises(BenchError, match="ours: "):
            check_articles("ours", stored, ["a", "b"])
