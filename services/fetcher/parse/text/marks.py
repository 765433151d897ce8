"""Bounds the runs of combining marks, since the time to normalise a run grows with the square of its length.

unicodedata sorts each run by insertion: 80,000 marks in two alternating classes take seconds, 2 MB of them minutes, and
can't be interrupted. No language needs more than a few; Unicode's limit is 30 (UAX #15, Stream-Safe Text Format).
"""

from __future__ import annotations

import re
import unicodedata

MAX_MARKS = 30

_JOINER = "\u034f"
"""COMBINING GRAPHEME JOINER: invisible, and no mark is sorted past it."""

_WITHOUT_CLASS = "\u0f73\u0f75\u0f81"
"""Characters that are combining marks only after decomposition (UAX #15, section 20.1)."""

_MARK = "[" + "".join([c for c in map(chr, range(0x300, 0x20000)) if unicodedata.combining(c)]) + _WITHOUT_CLASS + "]"
# Every mark, and what stands among them above U+FFFF: listed one by one, an expression would try those in turn, which
# takes 200 ns for each character of a text.
_LIKELY = re.compile("[" + "".join([char for char in _MARK[1:-1] if char <= "\uffff"]) + "\U00010000-\U0001efff]")
_LONG_RUN = re.compile(f"(?<!{_MARK}){_MARK}{{{MAX_MARKS + 1}}}")
_RUN = re.compile(f"{_MARK}{{1,{MAX_MARKS}}}+")


def has_long_run(text: str) -> bool:
    """Return whether more than `MAX_MARKS` combining marks follow each other somewhere in `text`."""
    # A run of so many marks covers one of these characters, so most texts need a thirtieth of the work.
    if text.isascii():
        return False
    places = (MAX_MARKS * found.start() for found in _LIKELY.finditer(text[::MAX_MARKS]))
    return any(_LONG_RUN.search(text[max(at - MAX_MARKS, 0) : at + MAX_MARKS + 1]) for at in places)


def stream_safe(text: str) -> str:
    """Return `text` with a joiner after each `MAX_MARKS` marks of a run, so that it can be normalised in linear time.

    A text without such a run is returned as it is.
    """
    if not has_long_run(text):
        return text
    return _RUN.sub(lambda run: run[0] + _JOINER if len(run[0]) == MAX_MARKS else run[0], text)
