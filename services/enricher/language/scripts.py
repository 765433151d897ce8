"""Pure: in which script a text is written, and the languages that are written in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LATIN = "Latin"
_LATIN_TOO = frozenset({"sr", "uz", "ku", "ug"})  # of the languages below
_LETTERS: dict[str, tuple[tuple[int, int], ...]] = {
    LATIN: ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x24F), (0x1E00, 0x1EFF)),
    "Greek": ((0x370, 0x3FF), (0x1F00, 0x1FFF)),
    "Cyrillic": ((0x400, 0x52F),),
    "Armenian": ((0x531, 0x58F),),
    "Hebrew": ((0x5D0, 0x5EA),),
    "Arabic": ((0x620, 0x64A), (0x66E, 0x6D3), (0x6FA, 0x6FC), (0x750, 0x77F), (0xFB50, 0xFDFF), (0xFE70, 0xFEFC)),
    "Devanagari": ((0x900, 0x963), (0x970, 0x97F)),
    "Bengali": ((0x980, 0x9E3),),
    "Gurmukhi": ((0xA00, 0xA65), (0xA70, 0xA7F)),
    "Gujarati": ((0xA80, 0xAE5),),
    "Oriya": ((0xB00, 0xB65),),
    "Tamil": ((0xB80, 0xBE5),),
    "Telugu": ((0xC00, 0xC65),),
    "Kannada": ((0xC80, 0xCE5),),
    "Malayalam": ((0xD00, 0xD65),),
    "Sinhala": ((0xD80, 0xDDF),),
    "Thai": ((0xE00, 0xE3A), (0xE40, 0xE4E)),
    "Lao": ((0xE80, 0xECE),),
    "Tibetan": ((0xF40, 0xFBC),),
    "Myanmar": ((0x1000, 0x103F), (0x1050, 0x109F)),
    "Georgian": ((0x10A0, 0x10FF), (0x1C90, 0x1CBF)),
    "Ethiopic": ((0x1200, 0x139F),),
    "Khmer": ((0x1780, 0x17D3),),
    "Kana": ((0x3041, 0x3096), (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF)),
    "Hangul": ((0x1100, 0x11FF), (0x3131, 0x318E), (0xAC00, 0xD7A3)),
    "Han": ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF)),
}
LANGUAGES: dict[str, tuple[str, ...]] = {
    "Greek": ("el",),
    "Cyrillic": ("ru", "uk", "bg", "sr", "mk", "be", "kk", "ky", "mn", "tg", "tt", "ba", "uz"),
    "Armenian": ("hy",),
    "Hebrew": ("he",),
    "Arabic": ("ar", "fa", "ur", "ps", "ug", "ku"),
    "Devanagari": ("hi", "mr", "ne", "sa"),
    "Bengali": ("bn", "as"),
    "Gurmukhi": ("pa",),
    "Gujarati": ("gu",),
    "Oriya": ("or",),
    "Tamil": ("ta",),
    "Telugu": ("te",),
    "Kannada": ("kn",),
    "Malayalam": ("ml",),
    "Sinhala": ("si",),
    "Thai": ("th",),
    "Lao": ("lo",),
    "Tibetan": ("dz",),
    "Myanmar": ("my",),
    "Georgian": ("ka",),
    "Ethiopic": ("am",),
    "Khmer": ("km",),
    "Kana": ("ja",),
    "Hangul": ("ko",),
    "Han": ("zh", "ja"),
}
"""The languages that are told apart in a script. Every other language is written in Latin letters."""

ALONE = frozenset(languages[0] for languages in LANGUAGES.values() if len(languages) == 1) - {"ja"}
"""Languages that their script is enough to tell."""

NAMES = tuple(_LETTERS)
_DENSE = frozenset({"Han", "Kana", "Hangul"})
_SYLLABLE = 3
"""So many letters of an alphabet are a character of Chinese, Japanese or Korean."""

_MOST = 0.65
"""A text whose letters are of one script by less than this share is in no single language."""

_KANA = 0.08
"""Japanese has at least this share of kana among its characters; Chinese has one for ornament at most."""

_JAPANESE = frozenset(
    "円気経済図駅売読対変応発関総価県帰働込広権歳仮渋沢検険験戦収従転伝団続継郷塩桜栄営労両薬訳毎払拝徳様楽歩実挙覚観辺"
    "鉄録黙齢児"
)
"""Characters whose form is used in Japan only: headlines may have no kana."""


def _script_of_each() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return for each code unit of UTF-16 the number of its script, 0 for no letter."""
    table = np.zeros(0x10000, dtype=np.uint8)
    for number, ranges in enumerate(_LETTERS.values(), start=1):
        for first, last in ranges:
            table[first : last + 1] = number
    return table


_SCRIPTS = _script_of_each()
_WEIGHTS = np.array([0] + [_SYLLABLE if name in _DENSE else 1 for name in NAMES])
_PLACE = {name: number for number, name in enumerate(NAMES, start=1)}


class Writing(NamedTuple):
    """How a text is written."""

    script: str | None
    """None for a mixture."""
    letters: int
    is_pure: bool
    """Whether all letters are of this script."""


def find_script(text: str) -> Writing:
    """Return in which script a text is written.

    A syllable of Chinese, Japanese or Korean counts as three letters, so that a brand's name does not outweigh it.
    """
    if text.isascii():
        return Writing(LATIN, sum(map(str.isalpha, text)), is_pure=True)
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), dtype="<u2")
    letters = np.bincount(_SCRIPTS[units], minlength=len(_WEIGHTS)) * _WEIGHTS
    total = int(letters.sum())
    if not total:
        return Writing(None, 0, is_pure=False)
    kana, han = _PLACE["Kana"], _PLACE["Han"]
    if letters[han]:
        is_japanese = letters[kana] >= _KANA * (letters[kana] + letters[han]) or not _JAPANESE.isdisjoint(text)
        into, other = (kana, han) if is_japanese else (han, kana)
        letters[into] += letters[other]
        letters[other] = 0
    latin = _PLACE[LATIN]
    if letters[latin] <= 2 * (total - letters[latin]):  # brands and addresses are Latin everywhere
        letters[latin] //= 2
        total = int(letters.sum())
    most = int(letters.argmax())
    script = NAMES[most - 1] if letters[most] >= _MOST * total else None
    return Writing(script, total, is_pure=bool(letters[most] == total))


def is_written_in(language: str, script: str) -> bool:
    """Return whether a language is written in a script."""
    if script == LATIN:
        return language in _LATIN_TOO or not any(language in languages for languages in LANGUAGES.values())
    return language in LANGUAGES[script]
