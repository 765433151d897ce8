"""`python -m benchmarks [names …] [--quick]`: runs the subjects, prints ratios, writes `out/latest.json`.

`python -m benchmarks simulation` is a program of its own, with options of its own: it needs none of the servers.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.bench import Bench, open_bench
from benchmarks.laps import BenchError
from benchmarks.rows import Row, make_table, write_json
from benchmarks.subjects import claims, enrich, fetcher, ledger, loop, memory, pending, pipeline, reader, sizing, writer
from local.terminal import Interrupted, interrupt_on_sigterm, run_interruptible
from shared.errors import FeedmillError

SUBJECTS: dict[str, Callable[[Bench], Awaitable[list[Row]]]] = {
    "pipeline": pipeline.run,
    "fetcher": fetcher.run,
    "memory": memory.run,
    "writer": writer.run,
    "reader": reader.run,
    "loop": loop.run,
    "claims": claims.run,
    "ledger": ledger.run,
    "pending": pending.run,
    "enrich": enrich.run,
    "sizing": sizing.run,
}

OUT = Path(__file__).parent / "out" / "latest.json"
EXIT_INTERRUPTED = 130


def main() -> int:
    """Run the command; return its exit code."""
    if sys.argv[1:2] == ["simulation"]:
        from benchmarks.simulation.__main__ import main as simulate

        return simulate(sys.argv[2:])
    options = _parse_arguments()
    console = Console(width=None if sys.stdout.isatty() else 110)
    interrupt_on_sigterm()
    try:
        rows = _run(options.names or list(SUBJECTS), console, quick=options.quick)
    except (Interrupted, KeyboardInterrupt):
        console.print("interrupted; everything was stopped, nothing written")
        return EXIT_INTERRUPTED
    except (BenchError, FeedmillError) as error:
        console.print(f"[bold red]the benchmark failed:[/] {error}", soft_wrap=True)
        return 1
    write_json(rows, OUT)
    console.print(f"{len(rows)} rows in {OUT}")
    return 0


def _run(names: Sequence[str], console: Console, *, quick: bool) -> list[Row]:
    console.print("starting RabbitMQ and PostgreSQL ...")
    rows: list[Row] = []
    with open_bench(quick=quick) as bench:
        for name in names:
            start = time.monotonic()
            found = run_interruptible(_await(SUBJECTS[name](bench)))
            rows += found
            console.print(make_table(name, found, f"{name} ({time.monotonic() - start:.0f} s)"))
    return rows


async def _await(rows: Awaitable[list[Row]]) -> list[Row]:
    return await rows


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures Feedmill beside something simpler, on loopback, with throw-away servers.",
    )
    names = f"{', '.join(SUBJECTS)}; or simulation, which has options of its own"
    parser.add_argument("names", nargs="*", metavar="name", choices=[[], *SUBJECTS], help=names)
    parser.add_argument("--quick", action="store_true", help="fewer feeds and rounds: two minutes in all, more noise")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
