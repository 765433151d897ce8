"""The trade-off curves as a picture."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

from matplotlib import pyplot as plt

from benchmarks.simulation.policies import DuplicateShare, Fixed, Ours, StepFormula
from benchmarks.simulation.run import Tally
from benchmarks.simulation.study import Make, Setting, simulate, total

CURVES: dict[str, dict[str, Make]] = {
    "fixed": {f"{minutes:g} min": partial(Fixed, minutes * 60.0) for minutes in (5, 10, 20, 40, 60, 120, 240)},
    "step formula": {f"×{factor:g}": partial(StepFormula, factor) for factor in (0.5, 1, 2, 4, 8)},
    "step formula, growing": {
        f"×{factor:g}": partial(StepFormula, factor, growing=True) for factor in (0.25, 0.5, 1, 2)
    },
    "duplicate share": {f"×{factor:g}": partial(DuplicateShare, factor) for factor in (0.125, 0.25, 0.5, 1)},
    "ours": {f"{worth:g}": partial(Ours, worth) for worth in (25, 50, 100, 200, 400, 800)},
    "ours, at least 5 min": {f"{worth:g}": partial(Ours, worth, 300.0) for worth in (50, 100, 200, 400)},
}

STYLES = {
    "fixed": ("#999999", "o"),
    "step formula": ("#d1495b", "s"),
    "step formula, growing": ("#edae49", "D"),
    "duplicate share": ("#6a4c93", "v"),
    "ours": ("#00798c", "o"),
    "ours, at least 5 min": ("#30b0c7", "^"),
}

PANELS: dict[str, Callable[[Tally], float]] = {
    "median wait of an item": lambda tally: tally.percentile(50),
    "95th percentile of items": lambda tally: tally.percentile(95),
    "mean wait in the median feed": lambda tally: tally.feed_percentile(50),
    "mean wait in the 95th percentile of feeds": lambda tally: tally.feed_percentile(95),
}


def draw_curves(setting: Setting, path: Path) -> None:
    """Simulate the curves and draw them: fetches per day against what items and feeds wait."""
    named = {f"{family}|{label}": make for family, cases in CURVES.items() for label, make in cases.items()}
    tallies = simulate(setting, named)
    _plot(setting, {name: total(by_kind) for name, by_kind in tallies.items()}, path)


def _plot(setting: Setting, tallies: dict[str, Tally], path: Path) -> None:
    """Draw a line for each family; `tallies` are named `family|label`."""
    figure, axes = plt.subplots(2, 2, figsize=(11, 8.5), sharex=True, layout="constrained")
    for axis, (title, read) in zip(axes.flat, PANELS.items(), strict=True):
        for family, (color, marker) in STYLES.items():
            labels = [name for name in tallies if name.partition("|")[0] == family]
            fetches = [tallies[name].polls / setting.days * setting.feeds / tallies[name].feeds for name in labels]
            waits = [read(tallies[name]) / 60 for name in labels]
            axis.plot(fetches, waits, color=color, marker=marker, markersize=5, label=family)
            for name, x, y in zip(labels, fetches, waits, strict=True):
                axis.annotate(
                    name.partition("|")[2], (x, y), (4, 4), textcoords="offset points", fontsize=7, color=color
                )
        axis.set(title=title, xscale="log", yscale="log", ylabel="minutes")
        axis.grid(visible=True, which="both", alpha=0.2)
    for axis in axes[1]:
        axis.set_xlabel(f"fetches a day, {setting.feeds:,} feeds")
    axes[0][0].legend(fontsize=8)
    figure.suptitle("Left and below is better. Labels: interval, factor, or poll worth (item-seconds).", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
