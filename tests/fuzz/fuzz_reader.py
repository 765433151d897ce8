"""Fuzz the reader by hand; not part of the tests. Findings go to `tests/fuzz/findings`, where the tests read them.

python -m tests.fuzz.fuzz_reader --seconds 300 [--seed 7] [FOLDER…]    # random mutations of the fixtures there
python -m tests.fuzz.fuzz_reader --atheris [libFuzzer's options]       # by coverage; needs `pip install atheris`

atheris has a wheel for Python 3.11 (3.0.0) and needs no clang; give it an environment of its own that sees this one's
packages. Without a corpus of its own it gets no further than the first rooms of the reader.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.fuzz.check import check, check_tiers
from tests.fuzz.mutate import MAX_BYTES, mutate
from tests.fuzz.seeds import SEEDS

FINDINGS = Path(__file__).parent / "findings"
SLOW_SECONDS = 2.0
"""Of CPU for at most 64 KiB: what takes longer is a finding, too."""


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


def run_atheris(arguments: list[str]) -> None:
    """Let libFuzzer look for inputs by coverage."""
    atheris: Any = import_module("atheris")

    atheris.instrument_all()
    atheris.Setup([sys.argv[0], *arguments], examine)
    atheris.Fuzz()


def main() -> None:
    """Run as told."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--atheris", action="store_true")
    parser.add_argument("folders", nargs="*", type=Path)
    known, others = parser.parse_known_args()
    if known.atheris:
        run_atheris(others)
    else:
        sys.exit(1 if run_random(known.seconds, known.seed, known.folders) else 0)


if __name__ == "__main__":
    main()
