"""Fuzz the reader by hand; not part of the tests. Findings go to `tests/fuzz/findings`, where the tests read them.

python -m tests.fuzz.fuzz_reader --seconds 300 [--seed 7] [FOLDER…]    # random mutations of the fixtures there
python -m tests.fuzz.fuzz_reader --runs [--seconds 300] [--seed 7]         # long runs of one thing (`runs`), for time
python -m tests.fuzz.fuzz_reader --atheris [libFuzzer's options]       # by coverage; needs `pip install atheris`

atheris has a wheel for Python 3.11 (3.0.0) and needs no clang; give it an environment of its own that sees this one's
packages. Without a corpus of its own it gets no further than the first rooms of the reader.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from services.fetcher.parse import ParseError, parse_feed
from tests.fuzz.check import NOW, URL, check, check_tiers
from tests.fuzz.mutate import MAX_BYTES, mutate
from tests.fuzz.runs import choose, fill
from tests.fuzz.seeds import SEEDS

FINDINGS = Path(__file__).parent / "findings"
SLOW_SECONDS = 2.0
"""A body of 64 KiB or less that takes more CPU time than this is a finding, too."""

RUN_CHARS = 2_000_000
FINDING_BYTES = 20_000
RUN_SECONDS = 3.0
"""The deadline of a run; it may take `SLOW_SECONDS` more."""
RUN_BYTES = 250_000_000
RUN_GROWTH = 60
"""The memory in lengths of the body. A body that takes more than this and `RUN_BYTES` is a finding."""
MAX_CHILD_BYTES = 4 * 1024**3


def examine(body: bytes) -> None:
    """Fail if `body` is a finding."""
    started = time.thread_time()
    check(body)
    check_tiers(body)
    spent = time.thread_time() - started
    assert spent < SLOW_SECONDS, f"{spent:.1f} s for {len(body)} bytes"


def run_random(seconds: float, seed: int, folders: list[Path]) -> int:
    """Mutate fixtures for so long; return the number of findings, each written to a file."""
    chance = random.Random(seed)
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in {".xml", ".json"}]
    seeds = [*SEEDS, *(path.read_bytes()[:MAX_BYTES] for path in files)]
    end, count, findings = time.monotonic() + seconds, 0, dict[str, bytes]()
    while time.monotonic() < end:
        body = mutate(chance.choice(seeds), chance, chance.choice(seeds))
        count += 1
        try:
            examine(body)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what we are looking for
            where = error.__traceback__
            while where and where.tb_next:
                where = where.tb_next
            place = f"{type(error).__name__} {where.tb_frame.f_code.co_filename}:{where.tb_lineno}" if where else "?"
            if place not in findings:
                findings[place] = body
                name = hashlib.sha256(body).hexdigest()[:12]
                FINDINGS.mkdir(exist_ok=True)
                (FINDINGS / f"{name}.bin").write_bytes(body)
                print(f"{name}.bin: {place}: {error}"[:500], flush=True)
    print(f"{count} bodies, {len(findings)} findings, seed {seed}")
    return len(findings)


def run_runs(seconds: float, seed: int) -> int:
    """Read long runs for so long, each in a process of its own; return how many took too much time or memory."""
    chance = random.Random(seed)
    end, count, findings = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        place, unit = choose(chance)
        body = fill(place, unit, RUN_CHARS)
        spent, grown, ending = measure(body)
        count += 1
        is_large = grown > max(RUN_BYTES, RUN_GROWTH * len(body))
        if spent > RUN_SECONDS + SLOW_SECONDS or is_large or ending.startswith("!"):
            findings += 1
            name = hashlib.sha256(f"{place} {unit}".encode()).hexdigest()[:12]
            FINDINGS.mkdir(exist_ok=True)
            (FINDINGS / f"{name}.bin").write_bytes(fill(place, unit, FINDING_BYTES))
            print(f"{name}.bin: {unit!r} in {place!r}: {spent:.1f} s, {grown / 1e6:.0f} MB, {ending}", flush=True)
    print(f"{count} runs, {findings} findings, seed {seed}")
    return findings


def measure(body: bytes) -> tuple[float, int, str]:
    """Return the CPU seconds and the bytes of memory that reading `body` took in a process of its own, and its end.

    One that neither ends itself nor is ended by its deadline is killed.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (int(RUN_SECONDS + 4 * SLOW_SECONDS),) * 2)
        resource.setrlimit(resource.RLIMIT_AS, (MAX_CHILD_BYTES,) * 2)
        os.write(writing, json.dumps(_measure(body)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    spent, grown, ending = json.loads(told) if told else (RUN_SECONDS + 4 * SLOW_SECONDS, 0, "! killed")
    return spent, grown, ending


def _measure(body: bytes) -> tuple[float, int, str]:
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.thread_time()
    try:
        tier = parse_feed(
            body,
            url=URL,
            content_type=None,
            now=NOW,
            keep_html=True,
            deadline=lambda: time.thread_time() > started + RUN_SECONDS,
        ).tier
    except ParseError as error:
        tier = str(error)[:100]
    except BaseException as error:  # noqa: BLE001 - as above
        tier = f"! {type(error).__name__} {error}"[:200]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return time.thread_time() - started, grown * 1024, tier


def run_atheris(arguments: list[str]) -> None:
    """Let libFuzzer look for inputs by coverage."""
    atheris: Any = import_module("atheris")

    atheris.instrument_all()
    atheris.Setup([sys.argv[0], *arguments], examine)
    atheris.Fuzz()


def main() -> None:
    """Run the fuzzer that the options choose."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--atheris", action="store_true")
    parser.add_argument("--runs", action="store_true")
    parser.add_argument("folders", nargs="*", type=Path)
    known, others = parser.parse_known_args()
    if known.atheris:
        run_atheris(others)
    elif known.runs:
        sys.exit(1 if run_runs(known.seconds, known.seed) else 0)
    else:
        sys.exit(1 if run_random(known.seconds, known.seed, known.folders) else 0)


if __name__ == "__main__":
    main()
