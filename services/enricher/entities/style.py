"""How a text is written: where its sentences begin, and whether capital letters tell anything."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

WORD = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*")
SENTENCE_ENDS = frozenset('.!?:;…|•\n"“”„«»‘(-–—/>*')
MOST_CAPITALISED = 0.75
"""The share of words of three letters and more from which a text is in title case."""
LONGEST_TITLE = 30
"""So many words are looked at to tell it."""


@dataclass(frozen=True)
class Style:
    """A title or a body, and how it is written."""

    text: str
    language: str | None

    @cached_property
    def is_title_case(self) -> bool:
        """Most of its words begin with a capital letter: such a letter tells nothing then."""
        words = [match[0] for match in islice(WORD.finditer(self.text), LONGEST_TITLE)]
        words = [word for word in words[1:] if len(word) > 3]
        return len(words) > 2 and sum(word[0].isupper() for word in words) > MOST_CAPITALISED * len(words)

    @cached_property
    def is_upper_case(self) -> bool:
        """It shouts."""
        large = sum(map(str.isupper, self.text[:200]))
        return large > 6 and large > 2 * sum(map(str.islower, self.text[:200]))

    def begins_sentence(self, start: int) -> bool:
        """Tell if a sentence, a quotation or a line begins there."""
        before = self.text[max(start - 4, 0) : start].rstrip(" \t\u00a0'’")
        return not before or before[-1] in SENTENCE_ENDS

    def tells(self, start: int) -> bool:
        """Tell if a capital letter there means a name."""
        return not (self.language == "de" or self.is_title_case or self.is_upper_case or self.begins_sentence(start))


def without_genitive(text: str) -> str:
    """Return a name without `'s`."""
    return text[:-2] if text.endswith(("'s", "’s")) else text
