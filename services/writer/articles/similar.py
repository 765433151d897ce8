"""Pure: whether two articles of different feeds are one story.

They are if most of the shorter text stands in the other one, word by word, wherever it was cut, and nothing speaks
against it: texts of a template (weather, quakes, results, earnings) are alike, too, but differ in numbers, dates or
names between the same words, or in what both title and text name. Where texts are missing or were written anew, a long
title that both have tells it.
"""

from __future__ import annotations

from math import comb
from typing import Literal, NamedTuple

from services.writer.articles.frames import begins_in, gaps, is_unedited
from services.writer.articles.sketched import WHOLE, Sketched

LEAST_SHINGLES = 12
"""Shorter texts tell nothing."""

LEAST_SHARED = 8
LEAST_SAMPLE = 16
"""With less hashes in common a share of a sample is chance."""

ENOUGH = 0.3
"""The share of the shorter text that has to be in the other one."""

ENOUGH_AGREEING = 0.25
"""The same if names and numbers, or titles, agree."""

ENOUGH_DISAGREEING = 0.5
"""The same if most numbers, or all names, of one are not in the other: another part of the story, or of another one."""

ENOUGH_BEHIND = 0.75
"""The same if neither text's beginning is in the other: what they share may be boilerplate or background."""

ENOUGH_ON_ONE_HOST = 0.8
"""The same for two addresses of one host: it would rather have one for one story."""

CONTRADICTING = 0.1
"""Texts under one title that share less are two stories of a series."""

OWN_BITS = 8
"""Of the filter: three words set nine. `Read more` are two."""

OWN_BITS_OF_A_SERIES = 16
"""The same where a short title stands over both."""

BY_A_NAME = 8
"""Shingles that another name of some words changes, at most."""

UNLIKELY = 0.05
"""If so much of a text is in the other one, and so many of its numbers or names hardly can be missing there by chance,
they are those of another story."""

MOST_LIKELY = 0.85
"""That a number of a text is in the other one. Even one that is all there may be cut within a number."""


class Match(NamedTuple):
    """Why two articles are one story."""

    kind: Literal["title", "text"]
    score: float
    """The share of the shorter text that is in the other one; for a title 1."""


def decide(one: Sketched, other: Sketched) -> Match | None:
    """Return why two articles are one story; None if they are not."""
    if one.feed_id == other.feed_id or one.sketch.version != other.sketch.version:
        return None
    has_title = one.sketch.title == other.sketch.title != b""
    if not has_title and one.count_shared(other) < LEAST_SHARED:
        return None  # most candidates: one hash is in both by chance
    is_telling = has_title and one.sketch.is_telling and one.host != other.host
    is_long = min(one.sketch.count, other.sketch.count) >= LEAST_SHINGLES
    share = _share(one, other) if is_long else 0.0
    if is_long and share < (CONTRADICTING if is_telling else ENOUGH_AGREEING):
        return None  # whatever names and numbers say, which takes longer to find out
    if _contradict(one.numbers, other.numbers) or _tell_others(one, other):
        return None
    if is_long:
        return _compare(one, other, share, has_title, is_telling)
    is_other = Common.of(one.all_numbers, other.all_numbers).are_others or _say_others(one, other)
    return Match("title", 1.0) if is_telling and not is_other else None


def _compare(one: Sketched, other: Sketched, share: float, has_title: bool, is_telling: bool) -> Match | None:
    """Return why two texts that are long enough, and of which so much is the same, are one story."""
    numbers, names = Common.of(one.all_numbers, other.all_numbers), Common.of(one.all_names, other.all_names)
    are_others = numbers.are_unlikely(share) or (not names.shared and names.are_unlikely(share))
    if are_others or _are_of_a_template(one, other, share):
        return None
    if has_title and not one.sketch.is_telling and _are_of_a_series(one, other):
        return None
    if share >= _needed(one, other, has_title, numbers, names):
        return Match("text", share)
    return Match("title", 1.0) if is_telling and share >= CONTRADICTING else None


