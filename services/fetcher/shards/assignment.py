"""Pure: which fetcher is to own which shards. Every fetcher works it out by itself, from what all of them say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Heartbeat:
    """What a fetcher says of itself."""

    fetcher: str
    owned: frozenset[str] = NOTHING
    """What it has, or still runs something of (that it had before its connection was lost)."""
    leaving: bool = False
    """It wants no shards any more, and gives back those that it has."""
    is_new: bool = False
    """It asks all others to say heartbeat at once."""
    shards: int = 0
    """How many there are in all, as it was told."""


@dataclass(frozen=True)
class Steps:
    """What one fetcher has to do next."""

    release: frozenset[str]
    take: frozenset[str]


def assign_shards(owned: Mapping[str, Collection[str]], shards: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return the shards that each fetcher is to have: each shard once, in shares that differ by one at most.

    Who owns a shard keeps it as long as the shares allow, and the larger shares go to those who own most.
    """
    order = sorted(owned, key=lambda name: (-len(set(owned[name]) & set(shards)), name))
    if not order:
        return {}
    each, over = divmod(len(shards), len(order))
    quotas = {name: each + (place < over) for place, name in enumerate(order)}
    free = list(shards)
    dealt: dict[str, list[str]] = {}
    for name in order:
        dealt[name] = [shard for shard in free if shard in owned[name]][: quotas[name]]
        free = [shard for shard in free if shard not in dealt[name]]
    for name in order:
        missing = quotas[name] - len(dealt[name])
        dealt[name] += free[:missing]
        free = free[missing:]
    return {name: frozenset(mine) for name, mine in dealt.items()}


def next_steps(
    me: str,
    owned: AbstractSet[str],
    others: Collection[Heartbeat],
    shards: Sequence[str],
    busy: AbstractSet[str] = NOTHING,
) -> Steps:
    """Return what `me` has to give up, and what it may take: what is to be its own and nobody else's at the moment.

    `busy`: what it runs something of, whether it owns that or not; the assign_shards takes it for owned.
    """
    staying = {heartbeat.fetcher: heartbeat.owned for heartbeat in others if not heartbeat.leaving}
    mine = assign_shards({**staying, me: owned | busy}, shards)[me]
    elsewhere = NOTHING.union(*(heartbeat.owned for heartbeat in others))
    return Steps(release=frozenset(owned - mine), take=frozenset(mine - owned - elsewhere))
