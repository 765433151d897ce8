"""Who is to own which shards: even shares, every shard once, and no more moves than needed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.fetcher.shards.assignment import Heartbeat, assign_shards, next_steps
from shared.broker.shards import shard_name

NAMES = st.text("abcdef", min_size=1, max_size=3)
SHARDS = st.integers(1, 40).map(lambda number: [shard_name(n) for n in range(number)])


@st.composite
def fleets(draw: st.DrawFn) -> tuple[dict[str, set[str]], list[str]]:
    """Fetchers that own shards by any history: some nobody's, none two people's, some of another number of shards."""
    shards = draw(SHARDS)
    names = draw(st.lists(NAMES, min_size=1, max_size=50, unique=True))
    owned: dict[str, set[str]] = {name: set() for name in names}
    for shard in [*shards, "fetcher.98", "fetcher.99"]:
        owner = draw(st.one_of(st.none(), st.sampled_from(names)))
        if owner is not None:
            owned[owner].add(shard)
    return owned, shards


@given(fleets())
def test_every_shard_is_dealt_once_and_shares_differ_by_one_at_most(
    fleet: tuple[dict[str, set[str]], list[str]],
) -> None:
    owned, shards = fleet
    dealt = assign_shards(owned, shards)
    assert dealt.keys() == owned.keys()
    assert sorted(shard for mine in dealt.values() for shard in mine) == sorted(shards)
    sizes = [len(mine) for mine in dealt.values()]
    assert max(sizes) - min(sizes) <= 1


@given(fleets())
def test_no_more_moves_than_the_shares_need(fleet: tuple[dict[str, set[str]], list[str]]) -> None:
    owned, shards = fleet
    dealt = assign_shards(owned, shards)
    given_up = sum(len((owned[name] & set(shards)) - dealt[name]) for name in owned)
    each, over = divmod(len(shards), len(owned))
    sizes = sorted((len(mine & set(shards)) for mine in owned.values()), reverse=True)
    assert given_up == sum(max(size - each - (place < over), 0) for place, size in enumerate(sizes))


@given(fleets())
def test_all_who_know_the_same_deal_alike_and_a_deal_that_was_done_stands(
    fleet: tuple[dict[str, set[str]], list[str]],
) -> None:
    owned, shards = fleet
    dealt = assign_shards(owned, shards)
    assert assign_shards(dict(reversed(owned.items())), shards) == dealt
    assert assign_shards(dealt, shards) == dealt


@given(fleets())
def test_nobody_takes_what_another_still_has(fleet: tuple[dict[str, set[str]], list[str]]) -> None:
    owned, shards = fleet
    heartbeats = [Heartbeat(name, frozenset(mine)) for name, mine in owned.items()]
    taken: list[str] = []
    for name, mine in owned.items():
        steps = next_steps(name, mine, [heartbeat for heartbeat in heartbeats if heartbeat.fetcher != name], shards)
        assert not steps.take & frozenset().union(*owned.values())
        assert steps.release <= mine
        taken += steps.take
    assert len(taken) == len(set(taken)), "two would take the same"


@given(fleets(), st.randoms(use_true_random=False))
def test_step_by_step_in_any_order_all_come_to_even_shares(
    fleet: tuple[dict[str, set[str]], list[str]], rng: random.Random
) -> None:
    owned, shards = fleet
    moves = 0
    for _ in range(4):
        for name in rng.sample(sorted(owned), len(owned)):
            others = [Heartbeat(other, frozenset(mine)) for other, mine in owned.items() if other != name]
            steps = next_steps(name, owned[name], others, shards)
            owned[name] = (owned[name] - steps.release) | steps.take
            moves += len(steps.take)
    assert assign_shards(owned, shards) == {name: frozenset(mine) for name, mine in owned.items()}
    assert moves <= len(shards), "a shard moved twice"


def test_who_leaves_gets_nothing_and_keeps_what_it_has_until_it_says_otherwise() -> None:
    shards = [shard_name(n) for n in range(4)]
    leaving = Heartbeat("a", frozenset(shards[:2]), leaving=True)
    assert next_steps("b", set(), [leaving], shards).take == {*shards[2:]}
    assert next_steps("b", {*shards[2:]}, [Heartbeat("a", leaving=True)], shards).take == {*shards[:2]}


@pytest.mark.parametrize(("fetchers", "idle"), [(12, 0), (13, 1), (20, 8)])
def test_of_more_fetchers_than_shards_some_stand_by(fetchers: int, idle: int) -> None:
    dealt = assign_shards({f"f{n:02d}": () for n in range(fetchers)}, [shard_name(n) for n in range(12)])
    assert sorted(len(mine) for mine in dealt.values()) == [0] * idle + [1] * 12
