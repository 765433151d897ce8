"""Pure: an article's sketch as it is compared and found."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from shared.wire.enrichment import Sketch, filter_bits

COUNTED_KEYS = 48
HEAD_KEYS = 6
OTHER_KEYS = 2
"""An article is indexed by the smallest hashes of its first 48 shingles, and the smallest of all others.
Measured: these lose 0.3 % of the duplicates, half as many more 0.2 %."""

WANTED_BELOW = 1 << 30
MOST_WANTED = 10
"""It looks for articles that have one of its small hashes: where the other one begins and ends is not known."""

WHOLE = 0xFFFFFFFF
"""The `bound` of a text all of whose hashes are known."""


@dataclass(frozen=True)
class Sketched:
    """An article as it is compared."""

    feed_id: int
    host: int
    """A digest of its address' host."""
    sketch: Sketch

    @cached_property
    def head(self) -> tuple[int, ...]:
        """The hashes of the first shingles."""
        return _unpack(self.sketch.head)

    @cached_property
    def rest(self) -> tuple[int, ...]:
        """The smallest hashes of the others, ascending."""
        return _unpack(self.sketch.rest)

    @cached_property
    def hashes(self) -> frozenset[int]:
        """All hashes that are known."""
        return frozenset(self.head + self.rest)

    def count_shared(self, other: Sketched) -> int:
        """Return how many hashes both have. Of the other one no set is made: mostly nothing more is asked of it."""
        return len(self.hashes.intersection((*_unpack(other.sketch.head), *_unpack(other.sketch.rest))))

    @cached_property
    def bound(self) -> int:
        """All of the text's hashes up to this one are known."""
        is_whole = len(self.head) + len(self.rest) >= self.sketch.count
        return WHOLE if is_whole or not self.rest else self.rest[-1]

    @cached_property
    def numbers(self) -> dict[int, set[int]]:
        """The numbers between each two words."""
        return _slots(self.sketch.numbers)

    @cached_property
    def all_numbers(self) -> set[int]:
        """The numbers, wherever they stand."""
        return set().union(*self.numbers.values())

    @cached_property
    def names(self) -> dict[int, set[int]]:
        """The names between each two words."""
        return _slots(self.sketch.names)

    @cached_property
    def all_names(self) -> set[int]:
        """The names, wherever they stand."""
        return set().union(*self.names.values())

    @cached_property
    def words(self) -> int:
        """The filter of the words of title and text."""
        return int.from_bytes(self.sketch.words, "little")

    @cached_property
    def told(self) -> tuple[int, ...]:
        """Of each of the title's words that the text begins with: its bits in the filter."""
        packed = self.sketch.told
        digests = struct.iter_unpack("<H", packed[: len(packed) // 2 * 2])
        return tuple(sum({1 << bit for bit in filter_bits(digest)}) for (digest,) in digests)

    @cached_property
    def held(self) -> tuple[int, ...]:
        """The hashes by which it is found, as signed integers."""
        first = sorted(self.head[:COUNTED_KEYS])[:HEAD_KEYS]
        others = sorted(self.head[COUNTED_KEYS:] + self.rest[:OTHER_KEYS])[:OTHER_KEYS]
        return _signed((*first, *others, *self._title_key()))

    @cached_property
    def wanted(self) -> tuple[int, ...]:
        """The hashes of which a like article may have one: `held`, and more."""
        small = [key for key in self.head if key < WANTED_BELOW][:MOST_WANTED]
        return tuple({*self.held, *_signed(small)})

    def _title_key(self) -> Sequence[int]:
        return [hash_title(self.sketch.title)] if self.sketch.is_telling else ()


def hash_title(title: bytes) -> int:
    """Return a digest of a title in 32 bits."""
    digest = 0
    for word in _unpack(title):
        digest = (digest * 0x01000193 ^ word) & 0xFFFFFFFF
    return digest


def _signed(keys: Sequence[int]) -> tuple[int, ...]:
    packed = struct.Struct(f"<{len(keys)}I").pack(*keys)
    return struct.unpack(f"<{len(keys)}i", packed)


def _slots(packed: bytes) -> dict[int, set[int]]:
    slots: dict[int, set[int]] = {}
    for slot in _unpack(packed):
        slots.setdefault(slot & 0x3FFFF, set()).add(slot >> 18)
    return slots


def _unpack(packed: bytes) -> tuple[int, ...]:
    """Return the numbers; a byte too many is left out."""
    count = len(packed) // 4
    return struct.unpack(f"<{count}I", packed[: count * 4])
