"""Pure: what stands around different stories, word by word the same: boilerplate, background, the frame of a series."""

from __future__ import annotations

from itertools import pairwise

from services.writer.articles.sketched import Sketched

BEGINNING = 34
"""Shingles of a text's beginning. A lead that a site wrote anew is mostly shorter."""

LEAST_BOILED = 48
"""Shingles. Shorter texts are cut before the boilerplate begins."""

FILLED = 6
"""Shingles in a row that stand within the frame of a series: four words."""

UNEDITED = 12
"""Shingles in a row that boilerplate and the frame of a series share, on average."""


def begins_in(one: Sketched, other: Sketched) -> bool:
    """Whether two fifths of a text's beginning are in the other one, as far as that is known."""
    beginning = one.head[:BEGINNING]
    known = [key in other.hashes for key in beginning if key <= other.bound or key in other.hashes]
    return one.sketch.count < LEAST_BOILED or sum(known) * 5 >= len(known) * 2


def is_unedited(one: Sketched, other: Sketched) -> bool:
    """Whether what two texts share is the same for long: who edits a story changes words everywhere."""
    for text, against in ((one, other), (other, one)):
        are_shared = [key in against.hashes for key in text.head]
        runs = sum(here and not before for before, here in pairwise([False, *are_shared]))
        if runs and sum(are_shared) >= runs * UNEDITED:
            return True
    return False


def gaps(one: Sketched, other: Sketched) -> set[tuple[int, int]]:
    """Return the shared shingles around each part of a text that the other one has not."""
    shared = [place for place, key in enumerate(one.head) if key in other.hashes]
    return {(one.head[a], one.head[b]) for a, b in pairwise(shared) if b - a > FILLED}
