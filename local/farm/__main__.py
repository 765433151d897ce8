"""A farm in its own process, for benchmarks: `python -m local.farm --feeds 500 --hosts 50`.

Prints one JSON line when it is ready: `{"port", "pid", "urls", "articles"}`. It stops on SIGTERM, or when its
standard input closes: keep that open. Each line on standard input is a command, answered by one JSON line:

    publish             new articles in every feed; the next fetch of each is a 200
    freshness VALUE     honest, always_304 or always_200
    latency SECONDS
    status              requests so far, CPU seconds of this process, the most requests in flight on one host
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from types import FrameType

from local.farm import Farm, Freshness, bench_specs


def main() -> None:
    """Run a farm until standard input ends."""
    options = _parse_arguments()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    farm = Farm(
        bench_specs(options.feeds, options.hosts, options.items, options.body_bytes),
        port=options.port,
        latency_seconds=options.latency,
        freshness=options.freshness,
        edition=options.edition,
        log_size=0,
    )
    with farm:
        urls = [farm.url(spec) for spec in farm.specs]
        _print({"port": farm.port, "pid": os.getpid(), "urls": urls, "articles": len(farm.expected_articles())})
        for line in sys.stdin:
            _print(_obey(farm, line.split()))


def _obey(farm: Farm, words: list[str]) -> dict[str, object]:
    match words:
        case ["publish"]:
            return {"wave": farm.publish(), "articles": len(farm.expected_articles())}
        case ["freshness", value] if value in set(Freshness):
            farm.freshness = Freshness(value)
            return {"freshness": value}
        case ["latency", value] if value.replace(".", "", 1).isdigit():
            farm.latency_seconds = float(value)
            return {"latency": farm.latency_seconds}
        case ["status"]:
            return {
                "requests": farm.request_count(),
                "cpu_seconds": time.process_time(),
                "peak_in_flight": max(load.peak_in_flight for load in farm.host_loads().values()),
            }
        case _:
            return {"error": f"unknown command {' '.join(words)!r}"}


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.farm", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--feeds", type=int, default=100)
    parser.add_argument("--hosts", type=int, default=10)
    parser.add_argument("--items", type=int, default=20, help="articles in each feed")
    parser.add_argument("--body-bytes", type=int, default=20_000, help="length of a feed, decoded")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--port", type=int, default=0, help="0 picks one")
    parser.add_argument("--freshness", type=Freshness, choices=list(Freshness), default=Freshness.HONEST)
    parser.add_argument("--edition", default="2026", help="part of every link: another edition has other articles")
    return parser.parse_args()


def _print(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """End the process in good order, once: a second signal must not cut the first one's work short."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(0)


if __name__ == "__main__":
    main()
