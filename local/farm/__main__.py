"""A farm in its own process, for benchmarks: `python -m local.farm --feeds 500 --hosts 50`.

Prints one JSON line when it is ready: `{"port", "pid", "urls", "articles"}`. It stops on SIGTERM, or when its
standard input closes: keep that open. Each line on standard input is a command, answered by one JSON line:

    publish             new articles in every feed; the next fetch of each is a 200
    latency SECONDS
    status              CPU seconds of this process
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from types import FrameType

from local.farm import Farm, bench_specs


def main() -> None:
    """Run a farm until standard input ends."""
    options = _parse_arguments()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    farm = Farm(
        bench_specs(options.feeds, options.hosts, options.items, options.body_bytes),
        edition=options.edition,
    )
    with farm:
        urls = [farm.url(spec) for spec in farm.specs]
        _print({"port": farm.port, "pid": os.getpid(), "urls": urls, "articles": len(farm.expected_articles())})
        for line in sys.stdin:
            _print(_run_command(farm, line.split()))


def _run_command(farm: Farm, words: list[str]) -> dict[str, object]:
    match words:
        case ["publish"]:
            return {"wave": farm.publish(), "articles": len(farm.expected_articles())}
        case ["latency", value] if value.replace(".", "", 1).isdigit():
            farm.latency_seconds = float(value)
            return {"latency": farm.latency_seconds}
        case ["status"]:
            return {"cpu_seconds": time.process_time()}
        case _:
            return {"error": f"unknown command {' '.join(words)!r}"}


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.farm", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--feeds", type=int, default=100)
    parser.add_argument("--hosts", type=int, default=10)
    parser.add_argument("--items", type=int, default=20, help="articles in each feed")
    parser.add_argument("--body-bytes", type=int, default=20_000, help="length of a feed, decoded")
    parser.add_argument("--edition", default="2026", help="part of every link: another edition has other articles")
    return parser.parse_args()


def _print(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """End the process once: a second signal must not interrupt the clean-up of the first."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(0)


if __name__ == "__main__":
    main()
