"""Pure: what a topic is recognised by: words, pairs of words, and how long words begin and end, as numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from zlib import crc32

BUCKETS = 1 << 18

MOST_TITLE = 300
_MOST_BODY = 700
"""So many characters are looked at: the beginning tells the topic, and the rest would only take time."""

_WORD = re.compile(r"[^\W\d_]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
"""Scripts without spaces, and Korean, whose words end in particles."""
_ARTICLE = re.compile("(?:[وفبك]?ال|لل|و(?=\\w{4}))(?=\\w{3})")
"""What Arabic writes before a word, together with it."""
_LONG = 7
_LONGEST = 40
"""Longer ones are no words; of those written without spaces, a sentence."""


def features(title: str, body: str = "") -> list[int]:
    """Return the buckets of what is in a text, ascending and each once."""
    text = f"{title[:MOST_TITLE]}\n{body[:_MOST_BODY]}".lower()
    return sorted({crc32(name.encode("utf-8", "surrogatepass")) % BUCKETS for name in _names(text)})


def _names(text: str) -> Iterator[str]:
    """Yield words and pairs of words; of long ones the ends, too, which inflection and compounds leave alone."""
    before = ""
    for match in _WORD.finditer(text):
        word = match[0]
        if _UNSPACED.match(word):
            for place in range(len(word) - 1):
                yield word[place : place + 2]
                yield word[place : place + 3]
            before = ""
            continue
        if "\u0620" <= word[0] <= "\u064a" and (article := _ARTICLE.match(word)):
            word = word[article.end() :]
        word = word[:_LONGEST]
        yield word
        if len(word) >= _LONG:
            yield "<" + word[:5]
            yield word[-5:] + ">"
        if before:
            yield f"{before} {word}"
        before = word
