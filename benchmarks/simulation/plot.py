"""The trade-off curves as a picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("agg")

from matplotlib import pyplot as plt

from benchmarks.simulation.run import Tally

if TYPE_CHECKING:
    from benchmarks.simulation.study import Setting

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


def plot_curves(setting: Setting, tallies: dict[str, Tally], path: Path) -> None:
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
