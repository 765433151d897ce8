"""When the silence alarm begins and ends, by what each look finds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.silence import Found, SilenceWatch
from shared.database.postgres import Database


def test_the_alarm_begins_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    watch = SilenceWatch(Database("postgresql://nobody/", size=1), seconds=1800, clock=lambda: now[0])
    for moment in (1800.0, 1801.0, 1831.0):
        assert watch.check() is None or moment == 1831.0
        now[0] = moment
        watch.note(Found(3, 60.0, moment, math.inf))
    assert watch.check() == "feeds are due, and none was fetched successfully for 1831 s"
    watch.note(Found(0, 0.0, 0.0, 2.0))
    assert watch.check() is None
    assert [record.levelname for record in caplog.records if record.name == "services.scheduler.silence"] == ["ERROR"]


def test_a_start_after_a_pause_is_no_silence_and_lasting_trouble_after_it_is() -> None:
    now = [0.0]
    watch = SilenceWatch(Database("postgresql://nobody/", size=1), seconds=1800, clock=lambda: now[0])
    for moment in range(0, 1801, 30):
        now[0] = float(moment)
        watch.note(Found(900, 30_000.0 + moment, 30_000.0 + moment, 40_000.0 + moment))
        assert watch.check() is None
    now[0] = 1801.0
    watch.note(Found(900, 31_801.0, 31_801.0, 41_801.0))
    assert watch.silence_seconds() == 1801.0
    assert watch.check()


@given(st.lists(st.tuples(st.floats(1, 90), st.floats(1, 7200), st.sampled_from(["fails", "succeeds", "rests"]))))
def test_only_a_success_or_rest_ends_a_silence(steps: list[tuple[float, float, str]]) -> None:
    """However often lost jobs are issued anew, by which the database's figure begins anew."""
    now = [0.0]
    watch = SilenceWatch(Database("postgresql://nobody/", size=1), seconds=1800, clock=lambda: now[0])
    begun: float | None = None
    success_at = -math.inf
    for seconds, seen, what in steps:
        now[0] += seconds
        if what == "succeeds":
            success_at = now[0]
        silence = min(seen, now[0] - success_at)
        if what == "rests" or silence == 0:
            begun, silence = None, 0.0
        elif begun is None or success_at > begun:
            begun = max(0.0, now[0] - silence)
        else:
            begun = min(begun, max(0.0, now[0] - silence))
        watch.note(Found(1, 0.0, silence, now[0] - success_at))
        assert watch.silence_seconds() == pytest.approx(0.0 if begun is None else now[0] - begun)
        assert watch.silence_seconds() <= min(now[0], now[0] - success_at) + 1e-6
