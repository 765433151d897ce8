"""The shards of the fetcher's work: their numbers, and the names of their queues."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

SHARDS: Final = 12
"""The default number of shards, and so the most fetchers that have work; 1, 2, 3, 4, 6 and 12 share it evenly."""

MOST_SHARDS: Final = 100
"""Shard numbers have two digits."""

FRONT: Final = ".front"


@lru_cache(maxsize=10_000)
def shard_of(group: str, shards: int) -> int:
    """Return the number of the shard that a politeness group belongs to: the same in every process and version."""
    return int.from_bytes(hashlib.md5(group.encode(), usedforsecurity=False).digest()[:8]) % shards


def shard_name(number: int) -> str:
    """Return the name of a shard's queue."""
    return f"fetcher.{number:02d}"


_SHARD_NAMES = frozenset(map(shard_name, range(MOST_SHARDS)))


def is_shard(queue: str) -> bool:
    """Return whether a queue is a shard, whatever the number of shards."""
    return queue in _SHARD_NAMES


def in_ranges(queues: Iterable[str]) -> str:
    """Return the names of queues for a log line, consecutive shards as a range: `fetcher.00-05, fetcher.09, writer`."""
    ranges: list[tuple[str, str]] = []
    for queue in sorted(queues):
        number = int(ranges[-1][1][-2:]) + 1 if ranges and is_shard(ranges[-1][1]) else 0
        if number and queue == shard_name(number):
            ranges[-1] = (ranges[-1][0], queue)
        else:
            ranges.append((queue, queue))
    return ", ".join(first if first == last else f"{first}-{last[-2:]}" for first, last in ranges)


def front_of(shard: str) -> str:
    """Return the name of the queue whose jobs go before those of a shard."""
    return shard + FRONT


def lock_of(shard: str) -> str:
    """Return the name of the lock whose holder alone may take jobs from a shard (`shared.broker.port.Session.lock`)."""
    return f"{shard}.owner"


def is_front(queue: str) -> bool:
    """Return whether a queue is the front queue of a shard, whatever the number of shards."""
    return queue.endswith(FRONT) and is_shard(queue.removesuffix(FRONT))
