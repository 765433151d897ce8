"""The demo's output: its progress, and the summary at the end."""

from __future__ import annotations

import asyncio
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from local.demo.demo import WAVES, Demo
from local.demo.snapshot import Snapshot
from local.farm.count import Count

NEXT_STEPS = """
Go on with real feeds:
  .feedmill/venv/bin/feedmill up              all services, private servers, data kept (Ctrl-C stops); prints the
                                              dashboard's address
  .feedmill/venv/bin/feedmill feeds add URL   in another terminal
  .feedmill/venv/bin/feedmill status          queues, feeds, articles
"""

PLAIN_EVERY_SECONDS = 2.0
"""The interval between lines of progress if the output is no terminal."""


async def run_with_progress(demo: Demo, console: Console) -> Count:
    """Run the demo and show its progress until it ends."""
    running = asyncio.create_task(demo.run())
    try:
        if console.is_terminal:
            with Live(console=console, refresh_per_second=4, transient=True) as live:
                while not running.done():
                    live.update(_progress_table(demo.snapshot))
                    await asyncio.wait({running}, timeout=0.25)
        else:
            while not running.done():
                await asyncio.wait({running}, timeout=PLAIN_EVERY_SECONDS)
                console.print(progress_line(demo.snapshot), soft_wrap=True)
        return await running
    finally:
        running.cancel()
        await asyncio.wait({running})


def progress_line(snapshot: Snapshot) -> str:
    """Return the progress in one line."""
    depths = " ".join(f"{name}={ready}" for name, ready in snapshot.queues.items())
    return (
        f"{snapshot.elapsed:5.1f} s · wave {snapshot.wave}/{WAVES} · {snapshot.fetches} fetches"
        f" ({_per_second(snapshot):.0f}/s) · articles {snapshot.articles}/{snapshot.expected} · {depths}"
    )


def _progress_table(snapshot: Snapshot) -> Table:
    table = Table(title=f"feedmill demo · {snapshot.elapsed:.1f} s · wave {snapshot.wave} of {WAVES}", min_width=50)
    table.add_column("queue")
    table.add_column("ready", justify="right")
    for name, ready in snapshot.queues.items():
        table.add_row(name, str(ready))
    table.add_section()
    table.add_row("fetches", f"{snapshot.fetches} ({_per_second(snapshot):.0f}/s)")
    table.add_row("articles", f"{snapshot.articles} of {snapshot.expected}")
    return table


def _per_second(snapshot: Snapshot) -> float:
    return snapshot.fetches / snapshot.elapsed if snapshot.elapsed else 0.0


def print_summary(result: Count, console: Console, logs: Path) -> None:
    """Print the table by kind of feed, and whether every article arrived exactly once."""
    table = Table(title=f"{result.feeds} feeds on {result.hosts} hosts, {result.elapsed_seconds} s")
    table.add_column("kind")
    for column in ("feeds", "expected", "delivered", "attempts"):
        table.add_column(column, justify="right")
    table.add_column("outcomes")
    for kind in result.kinds:
        outcomes = ", ".join(f"{number} {outcome}" for outcome, number in kind.outcomes.items())
        numbers = (kind.feeds, kind.expected, kind.delivered, kind.attempts)
        table.add_row(kind.kind, *map(str, numbers), outcomes)
    console.print(table)
    if result.unexpected:
        console.print(f"{result.unexpected} articles in the table that no feed published", style="red")
    console.print(summary_line(result), style="bold green" if result.perfect else "bold red", highlight=False)
    if not result.perfect:
        console.print(f"the services' logs are in {logs}")


def summary_line(result: Count) -> str:
    """Return the line that says whether every article arrived exactly once."""
    return (
        f"expected {result.expected} · delivered {result.delivered}"
        f" · lost {result.lost} · duplicated {result.duplicated}"
    )
