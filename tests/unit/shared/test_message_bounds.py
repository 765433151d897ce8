"""A hostile publisher can't fill the memory: a body is bounded before it is parsed."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared.errors import DecodeError, MessageTooLarge
from shared.wire.envelope import Message, has_more_values, unpack, unpack_beginning
from shared.wire.results import FeedFetched
from tests.factories import make_entry, make_job, make_result

MEGABYTE = 1024 * 1024

ENTRY = make_entry(1, title="", body="").model_dump_json()

# A repeated unit, its place in the message, and two numbers of repetitions: far beyond the bounds, and within them.
HOSTILE = {
    "empty entries": ('"entries":[%s{}]', "{},", (3_000_000, 740_000)),
    "entries": ('"entries":[%s' + ENTRY + "]", f"{ENTRY},", (200_000, 60_000)),
    "numbers": ('"entries":[%s0]', "0,", (5_000_000, 1_490_000)),
    "categories": ('"entries":[' + ENTRY.replace("[]", '["a",%s0]', 1) + "]", "0,", (5_000_000, 1_490_000)),
    "lists": ('"source_config":{"a":[%s0]}', "[],", (3_000_000, 740_000)),
    "depth": ('"source_config":%s', "[", (5_000_000, 1_490_000)),
    "members": ('%s"a":0', '"{n:07d}":0,', (2_000_000, 1_490_000)),
    "unclosed": ('"a":"%s', "x", (64_000_000, 30_000_000)),
    "quotes": ('"a":%s', '"', (64_000_000, 30_000_000)),
    "digits": ('"feed_id":%s', "9", (64_000_000, 30_000_000)),
    "text": ('"url":"%s"', "\\u0041", (20_000_000, 10_000_000)),
}

PROGRAM = r"""
import re, sys, time
from pathlib import Path
from shared.errors import DecodeError, MessageTooLarge
from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched

def megabytes():
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024

before = megabytes()
for path in Path(sys.argv[1]).iterdir():
    for kind in (FetchFeed, FeedFetched):
        start = time.process_time()
        try:
            kind.decode(path.read_bytes(), "gzip")
            how = "decoded"
        except (DecodeError, MessageTooLarge) as error:
            assert len(str(error)) < 500, str(error)[:1000]
            how = type(error).__name__
        print(path.name, kind.KIND, how, megabytes() - before, time.process_time() - start, sep="|")
"""


def write_body(path: Path, name: str, number: int) -> None:
    """Write a body that is small and unfolds to a message with the unit so many times."""
    place, unit, _ = HOSTILE[name]
    kind: Message = make_job() if "source_config" in place else make_result()
    field = place.partition(":")[0].strip('"%s')
    head, tail = place.split("%s")
    kept = {key: value for key, value in json.loads(kind.model_dump_json()).items() if key != field}
    piece = 10_000
    with gzip.open(path, "wb", compresslevel=1) as packed:
        packed.write(f"{json.dumps(kept)[:-1]},{head}".encode())
        same = (unit * piece).encode()
        for first in range(0, number, piece):
            packed.write(
                "".join(unit.format(n=n) for n in range(first, first + piece)).encode() if "{n" in unit else same
            )
        packed.write(f"{tail}}}".encode())


@pytest.mark.parametrize("within", [0, 1], ids=["beyond", "within"])
def test_no_body_takes_more_memory_than_a_service_has(tmp_path: Path, within: int) -> None:
    for name, (_, _, numbers) in HOSTILE.items():
        write_body(tmp_path / name, name, numbers[within])
    argv = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert said.returncode == 0, said.stderr
    lines = [line.split("|") for line in said.stdout.splitlines()]
    assert len(lines) == 2 * len(HOSTILE)
    decoded = {name for name, _, how, _, _ in lines if how == "decoded"}
    assert decoded == ({"entries", "members", "text"} if within else set()), said.stdout
    assert max(int(megabytes) for *_, megabytes, _ in lines) < 500, said.stdout
    assert max(float(seconds) for *_, seconds in lines) < 10, said.stdout


def test_a_body_that_is_too_large_differs_from_a_broken_one() -> None:
    packed = gzip.compress(b"x" * 1000)
    assert unpack(packed, "gzip", 1000) == unpack(b"x" * 1000, None, 1000) == b"x" * 1000
    for body, encoding in ((packed, "gzip"), (b"x" * 1000, None)):
        with pytest.raises(MessageTooLarge, match="more than 999 bytes"):
            unpack(body, encoding, 999)
    with pytest.raises(DecodeError, match="cut short"):
        unpack(packed[:-9], "gzip", 1001)
    assert unpack_beginning(packed, "gzip", 10) == (b"x" * 10, False)


@pytest.mark.parametrize(
    ("text", "values"), [("{}", 1), ('{"a,{[": "\\",,[", "b": [1, 2]}', 4), ("[[[", 3), ('["', 1), ('["\\', 1), ("", 0)]
)
def test_values_are_counted_outside_of_texts(text: str, values: int) -> None:
    plain = text.encode()
    assert not has_more_values(plain, values + 2)  # the end of the text may count as one or two
    assert values < 2 or has_more_values(plain, values - 1)


def test_values_are_counted_in_time_linear_to_the_text() -> None:
    start = time.process_time()
    for unit in (b'"', b'"a', b"\\", b'"\\', b"a", b",", b'",'):
        has_more_values(unit * (10 * MEGABYTE // len(unit)) + b"," * 100, 100)
    assert time.process_time() - start < 10


def test_a_full_result_with_commas_in_every_place_is_read() -> None:
    result = make_result(entries=tuple(make_entry(n, body="," * 2000, html="{[," * 700) for n in range(5000)))
    assert FeedFetched.decode(*result.encode()) == result
