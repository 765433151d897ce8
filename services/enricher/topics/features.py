"""Pure: what a topic is recognised by: words, pairs of words, and how long words begin and end, as numbers."""

from __future__ import annotations

import re
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
_OPENING = crc32(b"<")
_LONG = 7
_LONGEST = 40
"""Longer ones are no words; of those written without spaces, a sentence."""


def features(title: str, body: str = "") -> list[int]:
    """Return the buckets of what is in a text, ascending and each once."""
    return sorted(buckets(title, body))


def buckets(title: str, body: str = "") -> set[int]:
    """Return the buckets of what is in a text: scores need no order.

    They are of words and pairs of words; of long words the ends, too, which inflection and compounds leave alone.
    """
    found: list[int] = []
    add = found.append
    before = 0  # the checksum of the word before, and of a space
    for word in _WORD.findall(f"{title[:MOST_TITLE]}\n{body[:_MOST_BODY]}".lower()):  # no letter is a surrogate
        if not word.isascii():
            if _UNSPACED.match(word):
                found += _syllables(word)
                before = 0
                continue
            if "\u0620" <= word[0] <= "\u064a" and (article := _ARTICLE.match(word)):
                word = word[article.end() :]  # noqa: PLW2901
        if len(word) >= _LONG:
            word = word[:_LONGEST]  # noqa: PLW2901
            add(crc32(word[:5].encode(), _OPENING))
            add(crc32(f"{word[-5:]}>".encode()))
        data = word.encode()
        if before:
            add(crc32(data, before))
        before = crc32(data)
        add(before)
        before = crc32(b" ", before)
    return {checksum % BUCKETS for checksum in found}


def _syllables(word: str) -> list[int]:
    """Return the checksums of each two and three characters."""
    data = word.encode()
    if min(word) < "\u0800" or max(word) > "\uffff":  # rare: not each character has three bytes
        return [crc32(word[place : place + size].encode()) for place in range(len(word) - 1) for size in (2, 3)]
    found: list[int] = []
    for place in range(0, len(data) - 3, 3):
        pair = crc32(data[place : place + 6])
        found += pair, crc32(data[place + 6 : place + 9], pair)
    return found
