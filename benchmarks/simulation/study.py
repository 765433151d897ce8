"""Several policies over the same feeds, in two processes; the tables and rows of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

from benchmarks.rows import Row
from benchmarks.simulation.feeds import MIXES, make_feed
from benchmarks.simulation.policies import DuplicateShare, Fixed, Ours, Policy, StepFormula
from benchmarks.simulation.run import Tally, poll_feed

PROCESSES = 2
CHUNKS = 24

Make = Callable[[], Policy]

REFERENCE = "step formula"
OURS = "ours"
"""The names of the two policies that the rows compare."""

POLICIES: dict[str, Make] = {
    "fixed 10 min": partial(Fixed, 600.0),
    "fixed 60 min": partial(Fixed, 3600.0),
    REFERENCE: StepFormula,
    "step formula, growing": partial(StepFormula, growing=True),
    "duplicate share": DuplicateShare,
    OURS: Ours,
    "ours, at least 5 min": partial(Ours, shortest=300.0),
}


@dataclass(frozen=True)
class Setting:
    """The options of a simulation."""

    feeds: int = 47_000
    """The number of feeds that the figures are for."""
    every: int = 20
    """One of so many feeds is simulated and counts for all of them. The shares of the classes stay the same."""
    days: float = 30.0
    warmup_days: float = 14.0
    """Days before the count, in which the policies learn."""
    seed: int = 1
    mix: str = "usual"
    shift_hours: float = 0.0


Tallies = dict[str, dict[str, Tally]]
"""By policy, by class of feeds."""


def simulate(setting: Setting, policies: dict[str, Make]) -> Tallies:
    """Return the counts of each policy over the same feeds."""
    numbers = range(0, setting.feeds, setting.every)
    chunks = [(setting, numbers[start::CHUNKS], policies) for start in range(CHUNKS)]
    tallies: Tallies = {name: {} for name in policies}
    with get_context("fork").Pool(PROCESSES) as pool:
        for part in pool.imap_unordered(_simulate_chunk, chunks):
            for name, by_kind in part.items():
                for kind, tally in by_kind.items():
                    tallies[name].setdefault(kind, Tally()).add(tally)
    return tallies


def _simulate_chunk(chunk: tuple[Setting, Sequence[int], dict[str, Make]]) -> Tallies:
    setting, numbers, policies = chunk
    whole = setting.warmup_days + setting.days
    tallies: Tallies = {name: {} for name in policies}
    for number in numbers:
        feed = make_feed(number, setting.seed, whole, mix=setting.mix, shift_hours=setting.shift_hours)
        for name, make in policies.items():
            tally = poll_feed(feed, make(), warmup_days=setting.warmup_days, days=setting.days)
            tallies[name].setdefault(feed.kind, Tally()).add(tally)
    return tallies


def total(by_kind: dict[str, Tally]) -> Tally:
    """Return the sum over all classes."""
    whole = Tally()
    for tally in by_kind.values():
        whole.add(tally)
    return whole


def polls_per_day(tally: Tally, setting: Setting) -> float:
    """Return the polls of a day, for as many feeds as the setting is of."""
    return tally.polls / setting.days * setting.feeds / max(tally.feeds, 1)


def write_tables(setting: Setting, tallies: Tallies) -> str:
    """Return two Markdown tables: by policy, and by class of feeds for the reference and ours."""
    lines = [
        "| policy | fetches/day | item median | item p95 | item mean | feed median | feed mean | feed p95 | missed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, by_kind in tallies.items():
        whole = total(by_kind)
        feeds = [whole.feed_percentile(50), sum(whole.feed_means) / max(len(whole.feed_means), 1)]
        waits = [whole.percentile(50), whole.percentile(95), whole.mean, *feeds, whole.feed_percentile(95)]
        cells = [f"{polls_per_day(whole, setting) / 1000:,.0f} k", *(f"{wait / 60:.1f}" for wait in waits)]
        lines.append(f"| {name} | {' | '.join(cells)} | {100 * whole.missed / max(whole.items, 1):.2f} % |")
    lines += ["", _class_heading(), "|---" * 8 + "|"]
    for kind in [kind for kind in MIXES[setting.mix] if kind in tallies[OURS]]:
        one, other = tallies[REFERENCE][kind], tallies[OURS][kind]
        cells = [f"{one.items / one.feeds / setting.days:.2f}"]
        cells += [f"{tally.polls / tally.feeds / setting.days:.1f}" for tally in (one, other)]
        cells += [f"{tally.percentile(50) / 60:.1f} / {tally.percentile(95) / 60:.0f}" for tally in (one, other)]
        cells += [f"{100 * tally.missed / max(tally.items, 1):.2f} %" for tally in (one, other)]
        lines.append(f"| {kind} | {' | '.join(cells)} |".replace("nan", "–"))
    return "\n".join(lines)


def _class_heading() -> str:
    both = (f"{what}, {whose}" for what in ("polls/day", "median / p95", "missed") for whose in ("formula", "ours"))
    return f"| class | items/day | {' | '.join(both)} |"


def compare(setting: Setting, tallies: Tallies) -> list[Row]:
    """Return ours beside the reference, for `latest.json`."""
    one, other = total(tallies[OURS]), total(tallies[REFERENCE])
    prefix = f"simulation.{setting.mix}"
    beside = "the step formula"
    return [
        Row(
            f"{prefix}.fetches",
            polls_per_day(one, setting),
            "fetches a day",
            beside,
            polls_per_day(other, setting),
            0.5,
        ),
        Row(f"{prefix}.item_median", one.percentile(50), "s", beside, other.percentile(50), 1.0),
        Row(f"{prefix}.item_p95", one.percentile(95), "s", beside, other.percentile(95), 1.0),
        Row(f"{prefix}.feed_median", one.feed_percentile(50), "s", beside, other.feed_percentile(50), 1.0),
        Row(f"{prefix}.feed_p95", one.feed_percentile(95), "s", beside, other.feed_percentile(95), 1.0),
        Row(f"{prefix}.missed", one.missed / one.items, "of all items", beside, other.missed / other.items, 1.0),
    ]
