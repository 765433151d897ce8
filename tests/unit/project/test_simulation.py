"""The simulation of docs/explanation/polling.md counts correctly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.simulation.feeds import CLASSES, DAY, MIXES, Feed, make_feed
from benchmarks.simulation.policies import DuplicateShare, Fixed, Ours, StepFormula
from benchmarks.simulation.run import poll_feed

HOUR = 3600.0


def feed(appears: Sequence[float], *, window: int = 10, dead: bool = False) -> Feed:
    moments = np.array(appears, dtype=float)
    return Feed(0, "test", moments, moments, window, dead)


def test_items_wait_for_the_next_poll() -> None:
    tally = poll_feed(feed([100.0, 3600.0 + 1000.0]), Fixed(HOUR), warmup_days=0, days=1)
    assert (tally.polls, tally.items, tally.missed) == (24, 2, 0)
    assert tally.waited == pytest.approx(3500 + 2600)
    assert tally.percentile(100) == pytest.approx(3500, rel=0.01)


def test_what_slid_out_of_the_window_is_missed() -> None:
    tally = poll_feed(feed(np.linspace(10.0, 3000.0, 25).tolist(), window=10), Fixed(HOUR), warmup_days=0, days=1)
    assert (tally.items, tally.missed) == (25, 15)


def test_the_warm_up_does_not_count() -> None:
    tally = poll_feed(feed([100.0, DAY + 100.0]), Fixed(HOUR), warmup_days=1, days=1)
    assert (tally.polls, tally.items) == (24, 1)


def test_dead_feeds_are_backed_off_from() -> None:
    assert poll_feed(feed([], dead=True), Fixed(600.0), warmup_days=2, days=10).polls == pytest.approx(10, abs=1)


@pytest.mark.parametrize(("per_day", "minutes"), [(11, 5), (3, 15), (1, 60), (0.3, 120)])
def test_the_steps_of_the_reference(per_day: float, minutes: float) -> None:
    formula = StepFormula()
    dates = [-DAY * n / per_day for n in range(int(7 * per_day) + 1)]
    assert formula.next_wait(0.0, len(dates), len(dates), dates) == minutes * 60


def test_the_reference_slows_down_after_ten_empty_polls_and_is_silent_after_90_days() -> None:
    once, growing = StepFormula(), StepFormula(growing=True)
    for formula in (once, growing):
        formula.next_wait(0.0, 20, 20, [-n * HOUR for n in range(100)])
    waits = [(once.next_wait(n * 60.0, 0, 20, ()), growing.next_wait(n * 60.0, 0, 20, ())) for n in range(1, 14)]
    assert waits[9:] == [(300, 300), (450, 450), (450, 675), (450, 1012.5)]
    assert once.next_wait(100 * DAY, 0, 20, ()) == DAY


def test_the_duplicate_share_moves_the_interval() -> None:
    rule = DuplicateShare()
    assert rule.next_wait(0.0, 20, 20, ()) == 6 * HOUR
    assert rule.next_wait(1.0, 15, 20, ()) == 5 * HOUR
    assert rule.next_wait(2.0, 10, 20, ()) == 5 * HOUR
    assert rule.next_wait(3.0, 0, 20, ()) == 5 * HOUR + 600


def test_a_feed_is_the_same_whoever_polls_it_and_whoever_else_is_there() -> None:
    one, again, other = make_feed(7, 1, 20.0), make_feed(7, 1, 20.0), make_feed(7, 2, 20.0)
    assert np.array_equal(one.appears, again.appears)
    assert not np.array_equal(one.appears, other.appears)
    assert np.all(np.diff(one.appears) >= 0)


def test_a_few_thousand_feeds_hold_every_class_in_proportion() -> None:
    kinds = [make_feed(number, 1, 1.0).kind for number in range(200)]
    for kind in CLASSES:
        assert kinds.count(kind.name) == pytest.approx(200 * kind.share, abs=2)
    assert sum(MIXES["usual"].values()) == pytest.approx(1.0)


def test_ours_polls_a_news_site_less_often_than_the_formula_and_misses_nothing() -> None:
    number = next(n for n in range(100) if make_feed(n, 1, 1.0).kind == "news site")
    site = make_feed(number, 1, 8.0)
    ours, formula = (poll_feed(site, policy, warmup_days=3, days=4) for policy in (Ours(), StepFormula()))
    assert ours.polls < 0.7 * formula.polls
    assert ours.missed == 0
