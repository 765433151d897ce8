"""Good feeds mutated by byte and by structure, and the findings of fuzzing by hand."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.check import check, check_tiers
from tests.fuzz.mutate import mutate
from tests.fuzz.seeds import SEEDS

FINDINGS = sorted((Path(__file__).parents[3] / "fuzz" / "findings").glob("*.bin"))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_seeds_are_good_feeds(seed: bytes) -> None:
    parsed = check(seed)
    assert parsed is not None
    assert parsed.entries


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.stem)
def test_a_finding_stays_fixed(path: Path) -> None:
    check(path.read_bytes())
    check_tiers(path.read_bytes())


@given(st.sampled_from(SEEDS), st.sampled_from(SEEDS), st.integers(0, 2**32))
def test_a_mutated_feed_is_read_or_refused_and_by_both_tiers_alike(seed: bytes, other: bytes, number: int) -> None:
    body = mutate(seed, random.Random(number), other)
    check(body)
    check_tiers(body)


@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4)), min_size=1, max_size=6))
def test_a_feed_with_wrong_bytes_in_it_is_read_or_refused(seed: bytes, wrong: list[tuple[float, bytes]]) -> None:
    for place, piece in wrong:
        at = int(place * len(seed))
        seed = seed[:at] + piece + seed[at + len(piece) :]
    check(seed)
    check_tiers(seed)
