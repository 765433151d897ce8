"""More kinds of edits. Half of them were written, and run, before the rule of November 2026; `LATER` after it."""

from __future__ import annotations

import re
from random import Random
from typing import Final

from benchmarks.enrichment.edits import Edit, edit_words, sentences

_NEWS = (
    "The airline said that flights would leave as planned, and that passengers should come two hours earlier.",
    "Rain is expected in the hills by night, and farmers have been asked to bring their animals down.",
)
_CLAUSE = re.compile(r",[^,.!?]{3,60}(?=[,.])")
_QUOTE = re.compile(r"[\"“][^\"”]{3,120}[\"”]")


def _live(text: str, _: Random) -> str:
    return f"14:32 – {' '.join(_NEWS)} 13:05 – {text}"


def _replace_types(text: str, random: Random) -> str:
    """Replace a sixth of the different words, each one everywhere by the same other one."""
    words = text.split()
    pool = [word for word in words if word.islower()]
    others = {word: random.choice(pool) for word in sorted(set(pool)) if len(word) > 3 and random.random() < 0.17}
    return " ".join(others.get(word, word) for word in words)


def _leave_out(text: str, random: Random, share: float = 0.35) -> str:
    first, *others = sentences(text)
    return " ".join((first, *(each for each in others if random.random() > share)))


def _put_in(text: str, random: Random) -> str:
    parts = sentences(text)
    place = random.randrange(min(len(parts), 4) + 1)
    return " ".join((*parts[:place], *_NEWS, *parts[place:]))


def _turn_lead(text: str, _: Random) -> str:
    first, *others = sentences(text)
    words = first.split()
    half = len(words) // 2
    return " ".join((*words[half:], *words[:half], *others))


def _other_endings(text: str, random: Random) -> str:
    return " ".join(
        word[:-1] + random.choice("aeosn") if len(word) > 5 and word.isalpha() and random.random() < 0.15 else word
        for word in text.split()
    )


def _captions(text: str, _: Random) -> str:
    parts = sentences(text)
    return " ".join(f"{part} (A view of the harbour / Photo)" if n % 3 == 1 else part for n, part in enumerate(parts))


def _turn(text: str, _: Random) -> str:
    parts = sentences(text)
    half = len(parts) // 2
    return " ".join((*parts[half:], *parts[:half]))


AGAIN: Final[dict[str, Edit]] = {
    "a live blog's update before": _live,
    "a sixth of the vocabulary replaced": _replace_types,
    "a third of the sentences left out": _leave_out,
    "two sentences put in": _put_in,
}
LATER: Final[dict[str, Edit]] = {
    "lead turned": _turn_lead,
    "clauses left out": lambda text, random: _CLAUSE.sub(lambda it: "" if random.random() < 0.6 else it[0], text),
    "other endings": _other_endings,
    "captions between": _captions,
    "second half first": _turn,
    "edited, shortened, prefixed": lambda text, random: (
        f"LAGOS (Agency) - {_leave_out(edit_words(text, random, 0.08), random)}"
    ),
    "update put in": lambda text, _: (
        f"Updated at 16:40 {sentences(text)[0]} {_NEWS[0]} {' '.join(sentences(text)[1:])}"
    ),
    "quotes left out": lambda text, _: _QUOTE.sub("", text),
    "every eleventh word left out": lambda text, _: " ".join(
        word for n, word in enumerate(text.split()) if n % 11 != 5 or any(c.isdigit() for c in word)
    ),
}
