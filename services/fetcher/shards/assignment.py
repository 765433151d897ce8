"""Pure: which fetcher is to own which shards. Each fetcher computes the same assignment from everybody's heartbeats."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, fields

MISSED_BEATS = 3
"""A fetcher is silent after so many beats without a heartbeat. Counted in our own beats: a pause of this process makes
no other fetcher silent."""

RETURN_BEATS = 5
"""After a lost session another fetcher may be silent for so many beats more: it may have to reconnect, too."""

NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Heartbeat:
    """What a fetcher publishes about itself."""

    fetcher: str
    owned: frozenset[str] = NOTHING
    """The shards that it owns, or of which it still runs jobs after its connection was lost."""
    leaving: bool = False
    """It gives up its shards and wants no others."""
    is_new: bool = False
    """It asks all others for a heartbeat at once."""
    shards: int = 0
    """How many shards its settings say there are."""

    def encode(self) -> bytes:
        """Return the message body."""
        return json.dumps({**asdict(self), "owned": sorted(self.owned)}).encode()


def decode_heartbeat(body: bytes) -> Heartbeat | None:
    """Return a heartbeat without the fields of later versions; None if the body is not one."""
    try:
        data = json.loads(body)
        known = {field.name: data[field.name] for field in fields(Heartbeat) if field.name in data}
        return Heartbeat(**{**known, "owned": frozenset(data["owned"])})
    except (ValueError, TypeError, KeyError):
        return None


class Peers:
    """The other fetchers: their last heartbeats, and which of them are silent. Used on one event loop.

    A silent fetcher may only be busy. Whether it is gone, the broker knows: its queue ends with its connection.

    Args:
        name: our own.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._others: dict[str, Heartbeat] = {}
        self._missed: dict[str, int] = {}
        self.is_asked = False
        """A new fetcher has asked for our heartbeat."""

    def __len__(self) -> int:
        return len(self._others)

    def others(self) -> Collection[Heartbeat]:
        """Return the last heartbeat of each."""
        return self._others.values()

    def knows(self, name: str) -> bool:
        """Return whether this fetcher was heard and is not gone."""
        return name in self._others

    def expect_back(self) -> None:
        """Begin a new session. Others may have lost theirs, too: their last heartbeats stand until they are back.

        Fetchers that were leaving do not come back.
        """
        self._others = {name: heartbeat for name, heartbeat in self._others.items() if not heartbeat.leaving}
        self._missed = dict.fromkeys(self._others, -RETURN_BEATS)

    def note(self, heartbeat: Heartbeat) -> bool:
        """Take a heartbeat into account; return whether it changes anything."""
        if heartbeat.fetcher == self._name:
            return False
        known = self._others.get(heartbeat.fetcher)
        self._others[heartbeat.fetcher] = heartbeat
        self._missed[heartbeat.fetcher] = 0
        self.is_asked |= heartbeat.is_new or known is None
        return heartbeat != known

    def count_beat(self) -> list[str]:
        """Count one of our beats; return the fetchers that are silent."""
        for name in self._missed:
            self._missed[name] += 1
        return [name for name in self._others if self.is_silent(name)]

    def is_silent(self, name: str) -> bool:
        """Return whether this fetcher has missed too many beats."""
        return self._missed.get(name, 0) > MISSED_BEATS

    def excuse(self, name: str) -> None:
        """Count the beats of a silent fetcher anew: its session stands."""
        self._missed[name] = 0

    def forget(self, name: str) -> Heartbeat:
        """Drop a fetcher that is gone; return its last heartbeat."""
        del self._missed[name]
        return self._others.pop(name)


@dataclass(frozen=True)
class Steps:
    """What one fetcher has to do next."""

    release: frozenset[str]
    take: frozenset[str]


def assign_shards(owned: Mapping[str, Collection[str]], shards: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return the shards that each fetcher is to own: each shard once, in shares that differ by one at most.

    A fetcher keeps its shards as far as its share allows. The larger shares go to the fetchers that own most.
    """
    order = sorted(owned, key=lambda name: (-len(set(owned[name]) & set(shards)), name))
    if not order:
        return {}
    each, over = divmod(len(shards), len(order))
    quotas = {name: each + (place < over) for place, name in enumerate(order)}
    free = list(shards)
    assigned: dict[str, list[str]] = {}
    for name in order:
        assigned[name] = [shard for shard in free if shard in owned[name]][: quotas[name]]
        free = [shard for shard in free if shard not in assigned[name]]
    for name in order:
        missing = quotas[name] - len(assigned[name])
        assigned[name] += free[:missing]
        free = free[missing:]
    return {name: frozenset(mine) for name, mine in assigned.items()}


def next_steps(
    me: str,
    owned: AbstractSet[str],
    others: Collection[Heartbeat],
    shards: Sequence[str],
    busy: AbstractSet[str] = NOTHING,
) -> Steps:
    """Return what `me` has to release, and what it may take: its assigned shards that nobody else owns.

    `busy`: shards of which it runs jobs. The assignment counts them as owned.
    """
    staying = {heartbeat.fetcher: heartbeat.owned for heartbeat in others if not heartbeat.leaving}
    mine = assign_shards({**staying, me: owned | busy}, shards)[me]
    elsewhere = NOTHING.union(*(heartbeat.owned for heartbeat in others))
    return Steps(release=frozenset(owned - mine), take=frozenset(mine - owned - elsewhere))
