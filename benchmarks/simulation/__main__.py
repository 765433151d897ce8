"""`python -m benchmarks simulation`: needs none of the servers, and a few minutes (`--quick`: seconds)."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.rows import Row, make_table, write_json
from benchmarks.simulation.feeds import MIXES
from benchmarks.simulation.study import POLICIES, Setting, compare, simulate, write_tables

OUT = Path(__file__).parents[1] / "out"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the simulation and print its tables; return the exit code."""
    options = _parse_arguments(arguments)
    console = Console(width=None if sys.stdout.isatty() else 180)
    setting = _make_setting(options)
    shown = f"{setting.feeds:,} feeds of the mix {setting.mix}, one in {setting.every} simulated, seed {setting.seed}"
    console.print(f"{shown}; {setting.warmup_days:g} days of warm-up, then {setting.days:g} that count; minutes")
    start = time.monotonic()
    tallies = simulate(setting, POLICIES)
    print(write_tables(setting, tallies))
    rows: list[Row] = compare(setting, tallies)
    console.print(make_table("simulation", rows, f"simulation ({time.monotonic() - start:.0f} s)"))
    write_json(rows, OUT / "simulation.json")
    if options.plot:
        from benchmarks.simulation.plot import draw_curves  # matplotlib is slow to import

        draw_curves(replace(setting, every=5 * setting.every, days=min(setting.days, 14.0)), options.plot)
        console.print(f"curves in {options.plot} ({time.monotonic() - start:.0f} s)")
    return 0


def _make_setting(options: argparse.Namespace) -> Setting:
    setting = Setting(
        feeds=options.feeds,
        every=options.every,
        days=options.days,
        seed=options.seed,
        mix=options.mix,
        shift_hours=options.shift_hours,
    )
    return replace(setting, every=options.every * 15, days=7.0, warmup_days=7.0) if options.quick else setting


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks simulation",
        description="Simulates a month of feeds under several ways of choosing when to look again. No network.",
    )
    parser.add_argument("--feeds", type=int, default=Setting.feeds, help="what the figures are for (%(default)s)")
    parser.add_argument(
        "--every", type=int, default=Setting.every, help="simulate one feed of so many; 1 is all (%(default)s)"
    )
    parser.add_argument("--days", type=float, default=Setting.days, help="days that count (%(default)s)")
    parser.add_argument("--seed", type=int, default=Setting.seed, help="other feeds of the same kinds (%(default)s)")
    parser.add_argument("--mix", choices=list(MIXES), default=Setting.mix, help="which kinds of feeds (%(default)s)")
    parser.add_argument("--shift-hours", type=float, default=0.0, help="move all time zones (%(default)s)")
    parser.add_argument("--plot", type=Path, help="draw the trade-off curves too, into this PNG (as long again)")
    parser.add_argument("--quick", action="store_true", help="few feeds, for a week: seconds, and much noise")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