class Common(NamedTuple):
    """How many numbers, or names, two texts have in common."""

    fewer: int
    """Of the text that has less."""
    shared: int

    @classmethod
    def of(cls, one: set[int], other: set[int]) -> Common:
        """Count those of two texts."""
        return cls(min(len(one), len(other)), len(one & other))

    @property
    def are_others(self) -> bool:
        """Whether most of them differ."""
        return self.fewer >= 2 and self.shared * 2 < self.fewer

    def are_unlikely(self, share: float) -> bool:
        """Whether a text of which so much is in the other one would have more of them in common."""
        if self.shared * 2 >= self.fewer:
            return False
        likely = min(share, MOST_LIKELY)
        chances = (comb(self.fewer, n) * likely**n * (1 - likely) ** (self.fewer - n) for n in range(self.shared + 1))
        return sum(chances) < UNLIKELY


def _needed(one: Sketched, other: Sketched, has_title: bool, numbers: Common, names: Common) -> float:
    """Return the share of text that these two need."""
    if one.host == other.host and not has_title:
        return ENOUGH_ON_ONE_HOST
    if not (begins_in(one, other) or begins_in(other, one)) and is_unedited(one, other):
        return ENOUGH_BEHIND
    if numbers.are_others or (names.fewer >= 2 and not names.shared):
        return ENOUGH_DISAGREEING
    fewer, shared = numbers.fewer + names.fewer, numbers.shared + names.shared
    agree = has_title or (fewer >= 3 and shared * 3 >= fewer * 2)
    return ENOUGH_AGREEING if agree else ENOUGH


def _share(one: Sketched, other: Sketched) -> float:
    """Return how much of the shorter text is in the other one, from 0 to 1.

    What both are known to have is the least. Where both are samples, these tell more.
    """
    shared = len(one.hashes & other.hashes)
    if shared < LEAST_SHARED:
        return 0.0
    least = shared / min(one.sketch.count, other.sketch.count)
    bound = min(one.bound, other.bound)
    first, second = (
        each.hashes if bound == WHOLE else {key for key in each.hashes if key <= bound} for each in (one, other)
    )
    fewer = min(len(first), len(second))
    sampled = len(first & second) / fewer if fewer >= LEAST_SAMPLE else 0.0
    return min(1.0, max(least, sampled))


def _contradict(one: dict[int, set[int]], other: dict[int, set[int]]) -> bool:
    """Whether between the same words each text has a number that the other one has not."""
    return any(one[words] - other[words] and other[words] - one[words] for words in one.keys() & other.keys())


def _tell_others(one: Sketched, other: Sketched) -> bool:
    """Whether each title names something that its own text says, and the other article does not."""
    return any(bits & ~other.words for bits in one.told) and any(bits & ~one.words for bits in other.told)


def _say_others(one: Sketched, other: Sketched, bits: int = OWN_BITS) -> bool:
    """Whether each text has some words that the other one has not."""
    own, others = (one.words & ~other.words).bit_count(), (other.words & ~one.words).bit_count()
    return min(own, others) >= bits


def _are_of_a_template(one: Sketched, other: Sketched, share: float) -> bool:
    """Whether other names stand between the same words, and little else is changed."""
    both = one.names.keys() & other.names.keys()
    unlike = sum(one.names[words].isdisjoint(other.names[words]) for words in both)
    missing = min(one.sketch.count, other.sketch.count) * (1 - share)
    return unlike * 2 >= len(both) and (unlike >= 3 or 0 < missing <= unlike * BY_A_NAME)


def _are_of_a_series(one: Sketched, other: Sketched) -> bool:
    """Whether other words fill a frame that is the same."""
    filled = gaps(one, other) & gaps(other, one)
    return bool(filled) and _say_others(one, other, OWN_BITS_OF_A_SERIES) and is_unedited(one, other)
